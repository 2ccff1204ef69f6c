//! `samples.jsonl.gz`: what server and generator used in the course of the trials.
//!
//! A gzip member a trial, each a line of JSON in columns; `zcat` gives them all.

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use model::Sample;
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

use crate::columns::Line;
use crate::reader::{parse, unreadable};
use crate::writer::{append, append_whole, json, written};
use crate::{ArchiveError, SAMPLES};

/// Samples by block and id of the cell.
pub type SamplesByTrial = BTreeMap<(u32, String), Vec<Sample>>;

/// Adds the samples of a trial to a record.
pub(crate) fn append_samples(
    record: &Path,
    trial: (u32, &str),
    samples: &[Sample],
) -> Result<(), ArchiveError> {
    let path = record.join(SAMPLES);
    let mut line = json(&path, &Line::of(trial, samples))?;
    line.push(b'\n');
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packed.write_all(&line).and_then(|()| packed.finish());
    let packed = packed.map_err(|e| written(&path, e))?;
    append_whole(&mut append(&path)?, &path, &packed)
}

/// The samples of a record; of a cell of a block that was measured again, the later ones. None
/// where the record has no such file.
///
/// Errors: the file cannot be read, or is damaged before its last member; a torn last one is
/// ignored.
pub fn read_samples(record: &Path) -> Result<SamplesByTrial, ArchiveError> {
    let path = record.join(SAMPLES);
    let mut all = SamplesByTrial::new();
    for (text, number) in members(&path)?.texts.iter().zip(1..) {
        let line: Line = parse(&path, number, text)?;
        let samples = line.samples().map_err(|problem| damaged(&path, number, problem))?;
        all.insert((line.block, line.cell), samples);
    }
    Ok(all)
}

/// Cuts off a last member that has no end.
pub(crate) fn cut_torn_member(record: &Path) -> Result<(), ArchiveError> {
    let path = record.join(SAMPLES);
    if !path.exists() {
        return Ok(());
    }
    let whole = members(&path)?.bytes as u64;
    append(&path)?.set_len(whole).map_err(|e| written(&path, e))
}

/// The whole members of a file.
#[derive(Default)]
struct Members {
    texts: Vec<Vec<u8>>,
    /// How long they are in the file, together.
    bytes: usize,
}

fn members(path: &Path) -> Result<Members, ArchiveError> {
    let packed = match fs::read(path) {
        Ok(packed) => packed,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Members::default()),
        Err(e) => return Err(unreadable(path, e)),
    };
    let mut members = Members::default();
    let mut rest = packed.as_slice();
    while !rest.is_empty() {
        let mut text = Vec::new();
        match GzDecoder::new(&mut rest).read_to_end(&mut text) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) => return Err(damaged(path, members.texts.len() + 1, &e.to_string())),
        }
        members.texts.push(text);
        members.bytes = packed.len() - rest.len();
    }
    Ok(members)
}

fn damaged(path: &Path, line: usize, problem: &str) -> ArchiveError {
    ArchiveError::Damaged { path: path.to_path_buf(), line, problem: problem.into() }
}

#[cfg(test)]
#[path = "samples_tests.rs"]
mod tests;
