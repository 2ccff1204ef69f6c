//! The table of the 2019 script, adapted to PostgreSQL; see [`super::admin::schema`].

use std::time::Duration;

use model::{Endpoint, ErrorClass};
use workloads::store::{Found, SessionStore, StoreError};

use super::connection::{Answer, Connection, TEXT};
use crate::fault;

/// One persistent connection with prepared statements.
pub(super) struct Persistent(Connection);

impl Persistent {
    pub(super) fn open(
        endpoint: &Endpoint,
        timeout: Duration,
        table: &str,
    ) -> Result<Self, StoreError> {
        let mut connection = Connection::open(endpoint, timeout)?;
        connection.prepare("create", &format!("INSERT INTO {table} VALUES ($1, $2, NULL)"))?;
        connection.prepare("read", &format!("SELECT value FROM {table} WHERE name = $1"))?;
        let update = format!("UPDATE {table} SET value = $1 WHERE name = $2");
        connection.prepare("replace", &update)?;
        Ok(Self(connection))
    }
}

impl SessionStore for Persistent {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        self.0.execute("create", &[(TEXT, id.as_bytes()), (TEXT, value)])?;
        Ok(())
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        take(&self.0.execute("read", &[(TEXT, id.as_bytes())])?, 0, value)
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        Ok(matched(&self.0.execute("replace", &[(TEXT, value), (TEXT, id.as_bytes())])?))
    }
}

/// A new connection for every call, and statements as text.
pub(super) struct As2019 {
    endpoint: Endpoint,
    timeout: Duration,
    table: String,
    sql: String,
}

impl As2019 {
    pub(super) fn open(
        endpoint: &Endpoint,
        timeout: Duration,
        table: &str,
    ) -> Result<Self, StoreError> {
        Connection::open(endpoint, timeout)?.close();
        let (endpoint, table) = (endpoint.clone(), table.into());
        Ok(Self { endpoint, timeout, table, sql: String::new() })
    }

    fn ask(&self) -> Result<Answer, StoreError> {
        let ask = || {
            let mut connection = Connection::open(&self.endpoint, self.timeout)?;
            let answer = connection.query(&self.sql)?;
            connection.close();
            Ok(answer)
        };
        ask().map_err(fault::of_one_call)
    }

    fn begin(&mut self, before: &str, behind: &str) {
        self.sql.clear();
        self.sql.extend([before, &self.table, behind]);
    }
}

impl SessionStore for As2019 {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        self.begin("INSERT INTO ", " VALUES (");
        push_literal(&mut self.sql, id.as_bytes())?;
        self.sql.push_str(", ");
        push_literal(&mut self.sql, value)?;
        self.sql.push_str(", NULL)");
        self.ask().map(drop)
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        self.begin("SELECT * FROM ", " WHERE name=");
        push_literal(&mut self.sql, id.as_bytes())?;
        take(&self.ask()?, 1, value)
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        self.begin("UPDATE ", " SET value=");
        push_literal(&mut self.sql, value)?;
        self.sql.push_str(" WHERE name=");
        push_literal(&mut self.sql, id.as_bytes())?;
        Ok(matched(&self.ask()?))
    }
}

fn matched(answer: &Answer) -> Found {
    if answer.affected > 0 { Found::Yes } else { Found::No }
}

/// Copies the first row's column into `value`.
fn take(answer: &Answer, column: usize, value: &mut Vec<u8>) -> Result<Found, StoreError> {
    value.clear();
    if answer.is_empty() {
        return Ok(Found::No);
    }
    let bytes = answer.column(0, column).ok_or_else(|| {
        let message = format!("column {} of the table is missing", column + 1);
        StoreError::soft(ErrorClass::Protocol, message)
    })?;
    value.extend_from_slice(bytes);
    Ok(Found::Yes)
}

/// Appends a value quoted as by `PQescapeLiteral`: quotes are doubled, and if there are
/// backslashes, these are doubled as well in a literal that starts with `E`. Errors: a value that
/// is not valid UTF-8, which a text column does not accept.
fn push_literal(sql: &mut String, value: &[u8]) -> Result<(), StoreError> {
    let text = std::str::from_utf8(value).map_err(|_| {
        let message = "a value is not valid UTF-8 (expected text, as the table has text columns)";
        StoreError::soft(ErrorClass::Other, message)
    })?;
    if text.contains('\\') {
        sql.push_str(" E");
    }
    sql.push('\'');
    for part in text.split_inclusive(['\'', '\\']) {
        sql.push_str(part);
        if let Some(last @ ('\'' | '\\')) = part.chars().last() {
            sql.push(last);
        }
    }
    sql.push('\'');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_end_their_quotes() {
        let quoted = |value: &[u8]| {
            let mut sql = String::new();
            push_literal(&mut sql, value).map(|()| sql)
        };
        assert_eq!(quoted(b"abc").unwrap(), "'abc'");
        assert_eq!(quoted(b"").unwrap(), "''");
        assert_eq!(quoted(b"a'b''").unwrap(), "'a''b'''''");
        assert_eq!(quoted(b"a'\\\n").unwrap(), " E'a''\\\\\n'");
        assert!(quoted(&[0xff]).is_err());
    }
}
