//! Choice of the key for an operation.

use stats::SplitMix64;
use std::sync::Arc;

use super::permutation::Permutation;
use super::ycsb;
use super::zipf::Zipf;
use super::{Distribution, Key, KvError};

/// Most keys that can be chosen from: as many as the twelve digits of usual names allow.
pub const KEYS_MAX: u64 = 1_000_000_000_000;

/// Chooses the key of an operation, by a [`Distribution`] over a number of keys.
#[derive(Clone, Debug)]
pub struct KeyChoice {
    keys: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    /// These in turn, each this many times in a row.
    InTurn(Arc<[Key]>, u64),
    /// Consecutive keys from this one on.
    From(u64),
    Zipf(Zipf, Option<Permutation>),
    YcsbZipfian(ycsb::Scrambled),
    YcsbLatest(ycsb::Latest),
    /// Mean and standard deviation, in keys.
    Gaussian(f64, f64),
    Sequential,
    Hot {
        /// Number of hot keys, from 1 to all.
        hot: u64,
        /// Share of operations on hot keys.
        operations: f64,
        places: Option<Permutation>,
    },
    Latest(Zipf),
}

impl KeyChoice {
    /// A choice among `keys` keys, numbered from 0.
    ///
    /// Errors: no keys or more than [`KEYS_MAX`], or parameters outside the distribution's range.
    pub fn new(distribution: Distribution, keys: u64) -> Result<Self, KvError> {
        if !(1..=KEYS_MAX).contains(&keys) {
            return Err(invalid_count(keys));
        }
        let places = |scattered: bool| scattered.then(|| Permutation::new(keys));
        let invalid = || {
            KvError(format!(
                "`{distribution}` is not a distribution, expected an exponent from 0 and shares \
                 from 0 to 1"
            ))
        };
        let share = |x: f64| if (0.0..=1.0).contains(&x) { Ok(x) } else { Err(invalid()) };
        let zipf = |s: f64| {
            if s.is_finite() && s >= 0.0 { Ok(Zipf::new(keys, s)) } else { Err(invalid()) }
        };
        let kind = match distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Sequential => Kind::Sequential,
            Distribution::Zipf { exponent, scattered } => {
                Kind::Zipf(zipf(exponent)?, places(scattered))
            }
            Distribution::YcsbZipfian => Kind::YcsbZipfian(ycsb::Scrambled::new(keys)),
            Distribution::YcsbLatest => Kind::YcsbLatest(ycsb::Latest::new(keys)),
            Distribution::Latest { exponent } => Kind::Latest(zipf(exponent)?),
            Distribution::Gaussian { mean, deviation } => {
                let middle = absolute(mean, (keys - 1) as f64);
                let width = absolute(deviation, keys as f64).filter(|width| *width > 0.0);
                let invalid = |what: &str, expected: &str| {
                    KvError(format!("{what} for {keys} keys, expected a share {expected} {keys}"))
                };
                Kind::Gaussian(
                    middle.ok_or_else(|| {
                        let expected = "from 0 to 1 or the number of a key above 1 and below";
                        invalid(&format!("`{mean}` is not a mean"), expected)
                    })?,
                    width.ok_or_else(|| {
                        let expected = "above 0 and up to 1 or a number of keys up to";
                        invalid(&format!("`{deviation}` is not a standard deviation"), expected)
                    })?,
                )
            }
            Distribution::Hot { keys: part, operations, scattered } => Kind::Hot {
                hot: ((share(part)? * keys as f64).round() as u64).clamp(1, keys),
                operations: share(operations)?,
                places: places(scattered),
            },
        };
        Ok(Self { keys, kind })
    }

    /// These keys in turn, each for `times` consecutive operations, at least 1.
    ///
    /// Errors: an empty list.
    pub fn in_turn(keys: &[Key], times: u64) -> Result<Self, KvError> {
        let last = keys.iter().max().ok_or_else(|| invalid_count(0))?;
        Ok(Self { keys: last.0 + 1, kind: Kind::InTurn(keys.into(), times.max(1)) })
    }

    /// `keys` consecutive keys, starting with `first`.
    ///
    /// Errors: as [`Self::new`].
    pub fn consecutive(first: u64, keys: u64) -> Result<Self, KvError> {
        Ok(Self { kind: Kind::From(first), ..Self::new(Distribution::Sequential, keys)? })
    }

    /// Number of keys to choose from.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The key of operation `n`, drawn from that operation's random numbers.
    #[inline]
    pub fn pick(&self, random: &mut SplitMix64, n: u64) -> Key {
        self.pick_with_newest(random, n, Key(self.keys - 1))
    }

    /// Like [`Self::pick`], where `newest` is the last inserted key, or the last of the keys if
    /// none was.
    ///
    /// [`Distribution::Latest`] chooses among the newest keys, as many as there were initially;
    /// [`Distribution::YcsbLatest`] chooses among all keys. Other distributions ignore `newest`.
    #[inline]
    pub fn pick_with_newest(&self, random: &mut SplitMix64, n: u64, newest: Key) -> Key {
        Key(match &self.kind {
            Kind::Uniform => random.below(self.keys),
            Kind::InTurn(keys, times) => keys[(n / times % keys.len() as u64) as usize].0,
            Kind::Zipf(zipf, places) => placed(places.as_ref(), zipf.rank(random)),
            Kind::YcsbZipfian(ycsb) => ycsb.record(random),
            Kind::YcsbLatest(ycsb) => ycsb.record(random, newest.0),
            Kind::Gaussian(mean, deviation) => self.bell(random, *mean, *deviation),
            Kind::Sequential => n % self.keys,
            Kind::From(first) => first + n % self.keys,
            Kind::Hot { hot, operations, places } => {
                let rank = self.hot_or_not(random, *hot, *operations);
                placed(places.as_ref(), rank)
            }
            Kind::Latest(zipf) => newest.0.saturating_sub(zipf.rank(random)),
        })
    }

    /// Draws until the result is a key, which takes three draws on average at worst.
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

fn invalid_count(keys: u64) -> KvError {
    KvError(format!("`{keys}` is not a number of keys, expected 1 to {KEYS_MAX}"))
}

/// `number` as a share of `most` if it is at most 1, else `number` itself; `None` if the result is
/// not from 0 to `most`.
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
