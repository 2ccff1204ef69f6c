//! Failures and their classes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Class of a failure of an operation or trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// No reply within the timeout.
    Timeout,
    /// Connection refused, or the connection limit is reached.
    Refused,
    /// The connection broke or the server died.
    Closed,
    /// Login rejected, or missing permission.
    Denied,
    /// No space left: disk, quota or the server's memory limit.
    Full,
    /// The kernel killed the server because its memory limit was reached.
    Killed,
    /// Nothing was answered for longer than the plan allows.
    Stalled,
    /// The value is larger than the server accepts.
    TooLarge,
    /// The server answered with another error.
    Reply,
    /// The reply violates the protocol.
    Protocol,
    /// A session's lock was not acquired in time.
    Lock,
    /// The server's program is not installed, or this machine or user lacks what the target or cell
    /// needs.
    Missing,
    /// The server did not start.
    Start,
    /// The store is not empty, or otherwise unsafe to use.
    NotOurs,
    /// A worker of the fleet, or the machine of the servers, is gone.
    Lost,
    /// An error of the operating system or of cachedyno itself.
    Other,
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "timed out",
            Self::Refused => "refused",
            Self::Closed => "connection lost",
            Self::Denied => "denied",
            Self::Full => "full",
            Self::Killed => "killed",
            Self::Stalled => "stalled",
            Self::TooLarge => "too large",
            Self::Reply => "error reply",
            Self::Protocol => "malformed reply",
            Self::Lock => "lock not available",
            Self::Missing => "not available",
            Self::Start => "did not start",
            Self::NotOurs => "unsafe to use",
            Self::Lost => "lost",
            Self::Other => "failed",
        })
    }
}

/// Why a trial or a target has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{class}: {message}")]
pub struct Failure {
    /// Class of the failure.
    pub class: ErrorClass,
    /// One sentence without credentials. If a server died, the last lines of its log follow after
    /// [`Failure::LOG`].
    pub message: String,
}

impl Failure {
    /// Separator between the reason and the last lines of a server's log, which are joined by ` |
    /// `.
    pub const LOG: &str = "; its log: ";

    /// True if it ends a trial with what was measured until then: the store was killed by its
    /// memory limit, or stopped answering. That is a result of the store.
    pub fn is_a_result(&self) -> bool {
        matches!(self.class, ErrorClass::Killed | ErrorClass::Stalled)
    }

    /// Class and reason, for a sentence that already says that something failed.
    pub fn described(&self) -> String {
        match self.class {
            ErrorClass::Other | ErrorClass::Lost => self.reason().into(),
            class => format!("{class}: {}", self.reason()),
        }
    }

    /// The message without the log.
    pub fn reason(&self) -> &str {
        self.message.split(Self::LOG).next().unwrap_or(&self.message)
    }

    /// The last lines of the server's log, if any.
    pub fn log(&self) -> Option<&str> {
        self.message.split_once(Self::LOG).map(|(_, log)| log)
    }
}
