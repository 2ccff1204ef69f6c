//! Random numbers of which any part of the sequence can be drawn again.
//!
//! The generator is `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
//! Generators, OOPSLA 2014). It starts at a scattered function of (seed, stream, n), so each
//! operation has numbers of its own, whichever thread draws them.

use crate::values::{GOLDEN, mix, mix_in, pick, scatter};

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
    pub fn at(self, n: u64) -> Random {
        Random { state: mix_in(self.base, n) }
    }
}

/// The numbers of one operation, or of one thread.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of operation `n` of `stream`; other seeds, streams or operations give unrelated
    /// ones.
    #[inline]
    pub fn new(seed: u64, stream: u64, n: u64) -> Self {
        Stream::new(seed, stream).at(n)
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        scatter(self.state)
    }

    /// A number from 0 to `n` − 1; `n` is at least 1. Some numbers are likelier than others by less
    /// than `n` / 2⁶⁴ of their probability.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "there is no number below 0");
        pick(self.next_u64(), n)
    }

    /// A number from 0 up to but not including 1, in steps of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A normal deviate with mean 0 and standard deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        // From 0 exclusive, since it has no logarithm.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
#[path = "random_tests.rs"]
mod tests;
