//! `SplitMix64`: repeatable random numbers for services and faults.
//!
//! Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014). Equal seeds
//! give equal numbers on every machine.

/// State of the generator.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// A generator for one of several independent purposes under the same seed.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        let mut first = Self(seed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(first.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to 1, both excluded.
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// A number of the exponential distribution with this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random(1_234_567);
        let got: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(
            got,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn purposes_have_numbers_of_their_own_and_seeds_too() {
        let first = |seed, purpose| Random::new(seed, purpose).next();
        let all = [first(1, 0), first(1, 1), first(2, 0), first(2, 1)];
        let distinct: std::collections::BTreeSet<u64> = all.into();
        assert_eq!((distinct.len(), first(1, 1)), (4, all[1]));
    }

    #[test]
    fn an_exponential_has_its_mean_and_its_tail() {
        let mut random = Random::new(7, 0);
        let values: Vec<f64> = (0..100_000).map(|_| random.exponential(3.0)).collect();
        let mean = values.iter().sum::<f64>() / 100_000.0;
        assert!((mean - 3.0).abs() < 0.05, "{mean}");
        // exp(-2) of all are longer than twice the mean.
        let tail = values.iter().filter(|v| **v > 6.0).count() as f64 / 100_000.0;
        assert!((tail - 0.1353).abs() < 0.005, "{tail}");
    }
}
