//! The interface of a store under test, for one client with its own connection.
//!
//! A call blocks until it is answered or times out. Implementors check a reply's type and status;
//! the workload checks its length and content.

use model::{ErrorClass, Failure};

/// Whether a session was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was found.
    Yes,
    /// It was not found (never written, expired or evicted).
    No,
}

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{class}: {message}")]
pub struct StoreError {
    /// Class of the error.
    pub class: ErrorClass,
    /// A lower-case sentence that quotes the store's own error text; contains no credentials.
    pub message: String,
    /// True if the connection cannot be used any more, so the trial ends.
    pub fatal: bool,
}

impl StoreError {
    /// An error after which the connection still works.
    pub fn soft(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), fatal: false }
    }

    /// An error that ends the trial.
    pub fn fatal(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), fatal: true }
    }
}

/// The reason why a target is unavailable.
impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Self {
        Self { class: e.class, message: e.message }
    }
}

/// One client of a plain session store: one key, row or file per session.
pub trait SessionStore: Send {
    /// Stores a session that does not exist yet.
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError>;

    /// Reads a session into `value`, replacing its content.
    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError>;

    /// Replaces the value of an existing session. `Found::No` if the store reports that there was
    /// none; stores that overwrite blindly (files, Redis) always return `Found::Yes`.
    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError>;
}

/// How a session's lock was acquired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWait {
    /// Attempts made, at least 1; 1 means that the lock was free.
    pub attempts: u32,
    /// Time from the first attempt to the acquisition, nanoseconds; 0 if the lock was free.
    pub waited_ns: u64,
}

/// Result of opening a page's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Whether the session existed.
    pub found: Found,
    /// How its lock was acquired.
    pub lock: LockWait,
}

/// Result of closing a page's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Written and released.
    Kept,
    /// The lock had expired or belonged to another owner: the handler did not write, or wrote
    /// without protection.
    LockLost,
}

/// When a request that collects deletes expired sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collects {
    /// Before it opens its session.
    BeforeOpen,
    /// After it has closed its session.
    AfterClose,
    /// Not at all: the server expires sessions by itself.
    Never,
}

/// Result of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Expired sessions deleted.
    pub deleted: u64,
    /// Files listed to find them; 0 for databases.
    pub files: u64,
}

/// One client of a real shop's session handler, which opens a session under its lock and closes it.
pub trait PageStore: Send {
    /// Takes the session's lock as the handler does and reads the session into `value`, replacing
    /// its content. Failure to get the lock is a non-fatal error of class `Lock`.
    fn open(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Opened, StoreError>;

    /// Writes the last opened session and releases its lock.
    fn close(&mut self, value: &[u8]) -> Result<Closed, StoreError>;

    /// Sets the lifetime of sessions that are closed from now on, seconds. A shorter one than that
    /// of the options makes a session as old as if it had been visited earlier.
    fn set_lifetime(&mut self, lifetime_s: u64);

    /// When the handler collects in a request that PHP chose for it.
    fn collects(&self) -> Collects {
        Collects::Never
    }

    /// Deletes all sessions whose lifetime is over, as the handler does. No session of this client
    /// is open. Deletes nothing if the handler never collects.
    fn collect(&mut self) -> Result<Collected, StoreError> {
        Ok(Collected::default())
    }
}
