//! The table of the 2019 script, adapted to SQLite; see [`super::admin::schema`].

use std::path::PathBuf;
use std::time::Duration;

use ::rusqlite::types::{ToSqlOutput, ValueRef};
use ::rusqlite::{Connection, Error, OptionalExtension as _, params};
use workloads::store::{Found, SessionStore, StoreError};

use super::connection::{TABLE, error, open};
use crate::SessionOptions;

/// One persistent connection with prepared statements.
pub(super) struct Persistent(Connection);

impl Persistent {
    pub(super) fn open(options: &SessionOptions) -> Result<Self, StoreError> {
        Ok(Self(open(&options.directory, options.timeout)?))
    }
}

impl SessionStore for Persistent {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        create(&self.0, id, value).map_err(|e| error(&e))
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        let select = format!("SELECT value FROM {TABLE} WHERE name = ?");
        read(&self.0, &select, 0, (id, value)).map_err(|e| error(&e))
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        replace(&self.0, id, value).map_err(|e| error(&e))
    }
}

/// A new connection for every call.
pub(super) struct As2019 {
    directory: PathBuf,
    timeout: Duration,
}

impl As2019 {
    pub(super) fn open(options: &SessionOptions) -> Result<Self, StoreError> {
        open(&options.directory, options.timeout)?;
        Ok(Self { directory: options.directory.clone(), timeout: options.timeout })
    }

    fn call<T>(&self, call: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, StoreError> {
        let connection = open(&self.directory, self.timeout)?;
        let done = call(&connection).map_err(|e| error(&e))?;
        connection.close().map_err(|(_, e)| error(&e))?;
        Ok(done)
    }
}

impl SessionStore for As2019 {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        self.call(|connection| create(connection, id, value))
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        let select = format!("SELECT * FROM {TABLE} WHERE name = ?");
        self.call(|connection| read(connection, &select, 1, (id, value)))
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        self.call(|connection| replace(connection, id, value))
    }
}

/// A value as bound by PHP, as text.
fn text(value: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(value))
}

fn create(connection: &Connection, id: &str, value: &[u8]) -> Result<(), Error> {
    let insert = format!("INSERT INTO {TABLE} VALUES (?, ?, NULL)");
    connection.prepare_cached(&insert)?.execute(params![id, text(value)])?;
    Ok(())
}

/// Copies a column of the row into `value`.
fn read(
    connection: &Connection,
    select: &str,
    column: usize,
    (id, value): (&str, &mut Vec<u8>),
) -> Result<Found, Error> {
    value.clear();
    let mut statement = connection.prepare_cached(select)?;
    let found = statement.query_row([id], |row| {
        value.extend_from_slice(row.get_ref(column)?.as_bytes()?);
        Ok(())
    });
    Ok(if found.optional()?.is_some() { Found::Yes } else { Found::No })
}

fn replace(connection: &Connection, id: &str, value: &[u8]) -> Result<Found, Error> {
    let update = format!("UPDATE {TABLE} SET value = ? WHERE name = ?");
    let rows = connection.prepare_cached(&update)?.execute(params![text(value), id])?;
    Ok(if rows > 0 { Found::Yes } else { Found::No })
}
