//! The application cache of a shop: records with tags that are invalidated by tag.
//!
//! - [`store`]: what a backend must offer.
//! - [`data_set`]: the records, drawn as Colin Mollenhour's cache benchmark does or read.
//! - [`operations`]: what each client does.
//! - [`files`]: the original's files of both.
//! - [`magento`]: what Magento puts between a shop and its backend.
//! - [`ledger`]: what all clients know together of what was written and cleaned.
//! - [`client`]: one client, which the engine drives.
//! - `versions`: values that tell which version they are.

pub mod client;
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
