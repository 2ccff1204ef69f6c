//! Statements of Symfony's `PdoSessionHandler` on SQLite. PDO recompiles each
//! statement for every call.
//!
//! `BEGIN IMMEDIATE TRANSACTION`, which locks the whole database against other writers, so that
//! only one page at a time can have an open session; `SELECT`; `INSERT OR REPLACE`, `COMMIT`;
//! `DELETE` of expired rows.

use std::time::Duration;

use ::rusqlite::{OptionalExtension as _, params};
use workloads::store::StoreError;

use super::busy;
use super::connection::{TABLE, error, open};
use crate::SessionOptions;
use crate::pdo;

pub(super) struct Connection {
    inner: ::rusqlite::Connection,
    /// Longest wait for a lock.
    timeout: Duration,
}

impl Connection {
    pub(super) fn open(options: &SessionOptions) -> Result<Self, StoreError> {
        let inner = open(&options.directory, options.timeout)?;
        inner.busy_handler(Some(busy::pause)).map_err(|e| error(&e))?;
        Ok(Self { inner, timeout: options.timeout })
    }

    fn run(&self, statement: &str) -> Result<(), StoreError> {
        busy::begin(self.timeout);
        self.inner.execute_batch(statement).map_err(|e| error(&e))
    }

    fn write(&self, verb: &str, row: &pdo::Row<'_>) -> Result<(), StoreError> {
        let statement = format!(
            "{verb} INTO {TABLE} (sess_id, sess_data, sess_lifetime, sess_time) \
             VALUES (?, ?, ?, ?)"
        );
        busy::begin(self.timeout);
        let (expires_s, now_s) = (row.expires_s.cast_signed(), row.now_s.cast_signed());
        let written = self.inner.execute(&statement, params![row.id, row.value, expires_s, now_s]);
        written.map(drop).map_err(|e| error(&e))
    }
}

impl pdo::Connection for Connection {
    const LOCKS_ROWS: bool = false;

    fn waited(&self, took: Duration) -> Duration {
        if busy::paused() { took } else { Duration::ZERO }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.run("BEGIN IMMEDIATE TRANSACTION")
    }

    fn select(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Option<u64>, StoreError> {
        let statement = format!("SELECT sess_data, sess_lifetime FROM {TABLE} WHERE sess_id = ?");
        busy::begin(self.timeout);
        let read = self.inner.query_row(&statement, [id], |row| {
            value.extend_from_slice(row.get_ref(0)?.as_bytes()?);
            row.get::<_, i64>(1).map(|expires_s| expires_s.max(0).cast_unsigned())
        });
        read.optional().map_err(|e| error(&e))
    }

    fn insert(&mut self, row: &pdo::Row<'_>) -> Result<bool, StoreError> {
        self.write("INSERT", row).map(|()| true)
    }

    fn merge(&mut self, row: &pdo::Row<'_>) -> Result<(), StoreError> {
        self.write("INSERT OR REPLACE", row)
    }

    fn delete_expired(&mut self, now_s: u64) -> Result<u64, StoreError> {
        busy::begin(self.timeout);
        let statement = format!("DELETE FROM {TABLE} WHERE sess_lifetime < ?");
        let deleted = self.inner.execute(&statement, [now_s.cast_signed()]);
        deleted.map(|rows| rows as u64).map_err(|e| error(&e))
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT")
    }

    fn roll_back(&mut self) -> Result<(), StoreError> {
        // If no transaction could start, there is nothing to roll back.
        if self.inner.is_autocommit() { Ok(()) } else { self.run("ROLLBACK") }
    }
}
