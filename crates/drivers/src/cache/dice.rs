//! Random decisions of cache software, as drawn by PHP's `mt_rand` and `random_bytes`.

use std::hash::{BuildHasher, RandomState};

use workloads::values::mix;

/// A random generator of one client, randomly seeded.
pub(crate) struct Random {
    start: u64,
    drawn: u64,
}

impl Random {
    pub(crate) fn new() -> Self {
        Self { start: RandomState::new().hash_one(0), drawn: 0 }
    }

    /// True in one of `chance` draws, on average.
    pub(crate) fn is_one_in(&mut self, chance: u64) -> bool {
        self.next().is_multiple_of(chance)
    }

    /// The next 64 random bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.drawn += 1;
        mix(&[self.start, self.drawn])
    }
}
