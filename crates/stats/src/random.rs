//! `SplitMix64`: repeatable random numbers.
//!
//! Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014): a counter
//! in steps of the golden ratio, mixed by two multiplications. Equal seeds give equal numbers on
//! every machine.

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
    /// A generator that starts at `seed`; every seed is good.
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

    /// A number from 0 to `n` − 1, by the high half of a product; `n` is at least 1. Some numbers
    /// are likelier than others by less than `n` / 2⁶⁴ of their probability.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0, "there is no number below 0");
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// The same, as an index.
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

    /// A number of the exponential distribution with this mean.
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
    fn the_sequence_is_the_published_one() {
        let mut random = SplitMix64::new(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(
            got,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn every_index_comes_equally_often() {
        let (mut random, mut counts) = (SplitMix64::new(7), [0u32; 5]);
        (0..50_000).for_each(|_| counts[random.index(5)] += 1);
        assert!(counts.iter().all(|n| n.abs_diff(10_000) < 400), "{counts:?}");
    }

    #[test]
    fn an_exponential_has_its_mean_and_its_tail() {
        let mut random = SplitMix64::new(7);
        let values: Vec<f64> = (0..100_000).map(|_| random.exponential(3.0)).collect();
        let mean = values.iter().sum::<f64>() / 100_000.0;
        assert!((mean - 3.0).abs() < 0.05, "{mean}");
        // exp(-2) of all are longer than twice the mean.
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
