//! Removes records of earlier runs.

use model::Listed;
use std::path::Path;

use crate::directory::Directory;
use crate::reader::in_use;
use crate::{
    ArchiveError, HEADER, LATENCY_LOG, LOCK, POINTS, REPORT, SAMPLES, SEAL, SUMMARY, TARGETS,
    TRIALS,
};

/// Files of a record. The header is last, so that a partially removed record is still a record.
const FILES: [&str; 10] =
    [REPORT, SUMMARY, LATENCY_LOG, SAMPLES, POINTS, TRIALS, TARGETS, SEAL, LOCK, HEADER];

/// Removes the files of a record below `records`, and its directory if it is empty then. Returns
/// true if the directory was removed. A record in use is kept. Links are not followed. Errors: a
/// file cannot be removed.
pub fn remove(records: &Path, record: &Listed) -> Result<bool, ArchiveError> {
    let name = record.path.file_name().unwrap_or_default();
    let parent = Directory::open(records).map_err(|e| crate::unreadable(records, e))?;
    let own = parent.below(name).map_err(|e| crate::unreadable(&record.path, e))?;
    if in_use(&own) {
        return Ok(false);
    }
    FILES.iter().try_for_each(|file| own.remove(file))?;
    Ok(parent.remove_directory(name))
}
