//! JSON of a record's values; errors name the file.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

use crate::{ArchiveError, written};

/// Serialises a value that will be written to `path`.
pub(crate) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, ArchiveError> {
    serde_json::to_vec(value).map_err(|e| written(path, e.into()))
}

/// Parses a line of `path`; line numbers start at 1.
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
