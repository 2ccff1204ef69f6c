//! PostgreSQL, without TLS.
//!
//! - [`plain`]: the table of the 2019 script, with persistent prepared statements or one connection
//!   per call.
//! - [`page`]: the statements of Symfony's session handler.
//! - [`rows`]: the table of an application that reads through a cache.
//! - [`connection`]: the protocol, and conversion of the server's errors.
//! - [`admin`]: administration around a run.

mod admin;
mod connection;
mod page;
mod plain;
mod rows;

use std::time::Duration;

use model::{Connections, Endpoint};
use workloads::cache_aside::RowDatabase;
use workloads::store::{PageStore, SessionStore, StoreError};

use crate::SessionOptions;
use crate::pdo::Page;
use crate::tables::identifier;

pub(crate) use admin::open_admin;

pub(crate) fn open_plain(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn SessionStore>, StoreError> {
    let table = identifier(&options.table)?;
    Ok(match options.connections {
        Connections::Persistent => {
            Box::new(plain::Persistent::open(endpoint, options.timeout, table)?)
        }
        Connections::As2019 => Box::new(plain::As2019::open(endpoint, options.timeout, table)?),
    })
}

pub(crate) fn open_page(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn PageStore>, StoreError> {
    let table = identifier(&options.table)?;
    let connection = page::Connection::open(endpoint, options.timeout, table)?;
    Ok(Box::new(Page::new(connection, options.ttl_s)))
}

/// Opens one client of the table of users.
pub(crate) fn open_rows(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<Box<dyn RowDatabase>, StoreError> {
    Ok(Box::new(rows::Rows::open(endpoint, timeout)?))
}
