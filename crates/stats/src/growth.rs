//! Growth of a cost with a size: the exponent (slope) of the power law cost = c · size^slope.
//!
//! A slope of 0 means that the cost does not depend on the size, 1 that it is proportional to it, 2
//! that it grows with its square. The slope of a block is that of the least-squares line through
//! ln(cost) over ln(size); a disturbance of the whole block shifts all its costs but not the slope.
//! The result is the arithmetic mean of the blocks' slopes with Student's interval, without
//! logarithms because slopes can be 0 or less. Sizes and costs may have any unit.

use serde::{Serialize, Serializer};
use std::fmt;

use crate::compare::Doubt;
use crate::student::{self, Moments};

/// Slopes closer than this count as equal: a tenfold size then changes the cost by a quarter.
pub const ZONE: f64 = 0.1;

/// Maximum distance of an interval's end from 0 or 1 for a slope that is taken as 0 or 1; beyond it
/// the end would be closer to the other one.
const REACH: f64 = 0.5;

/// Mean slope of all blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// Arithmetic mean over blocks.
    pub center: f64,
    /// Lower and upper bound, `lo` ≤ `center` ≤ `hi`; `None` below two blocks.
    pub bounds: Option<(f64, f64)>,
    /// Number of blocks.
    pub blocks: usize,
}

/// Classification of a slope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// The slope is 0.
    DoesNotGrow,
    /// Significantly above 0 and below 1.
    Slower,
    /// The slope is 1.
    InProportion,
    /// Significantly above 1.
    Faster,
    /// Significantly below 0.
    Shrinks,
    /// None of these is proven.
    Undecided,
}

impl Growth {
    /// Name in records and on pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::DoesNotGrow => "does not grow",
            Self::Slower => "grows slower",
            Self::InProportion => "grows in proportion",
            Self::Faster => "grows faster",
            Self::Shrinks => "shrinks",
            Self::Undecided => "undecided",
        }
    }
}

impl Serialize for Growth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Slope {
    /// Classifies the slope. It counts as 0 or 1 if it is within [`ZONE`] of that value, its
    /// interval contains the value or lies within the zone, and the interval does not reach more
    /// than half-way to the other value. With too few blocks ([`Doubt::about`]) it is undecided.
    pub fn growth(&self) -> Growth {
        let bounds = self.bounds.filter(|_| Doubt::about(self.blocks).is_none());
        let Some((lo, hi)) = bounds else { return Growth::Undecided };
        let is = |edge: f64| {
            let within = |zone: f64| edge - zone < lo && hi < edge + zone;
            let near = (self.center - edge).abs() < ZONE;
            near && within(REACH) && ((lo <= edge && edge <= hi) || within(ZONE))
        };
        match () {
            () if is(0.0) => Growth::DoesNotGrow,
            () if is(1.0) => Growth::InProportion,
            () if lo > 1.0 => Growth::Faster,
            () if hi < 0.0 => Growth::Shrinks,
            () if lo > 0.0 && hi < 1.0 => Growth::Slower,
            () => Growth::Undecided,
        }
    }
}

/// Slope of the least-squares line through ln(cost) over ln(size), for pairs (size, cost) in any
/// order. Pairs with a value that is not a positive number are ignored. `None` with fewer than two
/// different sizes.
pub fn power_law_slope(pairs: &[(f64, f64)]) -> Option<f64> {
    let usable = |v: f64| v.is_finite() && v > 0.0;
    let logs: Vec<(f64, f64)> = pairs
        .iter()
        .filter(|(size, cost)| usable(*size) && usable(*cost))
        .map(|(size, cost)| (size.ln(), cost.ln()))
        .collect();
    let first = logs.first()?.0;
    if logs.iter().all(|(x, _)| (x - first).abs() < 1e-9) {
        return None;
    }
    let n = logs.len() as f64;
    let (x_sum, y_sum) = logs.iter().fold((0.0, 0.0), |(xs, ys), (x, y)| (xs + x, ys + y));
    let (x_mean, y_mean) = (x_sum / n, y_sum / n);
    let spread: f64 = logs.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let product: f64 = logs.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    Some(product / spread)
}

/// Mean slope over the blocks' pairs (size, cost) with its interval at `confidence` (for example
/// 0.95). Blocks without a slope ([`power_law_slope`]) are ignored. `None` if no block has a slope
/// or `confidence` is not between 0 and 1.
pub fn slope_over_blocks<'a>(
    blocks: impl IntoIterator<Item = &'a [(f64, f64)]>,
    confidence: f64,
) -> Option<Slope> {
    let slopes: Vec<f64> = blocks.into_iter().filter_map(power_law_slope).collect();
    if slopes.is_empty() || !(confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    let moments = Moments::of(&slopes);
    let center = moments.mean;
    let bounds = (slopes.len() > 1).then(|| {
        let t = student::critical((1.0 - confidence) / 2.0, moments.freedom());
        (center - t * moments.error, center + t * moments.error)
    });
    Some(Slope { center, bounds, blocks: slopes.len() })
}

#[cfg(test)]
mod tests;
