//! The application cache of a shop: records with tags that are invalidated by tag.
//!
//! - [`store`]: what a backend must offer.

pub mod store;

pub use store::{CleanMode, Effort, TaggedCache};
