//! Random numbers for names and passwords.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A random number, from the standard library's hash seed, which the kernel generates.
pub fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
