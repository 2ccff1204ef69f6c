//! Opening clients of session stores.

use model::{Endpoint, ErrorClass, Failure};
use workloads::store::{PageStore, SessionStore, StoreError};

use crate::{SessionOptions, disk, files, mysql, postgres, redis, sqlite};

/// Opens one client with the plain layout.
///
/// Connects to the server, logs in and sends one request, so that a wrong password (`Denied`), a
/// closed port (`Refused`) and a hanging server (`Timeout`) fail here.
pub fn open_session_store(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn SessionStore>, Failure> {
    check(options)?;
    match endpoint {
        Endpoint::Files { .. } => files::open_plain(options),
        Endpoint::Redis { .. } => redis::open_plain(endpoint, options),
        Endpoint::Mysql(_) => mysql::open_plain(endpoint, options),
        Endpoint::Postgres(_) => postgres::open_plain(endpoint, options),
        Endpoint::Sqlite { .. } => sqlite::open_plain(options),
        Endpoint::Memcached(_) | Endpoint::Disk { .. } => Err(no_sessions(endpoint)),
    }
    .map_err(Failure::from)
}

/// Opens one client of a store of keys and values, which several clients write: the plain layout,
/// in which a write of a file replaces it whole. Errors as [`open_session_store`].
pub fn open_entry_store(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn SessionStore>, Failure> {
    match endpoint {
        Endpoint::Files { .. } => Ok(files::open_entries(options)?),
        Endpoint::Disk { .. } => Ok(disk::open_blocks(options)?),
        _ => open_session_store(endpoint, options),
    }
}

/// Opens one client of a shop's session handler; errors as [`open_session_store`].
pub fn open_page_store(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn PageStore>, Failure> {
    check(options)?;
    match endpoint {
        Endpoint::Files { .. } => files::open_page(options),
        Endpoint::Redis { .. } => redis::open_page(endpoint, options),
        Endpoint::Mysql(_) => mysql::open_page(endpoint, options),
        Endpoint::Postgres(_) => postgres::open_page(endpoint, options),
        Endpoint::Sqlite { .. } => sqlite::open_page(options),
        Endpoint::Memcached(_) | Endpoint::Disk { .. } => Err(no_sessions(endpoint)),
    }
    .map_err(Failure::from)
}

fn no_sessions(endpoint: &Endpoint) -> StoreError {
    let why = endpoint.no_sessions().unwrap_or("it stores no sessions");
    StoreError::fatal(ErrorClass::Other, why)
}

fn check(options: &SessionOptions) -> Result<(), Failure> {
    let wrong = |message: &str| Err(Failure { class: ErrorClass::Other, message: message.into() });
    if options.ttl_s == 0 {
        return wrong(
            "with a lifetime of `0` seconds nothing is stored (expected at least 1: ttl_s)",
        );
    }
    if options.timeout.is_zero() {
        return wrong("`timeout` is 0, so every call would fail (expected more than 0)");
    }
    Ok(())
}
