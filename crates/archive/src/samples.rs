//! `samples.jsonl.gz`: resource usage of server and generator over time.
//!
//! One gzip member per trial, each a line of column-oriented JSON; `zcat` prints them all.
//!
//! As [`Sample`]s they would take about a hundred times as much memory. So they stay compressed in
//! memory, and one trial is unpacked at a time. The unpacked size of a member is limited.

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use model::Sample;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::columns::Line;
use crate::directory::{Directory, append_whole};
use crate::json::{json, parse};
use crate::{ArchiveError, SAMPLES, written};

/// Maximum bytes of a line, in addition to [`LINE_FACTOR`] times the packed file.
const LINE_BYTES: u64 = 16 << 20;
/// Maximum ratio of a line to the packed file. In real runs, lines are 4 to 8 times as long as
/// their member.
const LINE_FACTOR: u64 = 12;
/// Maximum bytes of unpacked samples in memory, in addition to [`KEPT_FACTOR`] times the packed
/// file.
const KEPT_BYTES: usize = 16 << 20;
const KEPT_FACTOR: usize = 2;

/// Samples by block and cell id.
pub type SamplesByTrial = BTreeMap<(u32, String), Vec<Sample>>;

/// Appends the samples of a trial to a record.
pub(crate) fn append_samples(
    record: &Directory,
    trial: (u32, &str),
    samples: &[Sample],
) -> Result<(), ArchiveError> {
    let path = record.place(SAMPLES);
    let mut line = json(&path, &Line::of(trial, samples))?;
    line.push(b'\n');
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packed.write_all(&line).and_then(|()| packed.finish());
    let packed = packed.map_err(|e| written(&path, e))?;
    append_whole(&mut record.append(SAMPLES)?, &path, &packed)
}

/// Truncates an incomplete last member.
pub(crate) fn cut_torn_member(record: &Directory) -> Result<(), ArchiveError> {
    let Some(packed) = record.read(SAMPLES)? else { return Ok(()) };
    let whole = PackedSamples::of(record.place(SAMPLES), packed)?.whole as u64;
    record.append(SAMPLES)?.set_len(whole).map_err(|e| record.unwritten(SAMPLES, e))
}

/// The compressed samples of a record.
#[derive(Debug)]
pub struct PackedSamples {
    path: PathBuf,
    packed: Vec<u8>,
    /// Member number, starting at 1, and byte range, by block and cell id.
    members: BTreeMap<(u32, String), (usize, Range<usize>)>,
    /// Total bytes of the complete members.
    whole: usize,
}

/// The trial of a line.
#[derive(Deserialize)]
struct TrialId {
    block: u32,
    cell: String,
}

impl PackedSamples {
    /// Reads the samples of a record; of a repeated trial, the later ones. Empty if the record has
    /// no such file.
    ///
    /// Errors: the file cannot be read or is damaged. A torn last member is ignored.
    pub fn read(record: &Path) -> Result<Self, ArchiveError> {
        let record = Directory::of_record(record)?;
        Self::of(record.place(SAMPLES), record.read(SAMPLES)?.unwrap_or_default())
    }

    fn of(path: PathBuf, packed: Vec<u8>) -> Result<Self, ArchiveError> {
        let mut all = Self { path, packed, members: BTreeMap::new(), whole: 0 };
        for number in 1.. {
            let begin = all.whole;
            let Some((text, length)) = all.unpack(number, begin)? else { break };
            let TrialId { block, cell } = parse(&all.path, number, &text)?;
            all.whole = begin + length;
            all.members.insert((block, cell), (number, begin..all.whole));
        }
        Ok(all)
    }

    /// Member number and line of each trial, ordered by block and cell id.
    fn lines(&self) -> impl Iterator<Item = Result<(usize, Line), ArchiveError>> + '_ {
        self.members.values().map(|(number, range)| {
            let text = self.unpack(*number, range.start)?.map(|(text, _)| text).unwrap_or_default();
            Ok((*number, parse(&self.path, *number, &text)?))
        })
    }

    /// Calls `each` for every sample, with its block and cell id.
    ///
    /// Errors: the file is damaged, or an error of `each`.
    pub fn each<E: From<ArchiveError>>(
        &self,
        mut each: impl FnMut((u32, &str), Sample) -> Result<(), E>,
    ) -> Result<(), E> {
        for line in self.lines() {
            let (number, line) = line?;
            let samples = line.samples().map_err(|e| damaged(&self.path, number, &e))?;
            for sample in samples {
                each((line.block, &line.cell), sample)?;
            }
        }
        Ok(())
    }

    /// The samples of all trials. To limit memory, every second sample of each trial is dropped, or
    /// three of four, and so on.
    pub fn by_trial(&self) -> Result<SamplesByTrial, ArchiveError> {
        let (mut all, mut bytes, mut step) = (SamplesByTrial::new(), 0, 1);
        for line in self.lines() {
            let (number, line) = line?;
            let every = line.step(self.kept_max()).max(step);
            let samples = line.samples().map_err(|e| damaged(&self.path, number, &e))?;
            let samples: Vec<Sample> = samples.step_by(every).collect();
            bytes += samples.iter().map(bytes_of).sum::<usize>();
            all.insert((line.block, line.cell.clone()), samples);
            while bytes > self.kept_max() && step < 1 << 20 {
                step *= 2;
                for samples in all.values_mut() {
                    *samples = std::mem::take(samples).into_iter().step_by(2).collect();
                }
                bytes = all.values().flatten().map(bytes_of).sum();
            }
        }
        Ok(all)
    }

    fn kept_max(&self) -> usize {
        KEPT_BYTES + KEPT_FACTOR * self.packed.len()
    }

    /// Text and packed length of the member that starts at `begin`; `None` at the end of the file
    /// or for a torn last member.
    fn unpack(
        &self,
        number: usize,
        begin: usize,
    ) -> Result<Option<(Vec<u8>, usize)>, ArchiveError> {
        let all = &self.packed[begin..];
        if all.is_empty() {
            return Ok(None);
        }
        let most = LINE_BYTES + LINE_FACTOR * self.packed.len() as u64;
        let (mut rest, mut text) = (all, Vec::new());
        match GzDecoder::new(&mut rest).take(most + 1).read_to_end(&mut text) {
            Ok(length) if length as u64 > most => {
                let problem = format!("it unpacks to more than {most} bytes");
                Err(damaged(&self.path, number, &problem))
            }
            Ok(_) => Ok(Some((text, all.len() - rest.len()))),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(damaged(&self.path, number, &e.to_string())),
        }
    }
}

/// Approximate memory of a sample, in bytes.
fn bytes_of(sample: &Sample) -> usize {
    let threads = |threads: &[model::ThreadCpu]| size_of_val(threads) + 32 * threads.len();
    let server = sample.server.as_ref().map_or(0, |server| threads(&server.threads));
    size_of::<Sample>() + server + threads(&sample.generator.threads)
}

fn damaged(path: &Path, line: usize, problem: &str) -> ArchiveError {
    ArchiveError::Damaged { path: path.to_path_buf(), line, problem: problem.into() }
}

#[cfg(test)]
#[path = "samples_tests.rs"]
mod tests;
