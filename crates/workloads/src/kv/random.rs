//! Random numbers of which any part of the sequence can be drawn again: each operation has numbers
//! of its own, whichever thread draws them, that start at a scattered function of
//! (seed, stream, n).

use stats::SplitMix64;

use crate::values::{mix, mix_in};

/// The numbers of all operations of one kind; each operation has its own.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    base: u64,
}

impl Stream {
    /// Other seeds or streams give unrelated numbers.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { base: mix(&[seed, stream]) }
    }

    /// The numbers of operation `n`.
    #[inline]
    pub fn at(self, n: u64) -> SplitMix64 {
        SplitMix64::new(mix_in(self.base, n))
    }
}

/// The numbers of operation `n` of `stream`; other seeds, streams or operations give unrelated
/// ones.
#[inline]
pub fn numbers(seed: u64, stream: u64, n: u64) -> SplitMix64 {
    Stream::new(seed, stream).at(n)
}

#[cfg(test)]
#[path = "random_tests.rs"]
mod tests;
