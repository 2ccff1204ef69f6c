//! What a store must offer to be measured, from the view of one client with its own connection.
//!
//! A call blocks until it is answered or timed out. Every implementor checks the whole reply:
//! type and status here, length and content in the workload.

use model::{ErrorClass, Failure};

/// Whether a session was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was.
    Yes,
    /// It was not (never written, expired or evicted).
    No,
}

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{class}: {message}")]
pub struct StoreError {
    /// Class of the fault.
    pub class: ErrorClass,
    /// One lower-case sentence that names the store's own words; free of credentials.
    pub message: String,
    /// True when the connection can no longer be used, so that the trial ends.
    pub fatal: bool,
}

impl StoreError {
    /// A fault after which the connection is still good.
    pub fn soft(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), fatal: false }
    }

    /// A fault that ends the client's work.
    pub fn fatal(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), fatal: true }
    }
}

/// The reason why a target cannot be used.
impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Self {
        Self { class: e.class, message: e.message }
    }
}

/// One client of a plain session store: one key, row or file a session.
pub trait SessionStore: Send {
    /// Stores a session that does not exist yet.
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError>;

    /// Reads a session into `value`, whose earlier content is replaced.
    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError>;

    /// Replaces the value of an existing session. `Found::No` where the store tells that there
    /// was none; stores that overwrite blindly (files, Redis) always answer `Found::Yes`.
    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError>;
}

/// How the lock of a session was had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockWait {
    /// Attempts made, at least 1; 1 means that the lock was free.
    pub attempts: u32,
    /// Nanoseconds from the first attempt to the lock; 0 when it was free.
    pub waited_ns: u64,
}

/// What opening a page's session gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Whether the session existed.
    pub found: Found,
    /// How its lock was had.
    pub lock: LockWait,
}

/// What closing a page's session gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Written and released.
    Kept,
    /// The lock was gone or somebody else's: the handler did not write, or wrote unprotected.
    LockLost,
}

/// One client of a real shop's session handler: opens a session under its lock and closes it.
pub trait PageStore: Send {
    /// Takes the session's lock as the handler does and reads it into `value`, whose earlier
    /// content is replaced. A lock that cannot be had is an error of class `Lock`, not fatal.
    fn open(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Opened, StoreError>;

    /// Writes the session opened last and releases its lock.
    fn close(&mut self, value: &[u8]) -> Result<Closed, StoreError>;
}
