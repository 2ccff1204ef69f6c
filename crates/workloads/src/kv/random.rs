//! Random numbers with random access: each operation has separate numbers, independent of the
//! thread that draws them, which start at a scattered function of (seed, stream, n).

use stats::SplitMix64;

use crate::values::{mix, mix_in};

/// The random numbers of all operations of one kind; each operation has separate ones.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    base: u64,
}

impl Stream {
    /// Different seeds or streams give unrelated numbers.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { base: mix(&[seed, stream]) }
    }

    /// The numbers of operation `n`.
    #[inline]
    pub fn at(self, n: u64) -> SplitMix64 {
        SplitMix64::new(mix_in(self.base, n))
    }
}

/// The numbers of operation `n` of `stream`; different seeds, streams or operations give unrelated
/// numbers.
#[inline]
pub fn numbers(seed: u64, stream: u64, n: u64) -> SplitMix64 {
    Stream::new(seed, stream).at(n)
}

#[cfg(test)]
#[path = "random_tests.rs"]
mod tests;
