//! Operations as a pure function of (seed, n), and the store interface that they need.
//!
//! - [`store`]: the traits that drivers implement, and the results of their calls.
//! - [`client`]: the trait through which an engine drives a client of any workload.
//! - [`values`]: names and values as pure functions.
//! - [`plain`]: writes, reads and replacements of whole sessions.
//! - [`page`]: a shop's page: open under the lock, read, think, write, close.
//! - [`app_cache`]: records with tags, invalidated by tag.
//! - [`cache_aside`]: rows of a database, read through a cache.
//! - [`kv`]: single operations on keys and values, as pure functions of (seed, n).

pub mod app_cache;
pub mod cache_aside;
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
pub use store::{
    Closed, Collected, Collects, Found, LockWait, Opened, PageStore, SessionStore, StoreError,
};

/// A client's share of the sessions.
#[derive(Clone, Debug)]
pub struct Share {
    /// Seed of the run's names, values and choices.
    pub seed: u64,
    /// Number of this client, from 0.
    pub client: u32,
    /// Number of clients, at least 1.
    pub clients: u32,
    /// Prefix of every session's name; empty on a store that we started ourselves.
    pub prefix: String,
}

impl Share {
    /// Number of this client's sessions out of `total`: every `clients`-th.
    pub fn of(&self, total: u64) -> u64 {
        let clients = u64::from(self.clients);
        total / clients + u64::from(u64::from(self.client) < total % clients)
    }

    /// Number among all sessions of the client's session in `slot`.
    pub fn index(&self, slot: u64) -> u64 {
        slot * u64::from(self.clients) + u64::from(self.client)
    }
}

#[cfg(test)]
mod tests;
