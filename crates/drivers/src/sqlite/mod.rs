//! SQLite, in a file in the run's directory, through its own library.
//!
//! - [`plain`]: the table of the 2019 script, with persistent prepared statements or one connection
//!   per call.
//! - [`page`]: the statements of Symfony's session handler; [`busy`]: their lock waits.
//! - [`connection`]: the file, and conversion of errors.
//! - [`admin`]: administration around a run.

mod admin;
mod busy;
mod connection;
mod page;
mod plain;

use model::Connections;
use workloads::store::{PageStore, SessionStore, StoreError};

use crate::SessionOptions;
use crate::pdo::Page;

pub(crate) use admin::open_admin;

pub(crate) fn open_plain(options: &SessionOptions) -> Result<Box<dyn SessionStore>, StoreError> {
    Ok(match options.connections {
        Connections::Persistent => Box::new(plain::Persistent::open(options)?),
        Connections::As2019 => Box::new(plain::As2019::open(options)?),
    })
}

pub(crate) fn open_page(options: &SessionOptions) -> Result<Box<dyn PageStore>, StoreError> {
    Ok(Box::new(Page::new(page::Connection::open(options)?, options.ttl_s)))
}
