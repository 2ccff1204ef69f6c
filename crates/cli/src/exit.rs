//! Errors of the command line and their exit codes.
//!
//! 0 done, and VALID or UNREPLICATED; 1 unexpected failure; 2 usage or study error; 3 a named
//! target cannot be used; 4 the run is INVALID or NOT-STEADY; 5 a requirement is not met; 6
//! the records do not cover a question; 130 interrupted.

use archive::ArchiveError;
use model::{Failure, StudyError};
use std::fmt;

/// Done, and the result is VALID or UNREPLICATED.
pub(crate) const DONE: u8 = 0;
/// An unexpected failure.
pub(crate) const FAILED: u8 = 1;
/// The command line or the study is invalid.
pub(crate) const USAGE: u8 = 2;
/// A target named by the user cannot be used.
pub(crate) const TARGET: u8 = 3;
/// The result is INVALID or NOT-STEADY.
pub(crate) const NOT_VALID: u8 = 4;
/// A user's requirement is not met.
pub(crate) const UNMET: u8 = 5;
/// The records do not cover the user's question.
pub(crate) const NOT_COVERED: u8 = 6;
/// The user interrupted the command.
pub(crate) const INTERRUPTED: u8 = 130;

/// An error that ends the program: one sentence, and the exit code.
#[derive(Debug)]
pub(crate) struct CliError {
    code: u8,
    message: String,
}

impl CliError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into() }
    }

    pub(crate) fn target(message: impl Into<String>) -> Self {
        Self { code: TARGET, message: message.into() }
    }

    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { code: INTERRUPTED, message: message.into() }
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { code: FAILED, message: message.into() }
    }

    /// Its exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<StudyError> for CliError {
    fn from(error: StudyError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ArchiveError> for CliError {
    fn from(error: ArchiveError) -> Self {
        let code = match error {
            ArchiveError::Io { doing: "written", .. } => FAILED,
            _ => USAGE,
        };
        Self { code, message: error.to_string() }
    }
}

impl From<rig::RigError> for CliError {
    fn from(error: rig::RigError) -> Self {
        Self::failed(Failure::from(error).message)
    }
}
