//! A bijection on the numbers below a bound that scatters neighbours and takes no memory.
//!
//! Numbers with as many bits as the bound are scattered by invertible steps: multiplication by an
//! odd number, and XOR of the upper half of the bits into the lower half. A result that is not
//! below the bound is scattered again until it is (cycle walking: Black and Rogaway, Ciphers with
//! Arbitrary Finite Domains, CT-RSA 2002), which takes fewer than two rounds on average. This is
//! not encryption; it only keeps the hottest keys from being adjacent.

/// Odd multipliers: those of `SplitMix64` and of its golden ratio.
const ODD: [u64; 3] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0x9e37_79b9_7f4a_7c15];

/// A bijection on 0 to `count` − 1, the same in every run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    count: u64,
    mask: u64,
    /// Half of the number of bits, at least one.
    shift: u32,
}

impl Permutation {
    /// A bijection on 0 to `count` − 1; `count` is at least 1.
    pub(super) fn new(count: u64) -> Self {
        let bits = u64::BITS - (count - 1).leading_zeros();
        let mask = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
        Self { count, mask, shift: (bits / 2).max(1) }
    }

    /// The place of `rank`, which is below `count`.
    #[inline]
    pub(super) fn place(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.count, "{rank} is not below {}", self.count);
        let mut place = self.step(rank);
        while place >= self.count {
            place = self.step(place);
        }
        place
    }

    /// A bijection on the numbers with the bits of `mask`. The added constant keeps 0 from mapping
    /// to itself.
    #[inline]
    fn step(&self, number: u64) -> u64 {
        let mut number = number.wrapping_add(ODD[2]) & self.mask;
        for odd in ODD {
            number = number.wrapping_mul(odd) & self.mask;
            number ^= number >> self.shift;
        }
        number
    }
}

#[cfg(test)]
#[path = "permutation_tests.rs"]
mod tests;
