//! Distributions of keys, as users write them.

use std::fmt;
use std::str::FromStr;

use super::KvError;

/// Default exponent, as in YCSB.
const EXPONENT: f64 = 0.99;
/// Default mean and deviation as shares: the middle and a sixth of the range, as in memtier.
const BELL: (f64, f64) = (0.5, 1.0 / 6.0);
/// Default shares of keys and operations, as in YCSB's hotspot.
const HOT: (f64, f64) = (0.2, 0.8);

/// Probability distribution of keys.
///
/// Written as `uniform`, `zipf:0.99`, `ycsb-zipfian`, `gauss:0.5:0.1`, `sequential`, `hot:0.1:0.9`,
/// `latest:0.99` or `ycsb-latest`; parameters have defaults. In `zipf:0.99:ordered` and
/// `hot:0.1:0.9:ordered` the hottest keys are those with the lowest numbers. Otherwise the hottest
/// keys are scattered over all keys, since neighbours often share a slot, a page or a shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All keys are equally likely.
    Uniform,
    /// The r-th hottest key has a probability proportional to r^−exponent.
    Zipf {
        /// 0 (uniform) or more.
        exponent: f64,
        /// False if key 0 is the hottest, key 1 the next, and so on.
        scattered: bool,
    },
    /// YCSB's `requestdistribution=zipfian`: Zipf's law over ten billion ranks that are folded onto
    /// the keys, so the hottest key gets 3.8 %, however few keys there are.
    YcsbZipfian,
    /// A bell curve around one key, truncated at both ends.
    Gaussian {
        /// The centre: up to 1 a share of the range from the first key to the last, above 1 the
        /// number of a key.
        mean: f64,
        /// The standard deviation before truncation: up to 1 a share of all keys, above 1 a number
        /// of keys; above 0 and at most all keys.
        deviation: f64,
    },
    /// All keys in order from key 0, repeatedly.
    Sequential,
    /// A share of the keys gets a share of the operations; all keys in the same part are equally
    /// likely.
    Hot {
        /// Share of the keys, from 0 to 1; at least one key is hot.
        keys: f64,
        /// Share of the operations on them, from 0 to 1.
        operations: f64,
        /// False if the hot keys are those with the lowest numbers.
        scattered: bool,
    },
    /// Zipf's law by age: the newest key is the hottest, the one before it the next, and so on.
    Latest {
        /// 0 (uniform) or more.
        exponent: f64,
    },
    /// YCSB's `requestdistribution=latest`: its approximation of Zipf's law over all existing keys,
    /// the newest first.
    YcsbLatest,
}

impl FromStr for Distribution {
    type Err = KvError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scattered, parts) = match parts.as_slice() {
            [kept @ .., "ordered"] if matches!(kept.first(), Some(&("zipf" | "hot"))) => {
                (false, kept)
            }
            all => (true, all),
        };
        let exponent = |n| {
            number(text, n, "an exponent, expected a number from 0: for example zipf:0.99", |s| {
                s >= 0.0
            })
        };
        Ok(match *parts {
            ["uniform"] => Self::Uniform,
            ["sequential"] => Self::Sequential,
            ["ycsb-zipfian"] => Self::YcsbZipfian,
            ["ycsb-latest"] => Self::YcsbLatest,
            ["zipf"] => Self::Zipf { exponent: EXPONENT, scattered },
            ["zipf", s] => Self::Zipf { exponent: exponent(s)?, scattered },
            ["latest"] => Self::Latest { exponent: EXPONENT },
            ["latest", s] => Self::Latest { exponent: exponent(s)? },
            ["gauss"] => Self::Gaussian { mean: BELL.0, deviation: BELL.1 },
            ["gauss", mean, deviation] => bell(text, mean, deviation)?,
            ["hot"] => Self::Hot { keys: HOT.0, operations: HOT.1, scattered },
            ["hot", keys, operations] => hot(text, keys, operations, scattered)?,
            _ => {
                return Err(KvError(format!(
                    "`{text}` is not a key distribution, expected uniform, \
                     zipf[:EXPONENT[:ordered]], ycsb-zipfian, gauss[:MEAN:DEVIATION], sequential, \
                     hot[:KEYS:OPERATIONS[:ordered]], latest[:EXPONENT] or ycsb-latest"
                )));
            }
        })
    }
}

fn bell(text: &str, mean: &str, deviation: &str) -> Result<Distribution, KvError> {
    let mean = number(
        text,
        mean,
        "a mean, expected a share from 0 to 1 or the number of a key above 1: for example \
         gauss:0.5:0.1",
        |m| m >= 0.0,
    )?;
    let deviation = number(
        text,
        deviation,
        "a standard deviation, expected a share of the keys above 0 or a number of keys above 1: \
         for example gauss:0.5:0.1",
        |d| d > 0.0,
    )?;
    Ok(Distribution::Gaussian { mean, deviation })
}

fn hot(text: &str, keys: &str, operations: &str, scattered: bool) -> Result<Distribution, KvError> {
    let share = |n| {
        number(text, n, "a share, expected a number from 0 to 1: for example hot:0.1:0.9", |x| {
            (0.0..=1.0).contains(&x)
        })
    };
    Ok(Distribution::Hot { keys: share(keys)?, operations: share(operations)?, scattered })
}

/// A finite number for which `fits` is true.
fn number(
    text: &str,
    number: &str,
    expected: &'static str,
    fits: impl Fn(f64) -> bool,
) -> Result<f64, KvError> {
    let parsed = number.parse::<f64>().ok().filter(|x| x.is_finite() && fits(*x));
    parsed.ok_or_else(|| KvError(format!("`{number}` in `{text}` is not {expected}")))
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = |scattered| if scattered { "" } else { ":ordered" };
        match *self {
            Self::Uniform => f.write_str("uniform"),
            Self::Sequential => f.write_str("sequential"),
            Self::YcsbZipfian => f.write_str("ycsb-zipfian"),
            Self::YcsbLatest => f.write_str("ycsb-latest"),
            Self::Zipf { exponent, scattered } => write!(f, "zipf:{exponent}{}", order(scattered)),
            Self::Latest { exponent } => write!(f, "latest:{exponent}"),
            Self::Gaussian { mean, deviation } => write!(f, "gauss:{mean}:{deviation}"),
            Self::Hot { keys, operations, scattered } => {
                write!(f, "hot:{keys}:{operations}{}", order(scattered))
            }
        }
    }
}

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
