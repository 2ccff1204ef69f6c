//! Symfony's `PdoSessionHandler` (7.1) on any database, with its default lock, a transaction:
//! Shopware's default session store.
//!
//! Open: starts a transaction and reads the row with a lock. A missing row is inserted empty to
//! hold the lock. If another client inserted it first (duplicate key), the transaction is rolled
//! back and started again. SQLite locks the whole database at the start of a transaction and
//! inserts nothing. Close: inserts or updates the row with one statement and commits.
//!
//! A request that PHP chose to collect deletes the rows whose lifetime is over with one statement,
//! after its own commit: `gc()` only sets a flag, and `close()` deletes. Versions before 6.0 send a
//! second `DELETE`, for rows of versions before 4.4.
//!
//! The connection stays open regardless of the workload's connection setting: connecting is not
//! part of a page. An open that cannot get its lock fails with an error of class `Lock` and a
//! rolled-back transaction.

use std::time::{Duration, Instant};

use model::ErrorClass;
use workloads::store::{
    Closed, Collected, Collects, Found, LockWait, Opened, PageStore, StoreError,
};

use crate::clock::now_s;

/// Shortest time of a statement that counts as a lock wait. Reading an unlocked row takes well
/// under a millisecond.
const WAITED_FROM: Duration = Duration::from_millis(2);

/// Timeouts of the client and of the server's lock wait; the server gives up first. InnoDB counts
/// in whole seconds from 1, so the minimum is two.
pub(crate) fn timeouts(requested: Duration) -> (Duration, Duration) {
    let timeout = requested.max(Duration::from_secs(2));
    (timeout, timeout.saturating_sub(Duration::from_millis(500)))
}

/// A connection as PHP's PDO gives it to the handler. Implementations differ in their statements.
pub(crate) trait Connection: Send {
    /// True if reading or inserting locks the row; false if starting the transaction locks the
    /// whole database.
    const LOCKS_ROWS: bool;

    /// Lock wait of a locking statement that took `took`; zero if it did not wait.
    ///
    /// By default, [`WAITED_FROM`] or longer counts as a wait. No exact figure exists: servers
    /// count waits of all clients together, and trying `NOWAIT` first would send a statement that
    /// Symfony does not send. Shorter waits are missed, and a stalled server is counted as a wait.
    fn waited(&self, took: Duration) -> Duration {
        if took < WAITED_FROM { Duration::ZERO } else { took }
    }

    /// Starts a transaction.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Reads and locks a row. Stores its data in `value` and returns its column `sess_lifetime`,
    /// seconds since 1970; `None` if the row does not exist.
    fn select(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Option<u64>, StoreError>;

    /// Inserts a new row; false if it already exists.
    fn insert(&mut self, row: &Row<'_>) -> Result<bool, StoreError>;

    /// Inserts a row or updates the existing one.
    fn merge(&mut self, row: &Row<'_>) -> Result<(), StoreError>;

    /// Commits the transaction.
    fn commit(&mut self) -> Result<(), StoreError>;

    /// Rolls the transaction back.
    fn roll_back(&mut self) -> Result<(), StoreError>;

    /// Deletes the rows whose lifetime ended before `now_s`, outside a transaction; returns their
    /// number.
    fn delete_expired(&mut self, now_s: u64) -> Result<u64, StoreError>;

    /// Releases the statements of a call, as PHP does when the handler's method returns.
    fn release(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A row of the handler's table.
pub(crate) struct Row<'a> {
    pub(crate) id: &'a str,
    pub(crate) value: &'a [u8],
    /// Expiry time, seconds since 1970; the current time for a row that only holds the lock.
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

    /// Rolls back after `e`. Returns `e`, or the error of the rollback.
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
        let begin_time = if C::LOCKS_ROWS { Duration::ZERO } else { started.elapsed() };
        let mut waited = connection.waited(begin_time);
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
            // Another client created and committed the row while this insert waited.
            waited = waited.max(started.elapsed());
            connection.roll_back()?;
            connection.begin()?;
        }
        let message = format!("session `{id}` is a duplicate key but cannot be read");
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

/// A wait inside the store counts as a second attempt, as does a duplicate key.
fn lock(attempt: u32, waited: Duration) -> LockWait {
    let attempts = if waited.is_zero() { attempt } else { 2 };
    LockWait { attempts, waited_ns: waited.as_nanos() as u64 }
}

/// Whether a row contains a session. An expired row does not, nor does the empty row that a failed
/// page left behind.
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

    fn set_lifetime(&mut self, lifetime_s: u64) {
        self.ttl_s = lifetime_s;
    }

    fn collects(&self) -> Collects {
        Collects::AfterClose
    }

    fn collect(&mut self) -> Result<Collected, StoreError> {
        let deleted = self.connection.delete_expired(now_s());
        self.connection.release()?;
        Ok(Collected { deleted: deleted?, files: 0 })
    }
}
