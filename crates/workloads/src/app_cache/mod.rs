//! The application cache of a shop: records with tags that are invalidated by tag.
//!
//! - [`store`]: the interface of a backend.
//! - [`data_set`]: the records, drawn as in Colin Mollenhour's cache benchmark, or read from files.
//! - [`operations`]: each client's operations.
//! - [`files`]: the original benchmark's file formats for both.
//! - [`magento`]: Magento's layer between a shop and its backend.
//! - [`ledger`]: writes and cleans of all clients, which determine the allowed values.
//! - [`client`]: one client, driven by the engine.
//! - `versions`: values that contain their version.

pub mod client;
mod composed;
pub mod data_set;
pub mod files;
pub mod ledger;
pub mod magento;
#[cfg(test)]
mod memory;
pub mod operations;
pub mod store;
mod versions;

pub use client::AppCacheClient;
pub use data_set::DataSet;
pub use ledger::Ledger;
pub use operations::{Lists, Operation};
pub use store::{CleanMode, Effort, LoadEffect, Record, TaggedCache};
