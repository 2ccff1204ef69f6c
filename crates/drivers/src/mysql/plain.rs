//! The table of the 2019 script with three columns. The script only published that they are named
//! `name` and `value` and that the third accepts NULL. See [`super::admin::schema`] for ours.

use ::mysql::prelude::Queryable;
use ::mysql::{Conn, Error, Row, Statement};
use model::ErrorClass;
use workloads::store::{Found, SessionStore, StoreError};

use super::server::Server;
use super::sql;
use crate::fault;

/// One persistent connection with prepared statements.
pub(super) struct Persistent {
    server: Server,
    conn: Conn,
    insert: Statement,
    select: Statement,
    update: Statement,
}

impl Persistent {
    pub(super) fn open(server: Server, table: &str) -> Result<Self, StoreError> {
        let mut conn = server.connect()?;
        let mut prepare = |sql: String| conn.prep(sql).map_err(|e| server.error(&e));
        let insert = prepare(format!("INSERT INTO {table} VALUES (?, ?, NULL)"))?;
        let select = prepare(format!("SELECT value FROM {table} WHERE name = ?"))?;
        let update = prepare(format!("UPDATE {table} SET value = ? WHERE name = ?"))?;
        Ok(Self { server, conn, insert, select, update })
    }
}

impl SessionStore for Persistent {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        let done = self.conn.exec_drop(&self.insert, (id, value));
        done.map_err(|e| self.server.error(&e))
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        let row = self.conn.exec_first(&self.select, (id,));
        take(row.map_err(|e| self.server.error(&e))?, 0, value)
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        let done = self.conn.exec_drop(&self.update, (value, id));
        done.map_err(|e| self.server.error(&e))?;
        Ok(matched(&self.conn))
    }
}

/// A new connection for every call, closed by `COM_QUIT`, and statements as text.
pub(super) struct As2019 {
    server: Server,
    table: String,
    sql: String,
}

impl As2019 {
    pub(super) fn open(server: Server, table: &str) -> Result<Self, StoreError> {
        server.connect().map(drop)?;
        Ok(Self { server, table: table.into(), sql: String::new() })
    }

    fn connect(&self) -> Result<Conn, StoreError> {
        self.server.connect().map_err(fault::of_one_call)
    }

    fn error(&self, e: &Error) -> StoreError {
        fault::of_one_call(self.server.error(e))
    }
}

impl SessionStore for As2019 {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        let mut conn = self.connect()?;
        let plain = conn.no_backslash_escape();
        begin(&mut self.sql, &["INSERT INTO ", &self.table, " VALUES ("]);
        sql::push_value(&mut self.sql, id.as_bytes(), plain);
        self.sql.push_str(", ");
        sql::push_value(&mut self.sql, value, plain);
        self.sql.push_str(", NULL)");
        conn.query_drop(&self.sql).map_err(|e| self.error(&e))
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        let mut conn = self.connect()?;
        begin(&mut self.sql, &["SELECT * FROM ", &self.table, " WHERE name="]);
        sql::push_value(&mut self.sql, id.as_bytes(), conn.no_backslash_escape());
        let row = conn.query_first(&self.sql).map_err(|e| self.error(&e))?;
        take(row, 1, value)
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        let mut conn = self.connect()?;
        let plain = conn.no_backslash_escape();
        begin(&mut self.sql, &["UPDATE ", &self.table, " SET value="]);
        sql::push_value(&mut self.sql, value, plain);
        self.sql.push_str(" WHERE name=");
        sql::push_value(&mut self.sql, id.as_bytes(), plain);
        conn.query_drop(&self.sql).map_err(|e| self.error(&e))?;
        Ok(matched(&conn))
    }
}

fn begin(sql: &mut String, parts: &[&str]) {
    sql.clear();
    sql.extend(parts.iter().copied());
}

/// The connection reports matched rows, so a row with an unchanged value counts, too.
fn matched(conn: &Conn) -> Found {
    if conn.affected_rows() > 0 { Found::Yes } else { Found::No }
}

/// Moves a byte column of a row into `value`.
pub(super) fn take(
    row: Option<Row>,
    column: usize,
    value: &mut Vec<u8>,
) -> Result<Found, StoreError> {
    value.clear();
    let Some(mut row) = row else { return Ok(Found::No) };
    match row.take::<::mysql::Value, usize>(column) {
        Some(::mysql::Value::Bytes(bytes)) => {
            *value = bytes;
            Ok(Found::Yes)
        }
        other => {
            let kind = if other.is_some() { "is not text" } else { "is missing" };
            let message = format!("column {} of the table {kind}", column + 1);
            Err(StoreError::soft(ErrorClass::Protocol, message))
        }
    }
}
