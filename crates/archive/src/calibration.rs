//! The calibration file next to the records, replaced by each new calibration.

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

/// The field that all format versions share.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Saves a calibration below `records` for later runs; returns the file's path.
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

/// Reads the saved calibration; `None` if there is none.
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
