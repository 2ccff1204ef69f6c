//! Values of a record as JSON, with the file in what goes wrong.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

use crate::{ArchiveError, written};

/// The text of a value that goes into `path`.
pub(crate) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, ArchiveError> {
    serde_json::to_vec(value).map_err(|e| written(path, e.into()))
}

/// The value of a line, from 1, of `path`.
pub(crate) fn parse<T: DeserializeOwned>(
    path: &Path,
    line: usize,
    text: &[u8],
) -> Result<T, ArchiveError> {
    serde_json::from_slice(text).map_err(|e| ArchiveError::Damaged {
        path: path.to_path_buf(),
        line,
        problem: e.to_string(),
    })
}
