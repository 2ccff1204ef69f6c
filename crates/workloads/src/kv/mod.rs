//! Key-value operations as a pure function of (seed, n): which operation, which key, how long its
//! value is and what it consists of.
//!
//! - [`random`]: which numbers choices are drawn from.
//! - [`names`]: how keys are named; `digits` writes their numbers, and `uuid` writes UUIDs.
//! - [`distribution`]: which keys are asked for, as users spell it; [`choice`] draws them, with
//!   `zipf`, `ycsb` and `permutation`.
//! - [`sizes`]: how long values and names are; `published` holds distributions from papers.
//! - [`values`]: what values consist of, and how they are checked as they come; [`user`] those that
//!   are a JSON object.
//! - [`mix`]: operations with weights, and where inserted keys stand.
//! - [`preset`]: published workloads by name.
//! - [`written`]: what a sample of keys must hold when all is over.
//!
//! Keys are numbers from 0. Whatever belongs to a key, such as its name and the length of its
//! value, follows from its number and the seed, so that threads, and runs that continue others,
//! agree on it.

pub mod choice;
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
pub use digits::write_over_zeros;
pub use distribution::Distribution;
pub use mix::{Inserts, Mix, Weights};
pub use names::{KeyNames, UUID};
pub use preset::Preset;
pub use random::{Stream, numbers};
pub use sizes::Sizes;
pub use user::JSON;
pub use values::{ValueCheck, Values, values_of};
pub use written::{SAMPLED_MIN, Written};

/// Keys, sizes or weights that cannot be had: a sentence with what was given and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KvError(pub(crate) String);

/// Number of a key, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u64);

#[cfg(test)]
mod counts;
