//! Errors of this crate.

use model::{ErrorClass, Failure};
use std::io;
use std::path::Path;

/// Longest path of a unix socket that Linux takes (unix(7): 108 bytes with the closing zero).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// A program is not in the search path.
    #[error("{program} is not installed (apt-get install {package})")]
    Missing {
        /// Name of the program.
        program: &'static str,
        /// Debian package that brings it, and who offers that where Debian may not.
        package: &'static str,
    },
    /// A program ended or did not answer before it was of use.
    #[error("{program}: {reason}")]
    Start {
        /// Name of the program.
        program: String,
        /// How it ended, with its own last words.
        reason: String,
    },
    /// A server setting that cannot be passed on.
    #[error("setting `{name}` of {program} {problem} (expected {expected})")]
    Setting {
        /// Name of the program.
        program: &'static str,
        /// Name of the setting.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// A CPU that this process may not use.
    #[error("CPU `{cpu}` cannot be used (expected one of {allowed:?}; see `taskset -p`)")]
    Cpu {
        /// The requested CPU.
        cpu: usize,
        /// CPUs that this process may use.
        allowed: Vec<usize>,
    },
    /// A path that the kernel does not take for a unix socket.
    #[error(
        "socket path `{path}` has {bytes} bytes (expected at most {}; set TMPDIR to a shorter \
         path)",
        SOCKET_PATH_BYTES_MAX
    )]
    SocketPath {
        /// The path.
        path: String,
        /// Its length.
        bytes: usize,
    },
    /// The guard process could not be started, or has ended.
    #[error("the guard process {problem}, so nothing would be removed after a crash: {reason}")]
    Guard {
        /// What it did.
        problem: &'static str,
        /// What the system said.
        reason: String,
    },
    /// The directory whose lock keeps other measurements away cannot be used.
    #[error(
        "`{path}` {problem} (expected a directory that every user may open; remove it, or set \
         TMPDIR to a directory of your own)"
    )]
    Lock {
        /// The directory.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No control group with a memory limit can be created.
    #[error("memory_limit cannot be kept: {problem} (leave memory_limit out to measure without)")]
    MemoryLimit {
        /// The class under which it is counted.
        class: ErrorClass,
        /// What is missing, and what was expected.
        problem: String,
    },
    /// Files stayed in memory that were to be read from the disk.
    #[error(
        "the page cache cannot be emptied, so that nothing would be cold: {problem} (expected a \
         directory on a disk, not in tmpfs: `--disk`)"
    )]
    PageCache {
        /// What was found.
        problem: String,
    },
    /// The operating system refused.
    #[error("cannot {doing} `{what}`: {source}")]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// To what.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, RigError>;

impl RigError {
    /// Turns an error of the system into one that names what was to be done to `path`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = path.display().to_string();
        move |source| Self::Io { doing, what, source }
    }

    /// The class under which this is counted and listed.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Missing { .. } => ErrorClass::Missing,
            Self::Start { .. } | Self::Setting { .. } => ErrorClass::Start,
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorClass::Full,
                io::ErrorKind::PermissionDenied => ErrorClass::Denied,
                _ => ErrorClass::Other,
            },
            Self::MemoryLimit { class, .. } => *class,
            Self::Cpu { .. }
            | Self::SocketPath { .. }
            | Self::Guard { .. }
            | Self::Lock { .. }
            | Self::PageCache { .. } => ErrorClass::Other,
        }
    }
}

impl From<RigError> for Failure {
    fn from(error: RigError) -> Self {
        Self { class: error.class(), message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_class_and_text() {
        let missing = RigError::Missing { program: "redis-server", package: "redis-server" };
        let failure = Failure::from(missing);
        assert_eq!(failure.class, ErrorClass::Missing);
        assert_eq!(failure.message, "redis-server is not installed (apt-get install redis-server)");
        let full = RigError::io("create", Path::new("/a"))(io::ErrorKind::StorageFull.into());
        assert_eq!(full.class(), ErrorClass::Full);
        assert!(full.to_string().starts_with("cannot create `/a`: "));
    }
}
