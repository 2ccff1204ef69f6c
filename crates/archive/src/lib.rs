//! Run records, one directory per run: write, seal, list, find, read, resume.
//!
//! `cachedyno-records/<time>-<study>-<id>/` contains
//! - `header.json`: plan, conditions, tool and command; written before the first trial;
//! - `targets.jsonl`: one line per target: its state, or why it is unavailable;
//! - `trials.jsonl`: one line per trial, synced to disk when the trial ends;
//! - `points.jsonl`: one line per finished point of a running trial, removed when the trial's own
//!   line is written;
//! - `latency.hlog`: latencies over time, for `HdrHistogram` tools;
//! - `samples.jsonl.gz`: resource usage of server and generator over time; one line per trial, in
//!   the format of `columns`, each a separate gzip member;
//! - `seal.json`: written last. A record without it belongs to a run that was killed and can be
//!   resumed;
//! - `report.html`, `summary.json`: derived from the other files, can be regenerated.
//!
//! Next to the records, `calibration.json` holds the result of `calibrate`; later records copy it.
//!
//! docs/FORMAT.md describes every key. A torn last line (power failure, `kill -9`) is ignored when
//! reading and truncated when resuming.

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

/// Default directory of records.
pub const RECORDS: &str = "cachedyno-records";
/// Name of the latency log in a record; missing if no engine reported latencies over time.
pub const LATENCY_LOG: &str = "latency.hlog";
/// Name of the samples in a record; missing if nothing was sampled.
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

/// An error when writing, finding or reading a record.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// An I/O error.
    #[error("record `{}` cannot be {doing}: {source}{}", path.display(), cure(doing))]
    Io {
        /// `written` or `read`.
        doing: &'static str,
        /// File or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file of the record is damaged.
    #[error("record file `{}`, line {line}, is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Line number, starting at 1.
        line: usize,
        /// Description of the damage.
        problem: String,
    },
    /// The directory is not a record.
    #[error("`{}` is not a record (no {HEADER} in it)", .0.display())]
    NotARecord(PathBuf),
    /// The record was written by a newer version.
    #[error(
        "record `{}` has format {found}, this version reads {known} (use a newer cachedyno)",
        path.display()
    )]
    TooNew {
        /// The record.
        path: PathBuf,
        /// Format of the record.
        found: u32,
        /// Newest format that this version supports.
        known: u32,
    },
    /// No run has this name.
    #[error(
        "no run `{wanted}` in `{}` (known: {known}; `latest` and unique prefixes work \
         too, and --out DIR names another directory of records)",
        within.display()
    )]
    Unknown {
        /// Name given by the user.
        wanted: String,
        /// Directory of records.
        within: PathBuf,
        /// Ids of the existing runs.
        known: String,
    },
    /// Several runs have this prefix.
    #[error("run `{wanted}` is ambiguous, it matches {matches}")]
    Ambiguous {
        /// Prefix given by the user.
        wanted: String,
        /// Matching names.
        matches: String,
    },
    /// Another cachedyno is writing the record.
    #[error("record `{}` is in use by another cachedyno", .0.display())]
    InUse(PathBuf),
}

/// Error for a file or directory that cannot be written.
fn written(path: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::Io { doing: "written", path: path.to_path_buf(), source }
}

/// Error for a file or directory that cannot be read.
fn unreadable(path: &Path, source: io::Error) -> ArchiveError {
    ArchiveError::Io { doing: "read", path: path.to_path_buf(), source }
}

fn cure(doing: &str) -> &'static str {
    if doing == "written" { " (choose another directory with --out DIR)" } else { "" }
}

#[cfg(test)]
mod tests;
