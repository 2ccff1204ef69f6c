//! SQLite, in a file of the directory that the run makes, by its own library.
//!
//! - [`plain`]: the 2019 script's table, by kept prepared statements or a connection a call.
//! - [`page`]: the statements of Symfony's session handler, [`busy`]: how they wait.
//! - [`connection`]: the file, how it is opened, and errors as ours.
//! - [`admin`]: what is done around a run.

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
