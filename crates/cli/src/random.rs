//! Random numbers of the system.

use std::fs;
use std::io::Read as _;

use crate::exit::CliError;

/// A number that nobody can foresee.
pub(crate) fn random() -> Result<u64, CliError> {
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| CliError::failed(format!("no random number from `/dev/urandom`: {e}")))?;
    Ok(u64::from_le_bytes(bytes))
}
