//! Statements of Symfony's `PdoSessionHandler` on MySQL. PDO emulates prepared statements there, so
//! every statement is sent as text:
//!
//! `SET TRANSACTION ISOLATION LEVEL READ COMMITTED`, `START TRANSACTION`, `SELECT … FOR UPDATE`,
//! `INSERT`; `INSERT … ON DUPLICATE KEY UPDATE`, `COMMIT`; `DELETE` of expired rows.

use ::mysql::prelude::Queryable;
use ::mysql::{Conn, Error, Row};
use model::{Endpoint, ErrorClass};
use workloads::store::StoreError;

use super::server::Server;
use super::sql;
use crate::SessionOptions;
use crate::pdo;

/// Code of the server error "duplicate entry".
const DUPLICATE: u16 = 1062;

pub(super) struct Connection {
    server: Server,
    conn: Conn,
    table: String,
    sql: String,
}

impl Connection {
    pub(super) fn open(
        endpoint: &Endpoint,
        options: &SessionOptions,
        table: &str,
    ) -> Result<Self, StoreError> {
        // By default the server waits 50 s for a lock.
        let (timeout, wait) = pdo::timeouts(options.timeout);
        let statement = format!("SET SESSION innodb_lock_wait_timeout = {}", wait.as_secs());
        let server = Server::with_statements(endpoint, timeout, vec![statement])?;
        Ok(Self { conn: server.connect()?, server, table: table.into(), sql: String::new() })
    }

    fn run(&mut self, statement: &str) -> Result<(), StoreError> {
        self.conn.query_drop(statement).map_err(|e| self.server.error(&e))
    }

    /// Sends the insert of a row; `behind` follows its values.
    fn send(&mut self, row: &pdo::Row<'_>, behind: &str) -> Result<(), Error> {
        let plain = self.conn.no_backslash_escape();
        self.sql.clear();
        let columns = " (sess_id, sess_data, sess_lifetime, sess_time) VALUES (";
        self.sql.extend(["INSERT INTO ", &self.table, columns]);
        sql::push_value(&mut self.sql, row.id.as_bytes(), plain);
        self.sql.push_str(", ");
        sql::push_value(&mut self.sql, row.value, plain);
        let (expires_s, now_s) = (row.expires_s.to_string(), row.now_s.to_string());
        self.sql.extend([", ", &expires_s, ", ", &now_s, ")", behind]);
        self.conn.query_drop(&self.sql)
    }
}

impl pdo::Connection for Connection {
    const LOCKS_ROWS: bool = true;

    fn begin(&mut self) -> Result<(), StoreError> {
        self.run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
        self.run("START TRANSACTION")
    }

    fn select(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Option<u64>, StoreError> {
        self.sql.clear();
        let head = ["SELECT sess_data, sess_lifetime FROM ", &self.table, " WHERE sess_id = "];
        self.sql.extend(head);
        sql::push_value(&mut self.sql, id.as_bytes(), self.conn.no_backslash_escape());
        self.sql.push_str(" FOR UPDATE");
        let row: Option<Row> =
            self.conn.query_first(&self.sql).map_err(|e| self.server.error(&e))?;
        let Some(mut row) = row else { return Ok(None) };
        let expires_s = row.take_opt::<u64, _>(1).and_then(Result::ok);
        let expires_s = expires_s.ok_or_else(|| {
            StoreError::soft(ErrorClass::Protocol, "column `sess_lifetime` is not a number")
        })?;
        super::plain::take(Some(row), 0, value)?;
        Ok(Some(expires_s))
    }

    fn insert(&mut self, row: &pdo::Row<'_>) -> Result<bool, StoreError> {
        match self.send(row, "") {
            Ok(()) => Ok(true),
            Err(Error::MySqlError(e)) if e.code == DUPLICATE => Ok(false),
            Err(e) => Err(self.server.error(&e)),
        }
    }

    fn merge(&mut self, row: &pdo::Row<'_>) -> Result<(), StoreError> {
        let behind = " ON DUPLICATE KEY UPDATE sess_data = VALUES(sess_data), \
                      sess_lifetime = VALUES(sess_lifetime), sess_time = VALUES(sess_time)";
        self.send(row, behind).map_err(|e| self.server.error(&e))
    }

    fn delete_expired(&mut self, now_s: u64) -> Result<u64, StoreError> {
        let statement = format!("DELETE FROM {} WHERE sess_lifetime < {now_s}", self.table);
        self.run(&statement)?;
        Ok(self.conn.affected_rows())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT")
    }

    fn roll_back(&mut self) -> Result<(), StoreError> {
        self.run("ROLLBACK")
    }
}
