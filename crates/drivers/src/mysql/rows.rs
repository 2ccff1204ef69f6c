//! The table of users, with a persistent connection and a prepared statement.

use ::mysql::prelude::Queryable;
use ::mysql::{Conn, Row, Statement, Value};
use workloads::cache_aside::{RowDatabase, User};
use workloads::store::{Found, StoreError};

use super::server::Server;
use crate::rows::table::{insert, select, unexpected};

pub(super) struct Rows {
    server: Server,
    conn: Conn,
    select: Statement,
}

impl Rows {
    pub(super) fn open(server: Server) -> Result<Self, StoreError> {
        let mut conn = server.connect()?;
        let select = conn.prep(select("?")).map_err(|e| server.error(&e))?;
        Ok(Self { server, conn, select })
    }
}

impl RowDatabase for Rows {
    fn insert(&mut self, users: &[User]) -> Result<(), StoreError> {
        self.conn.query_drop(insert(users)).map_err(|e| self.server.error(&e))
    }

    fn query(&mut self, number: u64, user: &mut User) -> Result<Found, StoreError> {
        let row: Option<Row> =
            self.conn.exec_first(&self.select, (number,)).map_err(|e| self.server.error(&e))?;
        let Some(mut row) = row else { return Ok(Found::No) };
        let id = row.take_opt::<u64, _>(0).and_then(Result::ok);
        user.number = id.ok_or_else(|| unexpected(0))?;
        for (at, column) in (1..).zip(&mut user.columns) {
            let text = match row.take::<Value, usize>(at) {
                Some(Value::Bytes(bytes)) => String::from_utf8(bytes).ok(),
                _ => None,
            };
            *column = text.ok_or_else(|| unexpected(at))?;
        }
        Ok(Found::Yes)
    }
}
