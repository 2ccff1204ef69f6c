//! Center and confidence interval over blocks.
//!
//! The unit of repetition is the block; requests within a trial are not repetitions. Values are
//! positive (rates, durations), so the center is the geometric mean and all arithmetic is on logs.
//!
//! Each bound is the wider one of two intervals:
//! - Student's t on the logs, exact where noise is log-normal;
//! - the expanded percentile bootstrap over blocks (Hesterberg, "What teachers should know about
//!   the bootstrap", 2015, section 5.3), which follows skewed noise. The coverage of a plain
//!   percentile bootstrap of three to eight values is far too low, so its tails are moved out to
//!   Φ(−√(n/(n−1)) · t), where t is Student's with n − 1 degrees of freedom.
//!
//! Resampling is seeded: equal values and an equal seed give equal intervals.

use std::fmt;

use crate::random::SplitMix64;
use crate::student::{self, Moments};

#[cfg(test)]
mod tests;

/// Minimum number of blocks for a decision.
pub const FEWEST_BLOCKS: usize = 3;

/// Resamples of a bootstrap.
pub const RESAMPLES: usize = 10_000;

/// A center with its bounds, `lo` ≤ `center` ≤ `hi`, all in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Geometric mean over blocks.
    pub center: f64,
    /// Lower bound, above 0.
    pub lo: f64,
    /// Upper bound; infinite only if blocks differ extremely.
    pub hi: f64,
}

impl Interval {
    /// True if `value` is within the bounds.
    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }
}

/// An estimate over blocks, with its warnings.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Geometric mean over blocks.
    pub center: f64,
    /// The same center with its bounds; `None` below three blocks.
    pub interval: Option<Interval>,
    /// Number of blocks.
    pub blocks: usize,
    /// Warnings, to be printed as footnotes.
    pub warnings: Vec<Warning>,
}

impl Estimate {
    /// Lower bound; `None` below three blocks.
    pub fn lo(&self) -> Option<f64> {
        self.interval.map(|i| i.lo)
    }

    /// Upper bound; `None` below three blocks.
    pub fn hi(&self) -> Option<f64> {
        self.interval.map(|i| i.hi)
    }
}

/// A warning about an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Warning {
    /// Fewer than [`FEWEST_BLOCKS`]: no interval.
    NoInterval {
        /// Number of blocks.
        have: usize,
    },
    /// Too few blocks for an interval of this confidence without distributional assumptions.
    FewBlocks {
        /// Number of blocks.
        have: usize,
        /// Number of blocks from which order statistics alone bound the median.
        need: usize,
    },
    /// All blocks have the same value, so the interval has no width: the resolution of the value is
    /// too low.
    Identical {
        /// Number of blocks.
        blocks: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterval { have } => {
                write!(f, "an interval needs {FEWEST_BLOCKS} blocks (there are {have})")
            }
            Self::FewBlocks { have, need } => write!(
                f,
                "with fewer than {need} blocks the interval assumes log-normal noise (there are \
                 {have})"
            ),
            Self::Identical { blocks } => {
                write!(f, "all {blocks} blocks have the same value: its resolution is too low")
            }
        }
    }
}

/// Invalid input: values without a geometric mean, or an invalid confidence.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum IntervalError {
    /// No values.
    #[error("no blocks, expected at least one value")]
    Empty,
    /// A value without a logarithm.
    #[error("block {block} has value `{value}`, expected a finite number above 0")]
    NotPositive {
        /// Index of the block, from 0.
        block: usize,
        /// Its value.
        value: f64,
    },
    /// A confidence that is not between 0 and 1.
    #[error("confidence `{0}`, expected a number between 0 and 1, for example 0.95")]
    Confidence(f64),
}

