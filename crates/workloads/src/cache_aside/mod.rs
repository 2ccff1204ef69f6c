//! An application that reads users of a shop from a database through a cache (cache-aside): it asks
//! the cache, and after a miss queries the database and caches the row for a while.
//!
//! - [`store`]: the interfaces of a database and of a cache with its lock.
//! - [`users`]: the rows, as pure functions of (seed, number).
//! - [`client`]: one client, driven by the engine.

pub mod client;
pub mod store;
pub mod users;

pub use client::{CacheAsideClient, Expiries};
pub use store::{Locked, RowCache, RowDatabase};
pub use users::{COLUMNS, User, Users};
