//! Symfony's `PdoSessionHandler` (7.1) with its default lock, a transaction; Shopware's default
//! session store. PDO emulates prepared statements, so every statement goes as text.
//!
//! Open: `SET TRANSACTION ISOLATION LEVEL READ COMMITTED`, `START TRANSACTION`,
//! `SELECT … FOR UPDATE`; a row that is missing is inserted empty to hold the lock, and where
//! somebody else was first (duplicate key), the transaction is rolled back and begun again.
//! Close: `INSERT … ON DUPLICATE KEY UPDATE`, `COMMIT`.
//!
//! The connection is kept, whatever the workload says about connections: connecting is not part
//! of a page. An open that cannot have its lock ends in an error of class `Lock` with the
//! transaction rolled back.

use std::time::{Duration, Instant};

use ::mysql::prelude::Queryable;
use ::mysql::{Conn, Error, Row};
use model::{Endpoint, ErrorClass};
use workloads::store::{Closed, Found, LockWait, Opened, PageStore, StoreError};

use super::server::Server;
use super::sql;
use crate::SessionOptions;
use crate::clock::now_s;

/// A statement that takes the lock and is answered later than this is counted as having waited.
/// Nothing tells it exactly: InnoDB counts waits for the whole server only, and asking with
/// `NOWAIT` first would send what Symfony does not send. A free row is answered in well under a
/// millisecond; waits that are shorter than this are missed, and a server that stalls for longer
/// is taken for a wait.
const WAITED_FROM: Duration = Duration::from_millis(2);

/// Number of the server error "duplicate entry".
const DUPLICATE: u16 = 1062;

pub(super) struct Page {
    server: Server,
    conn: Conn,
    table: String,
    ttl_s: u64,
    id: String,
    open: bool,
    sql: String,
}

impl Page {
    pub(super) fn open(
        endpoint: &Endpoint,
        options: &SessionOptions,
        table: &str,
    ) -> Result<Self, StoreError> {
        // The server gives up waiting for a lock (50 s by default) before we give up on the
        // server: InnoDB counts in whole seconds from 1, so we wait for at least 2.
        let timeout = options.timeout.max(Duration::from_secs(2));
        let wait_s = timeout.saturating_sub(Duration::from_millis(500)).as_secs();
        let statement = format!("SET SESSION innodb_lock_wait_timeout = {wait_s}");
        let server = Server::with_statements(endpoint, timeout, vec![statement])?;
        Ok(Self {
            conn: server.connect()?,
            server,
            table: table.into(),
            ttl_s: options.ttl_s,
            id: String::new(),
            open: false,
            sql: String::new(),
        })
    }

    fn run(&mut self, statement: &str) -> Result<(), StoreError> {
        self.conn.query_drop(statement).map_err(|e| self.server.error(&e))
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        self.run("START TRANSACTION")
    }

    /// Rolls back after `e`, which stays the error to be told.
    fn give_up(&mut self, e: StoreError) -> StoreError {
        if e.fatal {
            return e;
        }
        self.run("ROLLBACK").err().unwrap_or(e)
    }

    /// Takes the lock and reads, in the transaction that was begun.
    fn locked_read(&mut self, value: &mut Vec<u8>) -> Result<Opened, StoreError> {
        let mut waited = Duration::ZERO;
        for attempt in 1..=2 {
            let started = Instant::now();
            self.select();
            let row: Option<Row> =
                self.conn.query_first(&self.sql).map_err(|e| self.server.error(&e))?;
            waited += long(started);
            if let Some(row) = row {
                return Ok(Opened { found: session(row, value)?, lock: lock(attempt, waited) });
            }
            value.clear();
            let started = Instant::now();
            self.insert(&[], 0, "");
            let result = self.conn.query_drop(&self.sql);
            waited += long(started);
            match result {
                Ok(()) => return Ok(Opened { found: Found::No, lock: lock(attempt, waited) }),
                Err(Error::MySqlError(e)) if e.code == DUPLICATE && attempt == 1 => {
                    // It was created and committed while this insert waited.
                    waited = waited.max(started.elapsed());
                    self.run("ROLLBACK")?;
                    self.begin()?;
                }
                Err(e) => return Err(self.server.error(&e)),
            }
        }
        let message = format!("session `{}` is a duplicate that nobody can read", self.id);
        Err(StoreError::soft(ErrorClass::Reply, message))
    }

    fn select(&mut self) {
        self.sql.clear();
        let head = ["SELECT sess_data, sess_lifetime FROM ", &self.table, " WHERE sess_id = "];
        self.sql.extend(head);
        sql::push_value(&mut self.sql, self.id.as_bytes(), self.conn.no_backslash_escape());
        self.sql.push_str(" FOR UPDATE");
    }

    fn insert(&mut self, value: &[u8], ttl_s: u64, behind: &str) {
        let plain = self.conn.no_backslash_escape();
        let now = now_s();
        self.sql.clear();
        let columns = " (sess_id, sess_data, sess_lifetime, sess_time) VALUES (";
        self.sql.extend(["INSERT INTO ", &self.table, columns]);
        sql::push_value(&mut self.sql, self.id.as_bytes(), plain);
        self.sql.push_str(", ");
        sql::push_value(&mut self.sql, value, plain);
        self.sql.extend([", ", &(now + ttl_s).to_string(), ", ", &now.to_string(), ")", behind]);
    }

    fn write(&mut self, value: &[u8]) -> Result<(), StoreError> {
        let behind = " ON DUPLICATE KEY UPDATE sess_data = VALUES(sess_data), \
                      sess_lifetime = VALUES(sess_lifetime), sess_time = VALUES(sess_time)";
        self.insert(value, self.ttl_s, behind);
        self.conn.query_drop(&self.sql).map_err(|e| self.server.error(&e))?;
        self.run("COMMIT")
    }
}

/// How long a statement took, if that is a wait.
fn long(started: Instant) -> Duration {
    let took = started.elapsed();
    if took < WAITED_FROM { Duration::ZERO } else { took }
}

/// A wait within the server is one more attempt, as after a duplicate key.
fn lock(attempt: u32, waited: Duration) -> LockWait {
    let attempts = if waited.is_zero() { attempt } else { 2 };
    LockWait { attempts, waited_ns: waited.as_nanos() as u64 }
}

/// The data of a row, unless it has expired.
fn session(mut row: Row, value: &mut Vec<u8>) -> Result<Found, StoreError> {
    let expiry = row.take_opt::<u64, _>(1).and_then(Result::ok);
    let expiry = expiry.ok_or_else(|| {
        StoreError::soft(ErrorClass::Protocol, "column `sess_lifetime` is no number")
    })?;
    let found = super::plain::take(Some(row), 0, value)?;
    if expiry < now_s() {
        value.clear();
        return Ok(Found::No);
    }
    // The empty row that another's failed page left behind its lock is no session.
    Ok(if value.is_empty() { Found::No } else { found })
}

impl PageStore for Page {
    fn open(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Opened, StoreError> {
        if std::mem::take(&mut self.open) {
            self.run("ROLLBACK")?;
        }
        self.id.clear();
        self.id.push_str(id);
        self.begin()?;
        let opened = self.locked_read(value).map_err(|e| self.give_up(e))?;
        self.open = true;
        Ok(opened)
    }

    fn close(&mut self, value: &[u8]) -> Result<Closed, StoreError> {
        if !std::mem::take(&mut self.open) {
            return Err(StoreError::soft(ErrorClass::Other, "no session is open"));
        }
        self.write(value).map_err(|e| self.give_up(e))?;
        Ok(Closed::Kept)
    }
}
