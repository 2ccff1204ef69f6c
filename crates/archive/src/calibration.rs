//! The calibration beside the records: one file, replaced whole by the next calibration.

use model::Calibration;
use model::calibration::CALIBRATION_FORMAT;
use serde::Deserialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::ArchiveError;
use crate::reader::{parse, unreadable};
use crate::writer::{write_whole, written};

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
    write_whole(&path, calibration)?;
    Ok(path)
}

/// What was kept last; `None` when nothing was.
pub fn read_calibration(records: &Path) -> Result<Option<Calibration>, ArchiveError> {
    let path = records.join(CALIBRATION);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(unreadable(&path, e)),
    };
    let Format { format } = parse(&path, 1, &text)?;
    if format > CALIBRATION_FORMAT {
        return Err(ArchiveError::TooNew { path, found: format, known: CALIBRATION_FORMAT });
    }
    parse(&path, 1, &text).map(Some)
}
