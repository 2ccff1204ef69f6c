//! `seal.json`: how a run ended, and the SHA-256 of every file it wrote.
//!
//! The checksums detect accidental edits. They are not a signature: anyone who edits a record can
//! also rewrite the seal. Derived files (page, summary) and the lock are not included.

use model::Seal;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read as _};

use crate::directory::Directory;
use crate::json::{json, parse};
use crate::{ArchiveError, HEADER, LATENCY_LOG, POINTS, SAMPLES, SEAL, TARGETS, TRIALS};

/// The files that a run writes, in the order in which changed ones are reported.
const SEALED: [&str; 6] = [HEADER, TARGETS, TRIALS, POINTS, LATENCY_LOG, SAMPLES];

/// Contents of `seal.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    #[serde(flatten)]
    seal: Seal,
    /// Hexadecimal SHA-256 by file; empty in a record of an older version.
    #[serde(default)]
    sha256: BTreeMap<String, String>,
    /// Files that were changed after an earlier seal, before the run was resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    changed_before: Vec<String>,
}

/// Seals a record; `changed_before` are files that did not match an earlier seal.
pub(crate) fn write(
    record: &Directory,
    seal: &Seal,
    changed_before: &[String],
) -> Result<(), ArchiveError> {
    let mut sha256 = BTreeMap::new();
    for name in SEALED {
        if let Some(sum) = sum(record, name)? {
            sha256.insert(name.to_string(), sum);
        }
    }
    let sealed = Sealed { seal: seal.clone(), sha256, changed_before: changed_before.to_vec() };
    record.write_whole(SEAL, &json(&record.place(SEAL), &sealed)?)
}

/// The seal (`None` if the record has none), and the files that were changed since.
pub(crate) fn read(record: &Directory) -> Result<(Option<Seal>, Vec<String>), ArchiveError> {
    let Some(text) = record.read(SEAL)? else { return Ok((None, Vec::new())) };
    let Sealed { seal, sha256, changed_before } = parse(&record.place(SEAL), 1, &text)?;
    let differs = |name: &&str| {
        !sha256.is_empty() && sum(record, name).ok().flatten().as_ref() != sha256.get(*name)
    };
    let is_changed = |name: &&str| changed_before.iter().any(|n| n == name) || differs(name);
    let changed = SEALED.into_iter().filter(is_changed).map(String::from).collect();
    Ok((Some(seal), changed))
}

/// Hexadecimal SHA-256 of a file; `None` if it does not exist.
fn sum(record: &Directory, name: &str) -> Result<Option<String>, ArchiveError> {
    let Some(mut file) = record.file(name)? else { return Ok(None) };
    let (mut hash, mut part) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut part) {
            Ok(0) => break,
            Ok(length) => hash.update(&part[..length]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(record.unreadable(name, e)),
        }
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(Some(text))
}
