//! Values over blocks: a centre with an interval or range within the observed values.

use stats::interval::blocks_without_assumptions;
use stats::{Estimate, Warning};
use std::fmt;

use crate::distribution::CONFIDENCE;
use crate::view::Value;

/// A caveat about a value over blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doubt {
    /// There are too few blocks for an interval; the lowest and highest block are shown instead.
    Range,
    Estimate(Warning),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range => write!(
                f,
                "the ends next to a value are its lowest and highest block: a range, not a 95 % \
                 interval (which needs {} blocks)",
                blocks_without_assumptions(1.0 - CONFIDENCE)
            ),
            Self::Estimate(warning) => warning.fmt(f),
        }
    }
}

/// The geometric mean of a metric with one value per block, with an interval clamped to the
/// observed values. Values that are not positive and finite are ignored; with few blocks the
/// interval is a range.
pub(crate) fn over_blocks(
    values: impl Iterator<Item = f64>,
    seed: u64,
) -> Option<(Value, Vec<Doubt>)> {
    let (values, estimate) = estimated(values, seed)?;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let value = Value::of(&estimate).within((least, most));
    if value.lo.is_none() {
        return Some((value, Vec::new()));
    }
    let need = blocks_without_assumptions(1.0 - CONFIDENCE);
    let is_range =
        values.len() < need && least < most && value.lo.zip(value.hi) == Some((least, most));
    let doubts = if is_range {
        vec![Doubt::Range]
    } else {
        estimate.warnings.iter().copied().map(Doubt::Estimate).collect()
    };
    Some((value, doubts))
}

/// The geometric mean of a ratio with one value per block and its unclamped interval, for verdicts.
pub(crate) fn ratio_over_blocks(values: impl Iterator<Item = f64>, seed: u64) -> Option<Value> {
    estimated(values, seed).map(|(_, estimate)| Value::of(&estimate))
}

/// The same for ratios of rates whose verdicts must also follow from those by wall time; `free` and
/// `wall` have one value per block.
pub(crate) fn strict_ratio_over_blocks(free: Vec<f64>, wall: Vec<f64>, seed: u64) -> Option<Value> {
    let strict = ratio_over_blocks(wall.into_iter(), seed).and_then(|wall| wall.interval());
    Some(ratio_over_blocks(free.into_iter(), seed)?.decided_with(strict))
}

fn estimated(values: impl Iterator<Item = f64>, seed: u64) -> Option<(Vec<f64>, Estimate)> {
    let values: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
    let estimate = stats::geometric_mean_interval(&values, CONFIDENCE, seed).ok()?;
    Some((values, estimate))
}

/// The median, or the upper of two middle values; `None` without values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
