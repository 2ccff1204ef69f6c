//! Which key an operation is about.

use stats::SplitMix64;
use std::sync::Arc;

use super::permutation::Permutation;
use super::ycsb;
use super::zipf::Zipf;
use super::{Distribution, Key, KvError};

/// Most keys that can be chosen from: as many as the twelve digits of usual names tell apart.
pub const KEYS_MAX: u64 = 1_000_000_000_000;

/// Which key an operation is about, by a [`Distribution`] over a number of keys.
#[derive(Clone, Debug)]
pub struct KeyChoice {
    keys: u64,
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Uniform,
    /// One of these, each as often.
    Among(Arc<[Key]>),
    /// One after the other from this one on.
    From(u64),
    Zipf(Zipf, Option<Permutation>),
    YcsbZipfian(ycsb::Scrambled),
    YcsbLatest(ycsb::Latest),
    /// Mean and deviation in keys.
    Gaussian(f64, f64),
    Sequential,
    Hot {
        /// Hot keys, from 1 to all.
        hot: u64,
        /// Share of operations on them.
        operations: f64,
        places: Option<Permutation>,
    },
    Latest(Zipf),
}

impl KeyChoice {
    /// A choice among `keys` keys, numbered from 0.
    ///
    /// Errors: no keys or more than [`KEYS_MAX`], or numbers that the distribution cannot have.
    pub fn new(distribution: Distribution, keys: u64) -> Result<Self, KvError> {
        if !(1..=KEYS_MAX).contains(&keys) {
            return Err(not_keys(keys));
        }
        let places = |scattered: bool| scattered.then(|| Permutation::new(keys));
        let wrong = || {
            KvError(format!(
                "`{distribution}` is not a distribution, expected an exponent from 0 and shares \
                 from 0 to 1"
            ))
        };
        let share = |x: f64| if (0.0..=1.0).contains(&x) { Ok(x) } else { Err(wrong()) };
        let zipf = |s: f64| {
            if s.is_finite() && s >= 0.0 { Ok(Zipf::new(keys, s)) } else { Err(wrong()) }
        };
        let way = match distribution {
            Distribution::Uniform => Way::Uniform,
            Distribution::Sequential => Way::Sequential,
            Distribution::Zipf { exponent, scattered } => {
                Way::Zipf(zipf(exponent)?, places(scattered))
            }
            Distribution::YcsbZipfian => Way::YcsbZipfian(ycsb::Scrambled::new(keys)),
            Distribution::YcsbLatest => Way::YcsbLatest(ycsb::Latest::new(keys)),
            Distribution::Latest { exponent } => Way::Latest(zipf(exponent)?),
            Distribution::Gaussian { mean, deviation } => {
                let middle = absolute(mean, (keys - 1) as f64);
                let width = absolute(deviation, keys as f64).filter(|width| *width > 0.0);
                let wrong = |what: &str, expected: &str| {
                    KvError(format!("{what} for {keys} keys, expected a share {expected} {keys}"))
                };
                Way::Gaussian(
                    middle.ok_or_else(|| {
                        let expected = "from 0 to 1 or the number of a key above 1 and below";
                        wrong(&format!("`{mean}` is not a mean"), expected)
                    })?,
                    width.ok_or_else(|| {
                        let expected = "above 0 and up to 1 or a number of keys up to";
                        wrong(&format!("`{deviation}` is not a standard deviation"), expected)
                    })?,
                )
            }
            Distribution::Hot { keys: part, operations, scattered } => Way::Hot {
                hot: ((share(part)? * keys as f64).round() as u64).clamp(1, keys),
                operations: share(operations)?,
                places: places(scattered),
            },
        };
        Ok(Self { keys, way })
    }

    /// A choice among these keys only, each as likely as the others.
    ///
    /// Errors: none of them.
    pub fn among(keys: &[Key]) -> Result<Self, KvError> {
        let last = keys.iter().max().ok_or_else(|| not_keys(0))?;
        Ok(Self { keys: last.0 + 1, way: Way::Among(keys.into()) })
    }

    /// `keys` keys one after the other, of which `first` is the first.
    ///
    /// Errors: as [`Self::new`].
    pub fn consecutive(first: u64, keys: u64) -> Result<Self, KvError> {
        Ok(Self { way: Way::From(first), ..Self::new(Distribution::Sequential, keys)? })
    }

    /// How many keys there are to choose from.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The key of operation `n`, drawn from that operation's numbers.
    #[inline]
    pub fn pick(&self, random: &mut SplitMix64, n: u64) -> Key {
        self.pick_with_newest(random, n, Key(self.keys - 1))
    }

    /// As [`Self::pick`], when `newest`, at least the last of the keys, was inserted last.
    ///
    /// It matters to [`Distribution::Latest`], which chooses among the newest keys, as many as
    /// there were at first, and to [`Distribution::YcsbLatest`], which chooses among all keys.
    #[inline]
    pub fn pick_with_newest(&self, random: &mut SplitMix64, n: u64, newest: Key) -> Key {
        Key(match &self.way {
            Way::Uniform => random.below(self.keys),
            Way::Among(keys) => keys[random.below(keys.len() as u64) as usize].0,
            Way::Zipf(zipf, places) => placed(places.as_ref(), zipf.rank(random)),
            Way::YcsbZipfian(ycsb) => ycsb.record(random),
            Way::YcsbLatest(ycsb) => ycsb.record(random, newest.0),
            Way::Gaussian(mean, deviation) => self.bell(random, *mean, *deviation),
            Way::Sequential => n % self.keys,
            Way::From(first) => first + n % self.keys,
            Way::Hot { hot, operations, places } => {
                let rank = self.hot_or_not(random, *hot, *operations);
                placed(places.as_ref(), rank)
            }
            Way::Latest(zipf) => newest.0.saturating_sub(zipf.rank(random)),
        })
    }

    /// Draws until it is a key, which a third of the draws are at the worst.
    fn bell(&self, random: &mut SplitMix64, mean: f64, deviation: f64) -> u64 {
        loop {
            let drawn = (mean + deviation * random.normal()).round();
            if (0.0..self.keys as f64).contains(&drawn) {
                return drawn as u64;
            }
        }
    }

    fn hot_or_not(&self, random: &mut SplitMix64, hot: u64, operations: f64) -> u64 {
        if random.unit() < operations || hot == self.keys {
            random.below(hot)
        } else {
            hot + random.below(self.keys - hot)
        }
    }
}

fn not_keys(keys: u64) -> KvError {
    KvError(format!("`{keys}` is not a number of keys, expected from 1 to {KEYS_MAX}"))
}

/// Up to 1 a share of `most`, above 1 the number itself; `None` when that is not from 0 to `most`.
fn absolute(number: f64, most: f64) -> Option<f64> {
    let absolute = if number <= 1.0 { number * most } else { number };
    (0.0..=most).contains(&absolute).then_some(absolute)
}

#[inline]
fn placed(places: Option<&Permutation>, rank: u64) -> u64 {
    places.map_or(rank, |places| places.place(rank))
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
