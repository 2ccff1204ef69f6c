//! The calibration beside the records: one file, replaced whole by the next calibration.

use model::Calibration;
use model::calibration::CALIBRATION_FORMAT;
use serde::Deserialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::directory::Directory;
use crate::json::{json, parse};
use crate::{ArchiveError, unreadable, written};

/// Name of the calibration in the directory of records.
pub const CALIBRATION: &str = "calibration.json";

/// What every version of it begins with.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Keeps it for later runs below `records`; the path of the file.
pub fn write_calibration(
    records: &Path,
    calibration: &Calibration,
) -> Result<PathBuf, ArchiveError> {
    let path = records.join(CALIBRATION);
    fs::create_dir_all(records).map_err(|e| written(records, e))?;
    let directory = Directory::open(records).map_err(|e| written(records, e))?;
    directory.write_whole(CALIBRATION, &json(&path, calibration)?)?;
    Ok(path)
}

/// What was kept last; `None` when nothing was.
pub fn read_calibration(records: &Path) -> Result<Option<Calibration>, ArchiveError> {
    let path = records.join(CALIBRATION);
    let directory = match Directory::open(records) {
        Ok(directory) => directory,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(unreadable(records, e)),
    };
    let Some(text) = directory.read(CALIBRATION)? else { return Ok(None) };
    let Format { format } = parse(&path, 1, &text)?;
    if format > CALIBRATION_FORMAT {
        return Err(ArchiveError::TooNew { path, found: format, known: CALIBRATION_FORMAT });
    }
    parse(&path, 1, &text).map(Some)
}
