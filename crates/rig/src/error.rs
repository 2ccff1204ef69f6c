//! Errors of this crate.

use model::{ErrorClass, Failure};
use std::io;
use std::path::Path;

/// Maximum length of a Unix socket path on Linux (unix(7): 108 bytes including the final zero).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum RigError {
    /// A program is not in the search path.
    #[error("{program} is not installed (apt-get install {package})")]
    Missing {
        /// Name of the program.
        program: &'static str,
        /// Debian package that contains it, and where to get the package if Debian lacks it.
        package: &'static str,
    },
    /// A program exited or did not respond during its start.
    #[error("{program}: {reason}")]
    Start {
        /// Name of the program.
        program: String,
        /// How it ended, with the last lines of its output.
        reason: String,
    },
    /// This machine lacks what a target is about.
    #[error("{problem} (expected {expected})")]
    Host {
        /// What is useless without it.
        problem: String,
        /// A machine that has it.
        expected: String,
    },
    /// An invalid server setting.
    #[error("setting `{name}` of {program} {problem} (expected {expected})")]
    Setting {
        /// Name of the program.
        program: &'static str,
        /// Name of the setting.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
        /// The values that are accepted.
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
    /// A path that is too long for a Unix socket.
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
    #[error("the guard process {problem}, so a crash would leave files behind: {reason}")]
    Guard {
        /// What went wrong.
        problem: &'static str,
        /// The underlying error.
        reason: String,
    },
    /// The directory of the measurement lock cannot be used.
    #[error(
        "`{path}` {problem} (expected a directory that every user can open; remove it, or set \
         TMPDIR to your own directory)"
    )]
    Lock {
        /// The directory.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A control group with a memory limit cannot be created.
    #[error("memory cannot be limited: {problem} (a study with `memory_limit` can omit it)")]
    MemoryLimit {
        /// Its error class.
        class: ErrorClass,
        /// What is missing and what is expected.
        problem: String,
    },
    /// A control group that throttles a disk cannot be created.
    #[error(
        "disk_limit cannot be enforced: {problem} (omit disk_limit to measure the disk as it is)"
    )]
    DiskLimit {
        /// Its error class.
        class: ErrorClass,
        /// What is missing and what is expected.
        problem: String,
    },
    /// A limit of a tier cannot be put on a server.
    #[error("{what} cannot be limited: {problem} (a target without a tier has no such limit)")]
    Tier {
        /// What is limited.
        what: &'static str,
        /// Its error class.
        class: ErrorClass,
        /// What is missing and what is expected.
        problem: String,
    },
    /// Servers cannot be cut off from each other on this machine.
    #[error(
        "servers cannot be partitioned: {problem} (`--set profile` without `partition` omits it)"
    )]
    Partition {
        /// What is missing and what is expected.
        problem: String,
    },
    /// Files remain in the page cache although they should be read from disk.
    #[error(
        "the page cache cannot be emptied, so cold reads cannot be measured: {problem} (expected \
         a directory on a disk, not in tmpfs: `--disk`)"
    )]
    PageCache {
        /// What was observed.
        problem: String,
    },
    /// A system call failed.
    #[error("cannot {doing} `{what}`: {source}")]
    Io {
        /// The failed action, as a verb.
        doing: &'static str,
        /// The object of the action, usually a path.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, RigError>;

impl RigError {
    /// Returns a closure that adds the failed action and `path` to a system error.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = path.display().to_string();
        move |source| Self::Io { doing, what, source }
    }

    /// The class under which the error is counted and listed.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Missing { .. } | Self::Host { .. } | Self::Partition { .. } => {
                ErrorClass::Missing
            }
            Self::Start { .. } | Self::Setting { .. } => ErrorClass::Start,
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorClass::Full,
                io::ErrorKind::PermissionDenied => ErrorClass::Denied,
                _ => ErrorClass::Other,
            },
            Self::MemoryLimit { class, .. }
            | Self::DiskLimit { class, .. }
            | Self::Tier { class, .. } => *class,
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
