//! Random numbers for names and passwords.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The standard library seeds its hash maps from the kernel's random numbers.
pub(crate) fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
