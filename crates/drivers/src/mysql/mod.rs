//! MySQL and MariaDB, through the client library `mysql` (blocking, no TLS).
//!
//! - [`plain`]: the table of the 2019 script, with persistent prepared statements or one connection
//!   per call.
//! - [`page`]: the statements of Symfony's session handler (Shopware's default).
//! - [`magento`]: Magento's tables of an application cache.
//! - [`rows`]: the table of an application that reads through a cache.
//! - [`server`]: connection options, and conversion of errors.
//! - [`sql`]: statements as text with quoted values.
//! - [`admin`]: administration around a run.

mod admin;
mod magento;
mod page;
mod plain;
mod rows;
mod server;
mod sql;

use std::time::Duration;

use model::{Connections, Endpoint, Failure};
use workloads::app_cache::TaggedCache;
use workloads::cache_aside::RowDatabase;
use workloads::store::{PageStore, SessionStore, StoreError};

use crate::pdo::Page;
use crate::tables::identifier;
use crate::{CacheOptions, SessionOptions};

pub(crate) use admin::open_admin;
use server::Server;

pub(crate) fn open_plain(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn SessionStore>, StoreError> {
    let table = identifier(&options.table)?;
    let server = Server::new(endpoint, options.timeout)?;
    Ok(match options.connections {
        Connections::Persistent => Box::new(plain::Persistent::open(server, table)?),
        Connections::As2019 => Box::new(plain::As2019::open(server, table)?),
    })
}

pub(crate) fn open_page(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn PageStore>, StoreError> {
    let table = identifier(&options.table)?;
    let connection = page::Connection::open(endpoint, options, table)?;
    Ok(Box::new(Page::new(connection, options.ttl_s)))
}

/// Opens one client of the table of users.
pub(crate) fn open_rows(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<Box<dyn RowDatabase>, StoreError> {
    Ok(Box::new(rows::Rows::open(Server::new(endpoint, timeout)?)?))
}

/// Opens one client of an application cache that uses only MySQL.
pub(crate) fn open_cache(options: &CacheOptions) -> Result<Box<dyn TaggedCache>, Failure> {
    Ok(Box::new(magento::Magento::open(options.only_endpoint("MySQL")?, options)?))
}
