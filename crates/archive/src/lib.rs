//! One directory a run: write, seal, list, find, read, resume.
//!
//! `cachedyno-records/<time>-<study>-<id>/` holds
//! - `header.json`: plan, conditions, tool and command; written before the first trial;
//! - `targets.jsonl`: a line for each target that answered, or why it did not;
//! - `trials.jsonl`: a line for each trial, synced to disk when the trial ends;
//! - `points.jsonl`: what is known of a trial under way that tells its points, a line for each,
//!   removed when the trial's own line is written;
//! - `latency.hlog`: times in the course of the trials, for tools of `HdrHistogram`;
//! - `samples.jsonl.gz`: what server and generator used in the course of the trials, for each a
//!   line of `columns`, compressed by itself;
//! - `seal.json`: written last. A record without it was killed and can be resumed;
//! - `report.html`, `summary.json`: made from the above, and can be made again.
//!
//! Beside the records, `calibration.json` holds what `calibrate` found; later records copy it.
//!
//! docs/FORMAT.md describes every key. Each line is written whole; a torn last line (power cut,
//! `kill -9`) is ignored on reading and cut off on resuming.

mod calibration;
mod columns;
mod directory;
mod hlog;
mod json;
mod numbers;
mod prune;
mod reader;
mod samples;
mod seal;
mod time;
mod writer;

pub use calibration::{CALIBRATION, read_calibration, write_calibration};
pub use directory::{read_derived, write_derived, write_new, write_page};
pub use prune::remove;
pub use reader::{Record, find, is_in_use, list, run_of};
pub use samples::{PackedSamples, SamplesByTrial};
pub use writer::Writer;

use std::io;
use std::path::{Path, PathBuf};

/// Name of the directory that holds records, unless the user names another.
pub const RECORDS: &str = "cachedyno-records";
/// Name of the log of times in a record; not there where no engine told of any.
pub const LATENCY_LOG: &str = "latency.hlog";
/// Name of the samples in a record; not there where nothing was sampled.
pub const SAMPLES: &str = "samples.jsonl.gz";
/// Name of the page in a record.
pub const REPORT: &str = "report.html";
/// Name of the summary in a record.
pub const SUMMARY: &str = "summary.json";

const HEADER: &str = "header.json";
const TARGETS: &str = "targets.jsonl";
const TRIALS: &str = "trials.jsonl";
const POINTS: &str = "points.jsonl";
const SEAL: &str = "seal.json";
const LOCK: &str = "lock";

/// A record that cannot be written, found or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The operating system refused.
    #[error("record `{}` cannot be {doing}: {source}{}", path.display(), cure(doing))]
    Io {
        /// `written` or `read`.
        doing: &'static str,
        /// File or directory.
        path: PathBuf,
        /// The system's own words.
        source: io::Error,
    },
    /// A file of the record is not what it should be.
    #[error("record file `{}`, line {line}, is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The directory is no record.
    #[error("`{}` is not a record (no {HEADER} in it)", .0.display())]
    NotARecord(PathBuf),
    /// Written by a version that knows more.
    #[error(
        "record `{}` has format {found}, this version reads {known} (use a newer cachedyno)",
        path.display()
    )]
    TooNew {
        /// The record.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Nothing has that name.
    #[error(
        "no run `{wanted}` in `{}` (known: {known}; `latest` and unique prefixes work \
         too, and --out DIR names another directory of records)",
        within.display()
    )]
    Unknown {
        /// What the user asked for.
        wanted: String,
        /// Directory of records.
        within: PathBuf,
        /// Ids that are there.
        known: String,
    },
    /// Several have that prefix.
    #[error("run `{wanted}` is ambiguous, it matches {matches}")]
    Ambiguous {
        /// What the user asked for.
        wanted: String,
        /// Names that match.
        matches: String,
    },
    /// Another cachedyno writes it at this moment.
    #[error("record `{}` is in use by another cachedyno", .0.display())]
    InUse(PathBuf),
}

/// The error of a file or directory that cannot be written.
fn written(path: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::Io { doing: "written", path: path.to_path_buf(), source }
}

/// The error of one that cannot be read.
fn unreadable(path: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::Io { doing: "read", path: path.to_path_buf(), source }
}

fn cure(doing: &str) -> &'static str {
    if doing == "written" { " (choose another directory with --out DIR)" } else { "" }
}

#[cfg(test)]
mod tests;
