//! Key-value operations as a pure function of (seed, n): the operation, its key, and the length and
//! content of its value.
//!
//! - [`random`]: the random numbers of all choices.
//! - [`names`]: names of keys; `digits` writes their numbers, and `uuid` writes UUIDs.
//! - [`distribution`]: distributions of keys as users write them; [`choice`] draws keys, with
//!   `zipf`, `ycsb` and `permutation`.
//! - [`sizes`]: lengths of values and names; `published`: length distributions from papers.
//! - [`values`]: contents of values, and their check as they arrive; [`user`]: values that are a
//!   JSON object.
//! - [`mix`]: operations with weights, and the positions of inserts among them.
//! - [`preset`]: published workloads by name.
//! - [`client`]: a blocking client, for stores without a protocol of keys and values.
//! - [`written`]: expected final values of a sample of keys.
//!
//! Keys are numbers from 0. All properties of a key, such as its name and the length of its value,
//! follow from its number and the seed, so threads agree on them, and so do runs that continue
//! others.

pub mod choice;
pub mod client;
mod digits;
pub mod distribution;
pub mod mix;
pub mod names;
mod permutation;
pub mod preset;
mod published;
pub mod random;
pub mod sizes;
pub mod user;
mod uuid;
pub mod values;
pub mod written;
mod ycsb;
mod zipf;

pub use choice::{KEYS_MAX, KeyChoice};
pub use client::{KvClient, KvData, KvShared};
pub use digits::write_over_zeros;
pub use distribution::Distribution;
pub use mix::{Inserts, Mix, Weights};
pub use names::{KeyNames, UUID};
pub use preset::Preset;
pub use random::{Stream, numbers};
pub use sizes::{Sizes, VALUE_BYTES_MAX};
pub use user::JSON;
pub use values::{ValueCheck, Values, values_of};
pub use written::{SAMPLED_MIN, Written};

/// Invalid keys, sizes or weights: a sentence with the given and the expected input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KvError(pub(crate) String);

/// Number of a key, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u64);

#[cfg(test)]
mod counts;
