//! Operations as a pure function of (seed, n), and what a store must offer for them.
//!
//! - [`store`]: the traits that drivers implement, and what their calls answer.
//! - [`client`]: the trait by which an engine drives one client of any workload.
//! - [`values`]: names and values as pure functions.
//! - [`plain`]: write, read and replace whole sessions.
//! - [`page`]: a shop's page: open under the lock, read, think, write, close.
//! - [`app_cache`]: records with tags, invalidated by tag.
//! - [`kv`]: single operations on keys and values, as pure functions of (seed, n).

pub mod app_cache;
mod chances;
pub mod client;
pub mod kv;
pub mod page;
pub mod plain;
pub mod store;
pub mod values;

pub use client::{Answer, Call, Client, Outcome};
pub use page::{PageClient, SharedSession};
pub use plain::PlainClient;
pub use store::{Closed, Found, LockWait, Opened, PageStore, SessionStore, StoreError};

/// Which part of the sessions a client works on.
#[derive(Clone, Debug)]
pub struct Share {
    /// Seed of the run's names, values and choices.
    pub seed: u64,
    /// Number of this client, from 0.
    pub client: u32,
    /// Clients in all, at least 1.
    pub clients: u32,
    /// Put before every session's name; empty on a store of our own.
    pub prefix: String,
}

impl Share {
    /// How many of `total` sessions are this client's: every `clients`-th.
    pub fn of(&self, total: u64) -> u64 {
        let clients = u64::from(self.clients);
        total / clients + u64::from(u64::from(self.client) < total % clients)
    }

    /// Number of a client's session `slot` among all sessions.
    pub fn index(&self, slot: u64) -> u64 {
        slot * u64::from(self.clients) + u64::from(self.client)
    }
}

#[cfg(test)]
mod tests;
