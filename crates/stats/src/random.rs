//! `SplitMix64`: reproducible random numbers.
//!
//! Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014): a counter
//! with the golden ratio as its step, mixed by two multiplications. Equal seeds give equal numbers
//! on every machine.

/// The fraction of the golden ratio, in 64 bits: the generator's step.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The generator's output function: a bijection that scatters its input.
#[inline]
pub fn scatter(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// State of the generator.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that starts at `seed`; every seed is valid.
    #[inline]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        scatter(self.0)
    }

    /// A number from 0 to `n` − 1 (the high half of a product); `n` is at least 1. Relative bias is
    /// below `n` / 2⁶⁴.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "`n` must be at least 1");
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A random index into a slice of length `len`.
    #[inline]
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number from 0 up to but not including 1, in steps of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number from 0 to 1, both excluded.
    pub fn open_unit(&mut self) -> f64 {
        ((self.next_u64() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// An exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.open_unit().ln()
    }

    /// A normal deviate with mean 0 and standard deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let (u, v) = (self.open_unit(), self.open_unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_matches_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(
            got,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn every_index_is_equally_likely() {
        let (mut random, mut counts) = (SplitMix64::new(7), [0u32; 5]);
        (0..50_000).for_each(|_| counts[random.index(5)] += 1);
        assert!(counts.iter().all(|n| n.abs_diff(10_000) < 400), "{counts:?}");
    }

    #[test]
    fn exponential_numbers_have_the_right_mean_and_tail() {
        let mut random = SplitMix64::new(7);
        let values: Vec<f64> = (0..100_000).map(|_| random.exponential(3.0)).collect();
        let mean = values.iter().sum::<f64>() / 100_000.0;
        assert!((mean - 3.0).abs() < 0.05, "{mean}");
        // A share exp(-2) is above twice the mean.
        let tail = values.iter().filter(|v| **v > 6.0).count() as f64 / 100_000.0;
        assert!((tail - 0.1353).abs() < 0.005, "{tail}");
    }

    #[test]
    fn normal_deviates_have_mean_0_and_deviation_1() {
        let mut random = SplitMix64::new(3);
        let values: Vec<f64> = (0..50_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / 50_000.0;
        let square = values.iter().map(|v| v * v).sum::<f64>() / 50_000.0;
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.03, "{mean} {square}");
    }
}
