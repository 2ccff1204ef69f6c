//! Products: codecs, connections and the storage layouts of real software.
//!
//! Each product ([`model::Product`]) has its own folder. Products that store sessions offer a plain
//! store (one key, row or file per session, [`open_session_store`]), a page store (a shop's session
//! handler with its lock, [`open_page_store`]) and an [`Admin`] that reads facts, prepares and
//! cleans up. Layouts of application caches with tags are opened by [`open_tagged_cache`], rows of
//! a database and the cache in front of it by [`open_row_database`] and [`open_row_cache`]. All
//! calls block. Each value is one client with its own connection and can move to another thread.
//! [`wire`] combines the codecs of `redis` and `memcached` for the event loop of `load`.
//!
//! Drivers do not time operations; the engine does. They only measure
//! [`workloads::store::LockWait`], which is not visible from outside.

mod admin;
mod bounded;
mod cache;
mod clock;
mod command;
mod disk;
mod fault;
mod files;
pub mod kv;
mod lines;
pub mod memcached;
mod mysql;
mod options;
mod patience;
mod pdo;
mod php;
mod postgres;
pub mod redis;
#[cfg(test)]
mod replay;
mod rows;
mod sessions;
mod socket;
mod sqlite;
#[cfg(test)]
mod streams;
mod symfony;
mod tables;
mod tags;
pub mod tls;
mod tls_fault;
pub mod wire;

use std::io;
use std::time::Duration;

use model::{Endpoint, Failure, NetAddress};

pub use admin::{Admin, Facts, MemoryStats};
pub use cache::open_tagged_cache;
pub use options::{CacheOptions, SessionOptions};
pub use patience::CleanupDeadline;
pub use rows::{open_row_cache, open_row_database};
pub use sessions::{open_entry_store, open_page_store, open_session_store};

/// Checks that a server is listening at an address. Errors: those of the system, including a
/// timeout.
pub fn reach(address: &NetAddress, timeout: Duration) -> io::Result<()> {
    socket::reach(address, timeout)
}

/// Opens an administrative connection; errors as [`open_session_store`].
pub fn admin(endpoint: &Endpoint, timeout: Duration) -> Result<Box<dyn Admin>, Failure> {
    match endpoint {
        Endpoint::Files { directory } => files::open_admin(directory),
        Endpoint::Redis { .. } => redis::open_admin(endpoint, timeout),
        Endpoint::Mysql(_) => mysql::open_admin(endpoint, timeout),
        Endpoint::Postgres(_) => postgres::open_admin(endpoint, timeout),
        Endpoint::Sqlite { directory } => sqlite::open_admin(directory, timeout),
        Endpoint::Disk { directory } => disk::open_admin(directory),
        Endpoint::Memcached(memcached) => memcached::open_admin(memcached, timeout),
    }
    .map_err(Failure::from)
}
