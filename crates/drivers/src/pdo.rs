//! Symfony's `PdoSessionHandler` (7.1) with its default lock, a transaction, on whichever database:
//! Shopware's default session store.
//!
//! Open: a transaction begins, and the row is read with a lock. A row that is missing is inserted
//! empty to hold the lock; where somebody else was first (duplicate key), the transaction is rolled
//! back and begun again. SQLite locks the whole database as its transaction begins, and inserts
//! nothing. Close: the row is inserted or updated by one statement, and the transaction committed.
//!
//! The connection is kept, whatever the workload says about connections: connecting is not part
//! of a page. An open that cannot have its lock ends in an error of class `Lock` with the
//! transaction rolled back.

use std::time::{Duration, Instant};

use model::ErrorClass;
use workloads::store::{Closed, Found, LockWait, Opened, PageStore, StoreError};

use crate::clock::now_s;

/// A free row is answered in well under a millisecond.
const WAITED_FROM: Duration = Duration::from_millis(2);

/// How long to wait for the server, and how long the server may wait for a lock: it gives up first.
/// InnoDB counts in whole seconds from 1, so it takes at least two.
pub(crate) fn timeouts(asked: Duration) -> (Duration, Duration) {
    let timeout = asked.max(Duration::from_secs(2));
    (timeout, timeout.saturating_sub(Duration::from_millis(500)))
}

/// A connection as PHP's PDO gives it to the handler, with the statements that differ.
pub(crate) trait Connection: Send {
    /// True where a row is locked, by reading or inserting it; false where beginning locks all.
    const LOCKS_ROWS: bool;

    /// How long a statement that takes a lock waited for it, of the time that it took; zero where
    /// it did not.
    ///
    /// By default a wait is what takes [`WAITED_FROM`] or longer: nothing tells it exactly, as
    /// servers count waits of all clients together, and asking with `NOWAIT` first would send what
    /// Symfony does not send. Shorter waits are missed, and a server that stalls is taken for one.
    fn waited(&self, took: Duration) -> Duration {
        if took < WAITED_FROM { Duration::ZERO } else { took }
    }

    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Reads and locks a row: its data into `value`, and its column `sess_lifetime`, seconds since
    /// 1970; `None` where there is none.
    fn select(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Option<u64>, StoreError>;

    /// Inserts a row that is not there; false where it is.
    fn insert(&mut self, row: &Row<'_>) -> Result<bool, StoreError>;

    /// Inserts a row, or updates the one that is there.
    fn merge(&mut self, row: &Row<'_>) -> Result<(), StoreError>;

    /// Ends the transaction, whose changes stay.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Ends the transaction, whose changes are undone.
    fn roll_back(&mut self) -> Result<(), StoreError>;

    /// Lets go of the statements of a call, as PHP does when the handler's method returns.
    fn release(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A row of the handler's table.
pub(crate) struct Row<'a> {
    pub(crate) id: &'a str,
    pub(crate) value: &'a [u8],
    /// When it expires, seconds since 1970; now for one that only holds the lock.
    pub(crate) expires_s: u64,
    /// Now, seconds since 1970.
    pub(crate) now_s: u64,
}

/// One client of the handler.
pub(crate) struct Page<C> {
    connection: C,
    ttl_s: u64,
    id: String,
    is_open: bool,
}

impl<C: Connection> Page<C> {
    pub(crate) fn new(connection: C, ttl_s: u64) -> Self {
        Self { connection, ttl_s, id: String::new(), is_open: false }
    }

    /// Rolls back after `e`, which stays the error to be told.
    fn give_up(&mut self, e: StoreError) -> StoreError {
        if e.fatal {
            return e;
        }
        let rolled_back = self.connection.release().and_then(|()| self.connection.roll_back());
        rolled_back.err().unwrap_or(e)
    }

    fn locked_read(&mut self, value: &mut Vec<u8>) -> Result<Opened, StoreError> {
        let Self { connection, id, .. } = self;
        let started = Instant::now();
        connection.begin()?;
        let begun = if C::LOCKS_ROWS { Duration::ZERO } else { started.elapsed() };
        let mut waited = connection.waited(begun);
        for attempt in 1..=2 {
            let started = Instant::now();
            value.clear();
            let expires_s = connection.select(id, value)?;
            if C::LOCKS_ROWS {
                waited += connection.waited(started.elapsed());
            }
            if let Some(expires_s) = expires_s {
                return Ok(Opened { found: found(expires_s, value), lock: lock(attempt, waited) });
            }
            if !C::LOCKS_ROWS {
                return Ok(Opened { found: Found::No, lock: lock(attempt, waited) });
            }
            if attempt == 2 {
                break;
            }
            let started = Instant::now();
            let now_s = now_s();
            let inserted = connection.insert(&Row { id, value: &[], expires_s: now_s, now_s })?;
            waited += connection.waited(started.elapsed());
            if inserted {
                return Ok(Opened { found: Found::No, lock: lock(attempt, waited) });
            }
            // It was created and committed while this insert waited.
            waited = waited.max(started.elapsed());
            connection.roll_back()?;
            connection.begin()?;
        }
        let message = format!("session `{id}` is a duplicate that nobody can read");
        Err(StoreError::soft(ErrorClass::Reply, message))
    }

    fn write(&mut self, value: &[u8]) -> Result<(), StoreError> {
        let now_s = now_s();
        let row = Row { id: &self.id, value, expires_s: now_s + self.ttl_s, now_s };
        self.connection.merge(&row)?;
        self.connection.release()?;
        self.connection.commit()
    }
}

/// A wait within the store is one more attempt, as after a duplicate key.
fn lock(attempt: u32, waited: Duration) -> LockWait {
    let attempts = if waited.is_zero() { attempt } else { 2 };
    LockWait { attempts, waited_ns: waited.as_nanos() as u64 }
}

/// Whether a row is a session: not once it has expired, and not the empty one that another's failed
/// page left behind its lock.
fn found(expires_s: u64, value: &mut Vec<u8>) -> Found {
    if expires_s < now_s() {
        value.clear();
    }
    if value.is_empty() { Found::No } else { Found::Yes }
}

impl<C: Connection> PageStore for Page<C> {
    fn open(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Opened, StoreError> {
        if std::mem::take(&mut self.is_open) {
            self.connection.roll_back()?;
        }
        self.id.clear();
        self.id.push_str(id);
        let opened = self.locked_read(value).map_err(|e| self.give_up(e))?;
        self.connection.release()?;
        self.is_open = true;
        Ok(opened)
    }

    fn close(&mut self, value: &[u8]) -> Result<Closed, StoreError> {
        if !std::mem::take(&mut self.is_open) {
            return Err(StoreError::soft(ErrorClass::Other, "no session is open"));
        }
        self.write(value).map_err(|e| self.give_up(e))?;
        Ok(Closed::Kept)
    }
}
