//! A centre with its interval over blocks.
//!
//! The unit of repetition is the block; requests inside a trial are no repetitions. Values are
//! positive (rates, durations), so the centre is the geometric mean and all arithmetic is on logs.
//!
//! The interval is the wider, at each end, of two:
//! - Student's t on the logs, exact where noise is log-normal;
//! - the expanded percentile bootstrap over blocks (Hesterberg, "What teachers should know about
//!   the bootstrap", 2015, section 5.3), which follows skewed noise. A plain percentile bootstrap
//!   of three to eight values covers far too little; its tails are therefore moved out to
//!   Φ(−√(n/(n−1)) · t), t being Student's with n − 1 degrees.
//!
//! Resampling is seeded: equal values and seed give equal intervals.

use std::fmt;

use crate::random::SplitMix64;
use crate::student::{self, Moments};

#[cfg(test)]
mod tests;

/// Blocks below which nothing is decided.
pub const FEWEST_BLOCKS: usize = 3;

/// Resamples of a bootstrap.
pub const RESAMPLES: usize = 10_000;

/// A centre with a lower and an upper bound, `lo` ≤ `center` ≤ `hi`, all in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Geometric mean over blocks.
    pub center: f64,
    /// Lower bound, above 0.
    pub lo: f64,
    /// Upper bound; infinite only where blocks differ beyond all measure.
    pub hi: f64,
}

impl Interval {
    /// Whether `value` lies within the bounds.
    pub fn contains(&self, value: f64) -> bool {
        self.lo <= value && value <= self.hi
    }
}

/// What blocks say about a value, and what is doubtful about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Geometric mean over blocks.
    pub center: f64,
    /// The same centre with its bounds; `None` below three blocks.
    pub interval: Option<Interval>,
    /// Number of blocks.
    pub blocks: usize,
    /// Doubts, to be printed as footnotes; empty when there are none.
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

/// A doubt about an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Warning {
    /// Fewer than [`FEWEST_BLOCKS`]: no interval.
    NoInterval {
        /// Blocks that there are.
        have: usize,
    },
    /// So few blocks that no interval of this confidence is free of assumptions.
    FewBlocks {
        /// Blocks that there are.
        have: usize,
        /// Blocks from which the order of values alone bounds their median.
        need: usize,
    },
    /// Every block gave the same value, so the interval has no width: the value is coarser than
    /// its noise.
    Identical {
        /// Blocks that there are.
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
                write!(f, "all {blocks} blocks gave the same value: coarser than its noise")
            }
        }
    }
}

/// Values that have no geometric mean, or a confidence that is none.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum IntervalError {
    /// No values.
    #[error("no blocks, expected at least one value")]
    Empty,
    /// A value that has no logarithm.
    #[error("block {block} has value `{value}`, expected a finite number above 0")]
    NotPositive {
        /// Index of the block, from 0.
        block: usize,
        /// Its value.
        value: f64,
    },
    /// A confidence outside its range.
    #[error("confidence `{0}`, expected a number between 0 and 1, for example 0.95")]
    Confidence(f64),
}

/// Geometric mean of one value a block, with its interval at `confidence` (for example 0.95).
///
/// Values are positive and finite. `seed` fixes the resampling, see the module's comment.
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

/// Natural logarithms of at least one positive and finite value.
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

/// The estimate of exp(mean) from at least one log; `alpha` is one less the confidence.
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

/// Bounds of the mean of at least two logs: the wider of Student's and the expanded bootstrap's.
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

/// Means of `resamples` samples drawn from `logs` with replacement, each as long as `logs`.
fn resampled_means(logs: &[f64], resamples: usize, seed: u64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let n = logs.len();
    let mut mean = || (0..n).map(|_| logs[random.index(n)]).sum::<f64>() / n as f64;
    (0..resamples.max(1)).map(|_| mean()).collect()
}

/// The value below which a share `tail` of `values` (not empty) lies: rank tail · (count + 1),
/// rounded down and so outwards, at least the first.
fn nth_from_below(values: &mut [f64], tail: f64) -> f64 {
    let rank = (tail * (values.len() as f64 + 1.0)).floor().max(1.0) as usize;
    let index = rank.min(values.len()) - 1;
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

/// The value above which a share `tail` of `values` lies: the mirror of [`nth_from_below`].
fn nth_from_above(values: &mut [f64], tail: f64) -> f64 {
    for value in values.iter_mut() {
        *value = -*value;
    }
    -nth_from_below(values, tail)
}

/// The fewest blocks whose smallest and largest value bound the median with error `alpha` at
/// most, whatever the distribution: 2 · 0.5ⁿ ≤ `alpha` (six at 95 %).
pub fn blocks_without_assumptions(alpha: f64) -> usize {
    (1.0 - alpha.log2()).ceil() as usize
}
