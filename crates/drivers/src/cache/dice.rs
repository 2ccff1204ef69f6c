//! Chances that software draws by itself, as PHP's `mt_rand` and `random_bytes` do.

use std::hash::{BuildHasher, RandomState};

use workloads::values::mix;

/// A generator of one client, which begins anywhere.
pub(crate) struct Dice {
    start: u64,
    drawn: u64,
}

impl Dice {
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