/// Geometric mean of one value per block, with its interval at `confidence` (for example 0.95).
///
/// Values are positive and finite. `seed` is that of the bootstrap.
pub fn geometric_mean_interval(
    values: &[f64],
    confidence: f64,
    seed: u64,
) -> Result<Estimate, IntervalError> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(IntervalError::Confidence(confidence));
    }
    let logs = logs_of(values)?;
    Ok(estimate(&logs, 1.0 - confidence, RESAMPLES, seed))
}

/// Natural logarithms of the values. Errors: no values, or one that is not positive and finite.
pub(crate) fn logs_of(values: &[f64]) -> Result<Vec<f64>, IntervalError> {
    if values.is_empty() {
        return Err(IntervalError::Empty);
    }
    values
        .iter()
        .enumerate()
        .map(|(block, &value)| {
            let positive = value > 0.0 && value.is_finite();
            positive.then(|| value.ln()).ok_or(IntervalError::NotPositive { block, value })
        })
        .collect()
}

/// Estimate of exp(mean) from at least one log; `alpha` is 1 − confidence.
pub(crate) fn estimate(logs: &[f64], alpha: f64, resamples: usize, seed: u64) -> Estimate {
    let moments = Moments::of(logs);
    let center = moments.mean.exp();
    let blocks = logs.len();
    if blocks < FEWEST_BLOCKS {
        let warnings = vec![Warning::NoInterval { have: blocks }];
        return Estimate { center, interval: None, blocks, warnings };
    }
    let need = blocks_without_assumptions(alpha);
    let mut warnings = Vec::new();
    if blocks < need {
        warnings.push(Warning::FewBlocks { have: blocks, need });
    }
    if moments.error == 0.0 {
        warnings.push(Warning::Identical { blocks });
    }
    let (lo, hi) = log_bounds(logs, &moments, alpha, resamples, seed);
    let interval = Interval { center, lo: lo.exp().min(center), hi: hi.exp().max(center) };
    Estimate { center, interval: Some(interval), blocks, warnings }
}

/// Bounds of the mean of at least two logs: the wider ones of Student's and the expanded
/// bootstrap's.
fn log_bounds(
    logs: &[f64],
    moments: &Moments,
    alpha: f64,
    resamples: usize,
    seed: u64,
) -> (f64, f64) {
    if moments.error == 0.0 {
        return (moments.mean, moments.mean);
    }
    let n = moments.n as f64;
    let t = student::critical(alpha / 2.0, moments.freedom());
    let reach = t * moments.error;
    let tail = student::normal_tail((n / (n - 1.0)).sqrt() * t);
    let mut means = resampled_means(logs, resamples, seed);
    let lo = nth_from_below(&mut means, tail);
    let hi = nth_from_above(&mut means, tail);
    (lo.min(moments.mean - reach), hi.max(moments.mean + reach))
}

/// Means of `resamples` samples drawn from `logs` with replacement, each of the size of `logs`.
fn resampled_means(logs: &[f64], resamples: usize, seed: u64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let n = logs.len();
    let mut mean = || (0..n).map(|_| logs[random.index(n)]).sum::<f64>() / n as f64;
    (0..resamples.max(1)).map(|_| mean()).collect()
}

/// The quantile `tail` of `values` (not empty): rank tail · (count + 1), rounded outwards, at least
/// 1.
fn nth_from_below(values: &mut [f64], tail: f64) -> f64 {
    let rank = (tail * (values.len() as f64 + 1.0)).floor().max(1.0) as usize;
    let index = rank.min(values.len()) - 1;
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

/// The quantile 1 − `tail` of `values`: the mirror of [`nth_from_below`].
fn nth_from_above(values: &mut [f64], tail: f64) -> f64 {
    for value in values.iter_mut() {
        *value = -*value;
    }
    -nth_from_below(values, tail)
}

/// Minimum number of blocks whose smallest and largest value bound the median of any distribution
/// with an error of at most `alpha`: 2 · 0.5ⁿ ≤ `alpha` (six at 95 %).
pub fn blocks_without_assumptions(alpha: f64) -> usize {
    (1.0 - alpha.log2()).ceil() as usize
}
