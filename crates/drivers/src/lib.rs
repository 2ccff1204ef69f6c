//! Products: codecs, connections, and the layouts of real software on them.
//!
//! One folder a product ([`model::Product`]). Those that keep sessions offer a plain
//! store (one key, row or file a session, [`open_session_store`]), a page store (a shop's session
//! handler with its lock, [`open_page_store`]) and an [`Admin`] that reads facts, prepares and
//! cleans.
//! Layouts of application caches with tags ([`open_tagged_cache`]) lie beside them.
//! All of them block; each value is one client with its own connection and may move to a thread.
//! For the event loop of `load` there are the codecs of `redis` and `memcached`, put together in
//! [`wire`].
//!
//! Drivers time no operation: the engine does. Only [`workloads::store::LockWait`] is measured
//! here, because nobody else can see it.

mod admin;
mod bounded;
mod cache;
mod clock;
mod command;
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
mod sessions;
mod socket;
mod sqlite;
#[cfg(test)]
mod streams;
mod tables;
mod tags;
pub mod tls;
pub mod wire;

use std::io;
use std::time::Duration;

use model::{Endpoint, Failure, NetAddress};

pub use admin::{Admin, Facts, Room};
pub use cache::open_tagged_cache;
pub use options::{CacheOptions, SessionOptions};
pub use patience::Patience;
pub use sessions::{open_page_store, open_session_store};

/// Whether somebody listens at an address. Errors: the system's own, a time-out among them.
pub fn reach(address: &NetAddress, timeout: Duration) -> io::Result<()> {
    socket::reach(address, timeout)
}

/// Connects for administration; errors as [`open_session_store`].
pub fn admin(endpoint: &Endpoint, timeout: Duration) -> Result<Box<dyn Admin>, Failure> {
    match endpoint {
        Endpoint::Files { directory } => files::open_admin(directory),
        Endpoint::Redis { .. } => redis::open_admin(endpoint, timeout),
        Endpoint::Mysql(_) => mysql::open_admin(endpoint, timeout),
        Endpoint::Postgres(_) => postgres::open_admin(endpoint, timeout),
        Endpoint::Sqlite { directory } => sqlite::open_admin(directory, timeout),
        Endpoint::Memcached(memcached) => memcached::open_admin(memcached, timeout),
    }
    .map_err(Failure::from)
}
