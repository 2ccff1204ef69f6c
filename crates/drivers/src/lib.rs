//! Products: codecs, connections, and the layouts of real software on them.
//!
//! One folder a product ([`model::Product`]): `files`, `redis`, `mysql`; each offers a plain
//! store (one key, row or file a session, [`SessionStore`]), a page store (a shop's session
//! handler with its lock, [`PageStore`]) and an [`Admin`] that reads facts, prepares and cleans.
//! Layouts of application caches with tags ([`open_tagged_cache`]) lie beside them.
//! All of them block; each value is one client with its own connection and may move to a thread.
//! For the event loop of `load` there are the codecs of `redis` and `memcached`, put together in
//! [`wire`].
//!
//! Drivers time no operation: the engine does. Only [`workloads::store::LockWait`] is measured
//! here, because nobody else can see it.

mod admin;
mod cache;
mod clock;
mod command;
mod fault;
mod files;
pub mod kv;
pub mod memcached;
mod mysql;
mod php;
pub mod redis;
#[cfg(test)]
mod replay;
mod socket;
#[cfg(test)]
mod streams;
mod tags;
pub mod tls;
pub mod wire;

use std::path::PathBuf;
use std::time::Duration;

use model::{Connections, Endpoint, ErrorClass, Failure};
use workloads::store::{PageStore, SessionStore};

pub use admin::{Admin, Facts, Patience, Room, admin};
pub use cache::{CacheOptions, open_tagged_cache};

/// What a client needs to know besides the endpoint.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// When connections are made. Matters to the plain layout of MySQL only: files have none,
    /// Redis and every page store keep theirs.
    pub connections: Connections,
    /// Lifetime of a session in seconds, at least 1. Files have none.
    pub ttl_s: u64,
    /// Time after which an unanswered call fails, above zero.
    pub timeout: Duration,
    /// Table of MySQL, a plain identifier that [`Admin::prepare`] created.
    pub table: String,
    /// Directory of the session files: the one that [`Admin::prepare`] returned.
    pub directory: PathBuf,
}

/// Opens one client of the plain layout.
///
/// Servers are connected to, logged in to and asked for one answer, so that a wrong password
/// (`Denied`), nobody listening (`Refused`) and a hanging server (`Timeout`) show here.
pub fn open_session_store(
    endpoint: &Endpoint,
    options: &SessionOptions,
) -> Result<Box<dyn SessionStore>, Failure> {
    check(options)?;
    match endpoint {
        Endpoint::Files { .. } => files::open_plain(options),
        Endpoint::Redis { .. } => redis::open_plain(endpoint, options),
        Endpoint::Mysql { .. } => mysql::open_plain(endpoint, options),
        Endpoint::Memcached(_) => Err(memcached::no_sessions()),
    }
    .map_err(fault::failure)
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
        Endpoint::Mysql { .. } => mysql::open_page(endpoint, options),
        Endpoint::Memcached(_) => Err(memcached::no_sessions()),
    }
    .map_err(fault::failure)
}

fn check(options: &SessionOptions) -> Result<(), Failure> {
    let wrong = |message: &str| Err(Failure { class: ErrorClass::Other, message: message.into() });
    if options.ttl_s == 0 {
        return wrong("a lifetime of `0` seconds stores nothing (expected at least 1: ttl_s)");
    }
    if options.timeout.is_zero() {
        return wrong("a time-out of `0` ends every call (expected more: timeout)");
    }
    Ok(())
}
