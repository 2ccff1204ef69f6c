//! Rows of a database and a cache in front of them, for an application that reads through the
//! cache.
//!
//! - [`table`]: the table of users, on every SQL server.
//! - [`waiting`]: waiting for another client's lock.

pub(crate) mod table;
pub(crate) mod waiting;

use std::time::Duration;

use model::{Endpoint, ErrorClass, Failure};
use workloads::cache_aside::{RowCache, RowDatabase};
use workloads::store::StoreError;

use crate::{memcached, mysql, postgres, redis};

/// Opens one client of a database with the table that
/// [`Admin::prepare_rows`](crate::Admin::prepare_rows) creates: connects and prepares its
/// statements.
pub fn open_row_database(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<Box<dyn RowDatabase>, Failure> {
    match endpoint {
        Endpoint::Mysql(_) => mysql::open_rows(endpoint, timeout),
        Endpoint::Postgres(_) => postgres::open_rows(endpoint, timeout),
        _ => Err(unfit(endpoint, "a database", "mysql or postgres")),
    }
    .map_err(Failure::from)
}

/// Opens one client of a cache whose values live for `ttl_s` seconds, at least 1.
pub fn open_row_cache(
    endpoint: &Endpoint,
    ttl_s: u64,
    timeout: Duration,
) -> Result<Box<dyn RowCache>, Failure> {
    match endpoint {
        Endpoint::Redis { .. } => redis::open_rows(endpoint, ttl_s, timeout),
        Endpoint::Memcached(_) => memcached::open_rows(endpoint, ttl_s, timeout),
        _ => Err(unfit(endpoint, "a cache", "redis or memcached")),
    }
    .map_err(Failure::from)
}

fn unfit(endpoint: &Endpoint, what: &str, expected: &str) -> StoreError {
    let product = endpoint.product().name();
    StoreError::fatal(ErrorClass::Other, format!("{product} is not {what} (expected {expected})"))
}
