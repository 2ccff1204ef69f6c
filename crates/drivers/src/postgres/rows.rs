//! The table of users, with a persistent connection and a prepared statement.

use std::time::Duration;

use model::Endpoint;
use workloads::cache_aside::{RowDatabase, User};
use workloads::store::{Found, StoreError};

use super::connection::{Connection, TEXT};
use crate::rows::table::{insert, select, unexpected};

const QUERY: &str = "query";

pub(super) struct Rows(Connection);

impl Rows {
    pub(super) fn open(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let mut connection = Connection::open(endpoint, timeout)?;
        connection.prepare(QUERY, &select("$1"))?;
        Ok(Self(connection))
    }
}

impl RowDatabase for Rows {
    fn insert(&mut self, users: &[User]) -> Result<(), StoreError> {
        Ok(self.0.query(&insert(users)).map(drop)?)
    }

    fn query(&mut self, number: u64, user: &mut User) -> Result<Found, StoreError> {
        let answer = self.0.execute(QUERY, &[(TEXT, number.to_string().as_bytes())])?;
        if answer.is_empty() {
            return Ok(Found::No);
        }
        let text = |at: usize| std::str::from_utf8(answer.column(0, at)?).ok();
        user.number = text(0).and_then(|id| id.parse().ok()).ok_or_else(|| unexpected(0))?;
        for (at, column) in (1..).zip(&mut user.columns) {
            column.clear();
            column.push_str(text(at).ok_or_else(|| unexpected(at))?);
        }
        Ok(Found::Yes)
    }
}
