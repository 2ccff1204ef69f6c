//! Random numbers from the operating system.

use std::fs;
use std::io::Read as _;

use crate::exit::CliError;

/// An unpredictable number.
pub(crate) fn random() -> Result<u64, CliError> {
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| CliError::failed(format!("cannot read `/dev/urandom`: {e}")))?;
    Ok(u64::from_le_bytes(bytes))
}
