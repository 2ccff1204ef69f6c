//! Paired comparison of two targets by block, and joint verdicts for all comparisons of a run.
//!
//! Within a block both targets meet the same disturbances, so each block gives one number,
//! d = ln(a / b), in which the block's effect cancels. The ratio is exp(mean d) with the interval
//! of [`crate::interval`].
//!
//! Verdicts use an equivalence zone: ratios from 1 / (1 + zone) to 1 + zone count as equal.
//! - `Faster` and `Slower`: Student's t of d against the near edge of the zone, two-sided.
//! - `Equal`: two one-sided tests (Schuirmann 1987) show that d lies within both edges.
//! - `Undecided`: neither is shown. A wide interval is never "no difference".
//!
//! A run makes many comparisons. Holm's step-down method (Holm 1979) corrects the p-values of all
//! differences together, and likewise those of all equalities: the probability of any false
//! `Faster` or `Slower` in a whole run is at most `alpha`, whatever the dependence between
//! comparisons. A verdict also requires that the printed interval lies entirely on its side of the
//! edge, so that verdict and interval never contradict each other.

use serde::Serialize;
use std::fmt;

pub use crate::interval::FEWEST_BLOCKS;
use crate::interval::{self, Estimate, Interval, IntervalError, RESAMPLES, Warning};
use crate::student::{self, Moments};

#[cfg(test)]
mod tests;

/// Seed of the bootstrap for ratios: a constant, so that equal blocks give equal intervals.
const SEED: u64 = 0;

/// Smallest accepted `alpha`.
const STRICTEST: f64 = 1e-6;

/// One value per block for each of two targets, in the same order of blocks. Larger is faster
/// (rates); for durations, swap the two.
#[derive(Clone, Copy, Debug)]
pub struct Paired<'a> {
    /// Values of the first target.
    pub a: &'a [f64],
    /// Values of the second target.
    pub b: &'a [f64],
}

/// Verdict on the first target of a comparison relative to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Faster by more than the zone.
    Faster,
    /// Slower by more than the zone.
    Slower,
    /// Within the zone.
    Equal,
    /// None of these is proven.
    Undecided,
}

impl Verdict {
    /// Name in records and on pages: `faster`, `slower`, `equal` or `undecided`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equal => "equal",
            Self::Undecided => "undecided",
        }
    }

    /// The verdict on the second target relative to the first.
    #[must_use]
    pub fn turned(self) -> Self {
        match self {
            Self::Faster => Self::Slower,
            Self::Slower => Self::Faster,
            same => same,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a comparison is undecided, or a caveat about a decided one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// Fewer blocks than [`FEWEST_BLOCKS`].
    TooFewBlocks {
        /// Number of blocks.
        have: usize,
    },
    /// The interval of the ratio contains an edge of the zone.
    Wide,
    /// Significant alone, but not after correction for all comparisons of the run.
    Family {
        /// Number of comparisons judged together.
        comparisons: usize,
    },
    /// All blocks have the same ratio: the resolution of the values is too low.
    Identical {
        /// Number of blocks.
        blocks: usize,
    },
    /// The two sides differ in their number of blocks.
    Unpaired {
        /// Blocks of the first target.
        a: usize,
        /// Blocks of the second target.
        b: usize,
    },
    /// A value of one side has no logarithm.
    Unusable(IntervalError),
    /// The stricter values give another verdict.
    NotStrictly {
        /// Verdict by the normal values.
        verdict: Verdict,
        /// Verdict by the stricter values.
        strict: Verdict,
        /// Definition of the stricter values.
        by: Stricter,
    },
}

impl Doubt {
    /// The doubt about any result from this number of blocks; `None` from [`FEWEST_BLOCKS`] on.
    pub fn about(blocks: usize) -> Option<Self> {
        (blocks < FEWEST_BLOCKS).then_some(Self::TooFewBlocks { have: blocks })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewBlocks { have } => {
                let plural = if *have == 1 { "" } else { "s" };
                write!(f, "{have} block{plural}; {FEWEST_BLOCKS} are needed")
            }
            Self::Wide => f.write_str(
                "the interval crosses the edge of the equivalence zone: more blocks narrow it",
            ),
            Self::Family { comparisons } => write!(
                f,
                "not significant after correcting for {comparisons} comparisons: run more blocks"
            ),
            Self::Identical { blocks } => {
                write!(f, "all {blocks} blocks have the same ratio: its resolution is too low")
            }
            Self::Unpaired { a, b } => {
                write!(f, "`{a}` blocks against `{b}`, expected the same blocks for both")
            }
            Self::Unusable(error) => error.fmt(f),
            Self::NotStrictly { verdict, strict, by } => {
                let usual = if *verdict == Verdict::Equal { "equal" } else { "a difference" };
                let strict = match strict {
                    Verdict::Undecided | Verdict::Equal => strict.name(),
                    Verdict::Faster | Verdict::Slower if *verdict == Verdict::Equal => {
                        "a difference"
                    }
                    Verdict::Faster | Verdict::Slower => "the opposite",
                };
                match by {
                    Stricter::WallTime => write!(
                        f,
                        "the two measures disagree: {usual} without the clients' own work between \
                         calls, {strict} by wall time"
                    ),
                    Stricter::FailuresAtTimeout => write!(
                        f,
                        "the two measures disagree: {usual} by answered operations, {strict} if \
                         failures take the timeout"
                    ),
                }
            }
        }
    }
}

/// A less favorable definition of the values, under which a verdict must hold too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stricter {
    /// Rates by wall time, including the clients' own work between calls.
    WallTime,
    /// Mean times in which each failure counts as long as the timeout.
    FailuresAtTimeout,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Ratio a / b with its interval at 1 − alpha. `None` if the values have no ratio (see the
    /// doubt); without an interval below [`FEWEST_BLOCKS`].
    pub ratio: Option<Estimate>,
    /// Ratio of the stricter values; `None` if there are none.
    pub strict: Option<Estimate>,
    /// Verdict on `a` relative to `b`.
    pub verdict: Verdict,
    /// Two-sided p-value of a difference beyond the zone, corrected for the whole run; to be
    /// compared with alpha. 1 if nothing was tested.
    pub p: f64,
    /// Why it is undecided, or a caveat; `None` if there is none.
    pub doubt: Option<Doubt>,
}

impl Comparison {
    /// The same, but undecided if the stricter values give another verdict.
    fn unless_strictly(self, strict: Self, by: Stricter) -> Self {
        let with = Self { strict: strict.ratio, ..self };
        if with.verdict == strict.verdict {
            return with;
        }
        let doubt = Doubt::NotStrictly { verdict: with.verdict, strict: strict.verdict, by };
        Self { verdict: Verdict::Undecided, doubt: Some(doubt), ..with }
    }
}

impl Paired<'_> {
    /// Ratio a / b with its interval at 1 − `alpha` (0.05 gives 95 %).
    pub fn ratio(&self, alpha: f64) -> Result<Estimate, Doubt> {
        Ok(interval::estimate(&self.differences()?, clamp_alpha(alpha), RESAMPLES, SEED))
    }

    /// ln(a / b) of each block, at least one.
    fn differences(&self) -> Result<Vec<f64>, Doubt> {
        if self.a.len() != self.b.len() {
            return Err(Doubt::Unpaired { a: self.a.len(), b: self.b.len() });
        }
        let a = interval::logs_of(self.a).map_err(Doubt::Unusable)?;
        let b = interval::logs_of(self.b).map_err(Doubt::Unusable)?;
        Ok(a.iter().zip(b).map(|(a, b)| a - b).collect())
    }
}

/// Judges all comparisons of a run together; the result is in the order of `comparisons`.
///
/// `zone` is the half-width of the equivalence zone as a fraction (0.03 is ±3 %). Anything but a
/// number above 0 counts as 0, and then no verdict is `Equal`. `alpha` is the probability of a
/// false difference in the whole run (0.05); it is clamped to 0.000001 to 0.5.
pub fn verdicts(comparisons: &[Paired<'_>], zone: f64, alpha: f64) -> Vec<Comparison> {
    judge(comparisons, zone, alpha, RESAMPLES)
}

/// Like [`verdicts`], but a verdict must also hold for the stricter values in `strict`, which has
/// the same comparisons in the same order. If the two differ, the comparison is undecided.
pub fn strict_verdicts(
    comparisons: &[Paired<'_>],
    strict: &[(Paired<'_>, Stricter)],
    zone: f64,
    alpha: f64,
) -> Vec<Comparison> {
    let (values, ways): (Vec<_>, Vec<_>) = strict.iter().copied().unzip();
    let strictly = verdicts(&values, zone, alpha).into_iter().zip(ways);
    let judged = verdicts(comparisons, zone, alpha).into_iter().zip(strictly);
    judged.map(|(judged, (strict, by))| judged.unless_strictly(strict, by)).collect()
}

/// [`verdicts`] with a given number of resamples.
fn judge(pairs: &[Paired<'_>], zone: f64, alpha: f64, resamples: usize) -> Vec<Comparison> {
    let alpha = clamp_alpha(alpha);
    let edge = zone.max(0.0).ln_1p();
    let tests: Vec<_> = pairs.iter().map(|p| Tested::new(p, edge, alpha, resamples)).collect();
    let family = |p: fn(&PValues) -> f64| {
        let all: Vec<_> = tests.iter().map(|t| t.p_values.as_ref().map_or(f64::NAN, p)).collect();
        holm(&all)
    };
    let differs = family(|p| p.differs);
    let equal = family(|p| p.equal);
    let size = tests.iter().filter(|t| t.p_values.is_some()).count();
    tests
        .into_iter()
        .zip(differs.into_iter().zip(equal))
        .map(|(test, (differs, equal))| test.conclude(differs, equal, edge, alpha, size))
        .collect()
}

/// Uncorrected p-values of one comparison.
struct PValues {
    /// Of a difference beyond the zone, two-sided.
    differs: f64,
    /// Of equality: the larger of the two one-sided p-values.
    equal: f64,
}

/// A comparison before the correction.
struct Tested {
    /// The ratio, or why there is none.
    ratio: Result<Estimate, Doubt>,
    /// `None` if there are too few blocks or no ratio.
    p_values: Option<PValues>,
}

impl Tested {
    /// Ratio and p-values against the edges ±`edge` of the zone, on logs.
    fn new(pair: &Paired<'_>, edge: f64, alpha: f64, resamples: usize) -> Self {
        let logs = match pair.differences() {
            Ok(logs) => logs,
            Err(doubt) => return Self { ratio: Err(doubt), p_values: None },
        };
        let p_values = Doubt::about(logs.len()).is_none().then(|| {
            let moments = Moments::of(&logs);
            let above = |t: f64| student::upper_tail(t, moments.freedom());
            let (high, low) = (moments.t_above(edge), moments.t_above(-edge));
            PValues {
                differs: (2.0 * above(high).min(above(-low))).min(1.0),
                equal: above(low).max(above(-high)),
            }
        });
        Self { ratio: Ok(interval::estimate(&logs, alpha, resamples, SEED)), p_values }
    }

    /// The verdict from corrected p-values, for a family of `size`, and from the interval.
    fn conclude(self, differs: f64, equal: f64, edge: f64, alpha: f64, size: usize) -> Comparison {
        let ratio = match self.ratio {
            Ok(ratio) => ratio,
            Err(doubt) => return undecided(None, doubt),
        };
        let (Some(interval), Some(alone)) = (ratio.interval, self.p_values) else {
            let have = ratio.blocks;
            return undecided(Some(ratio), Doubt::TooFewBlocks { have });
        };
        let shown = |corrected: f64| corrected <= alpha;
        let (verdict, doubt) = match proven_by(&interval, edge) {
            Some(Verdict::Equal) if shown(equal) => (Verdict::Equal, None),
            Some(other) if other != Verdict::Equal && shown(differs) => (other, None),
            Some(_) if shown(alone.equal) || shown(alone.differs) => {
                (Verdict::Undecided, Some(Doubt::Family { comparisons: size }))
            }
            _ => (Verdict::Undecided, Some(Doubt::Wide)),
        };
        let identical = Warning::Identical { blocks: ratio.blocks };
        let coarse = ratio
            .warnings
            .contains(&identical)
            .then_some(Doubt::Identical { blocks: ratio.blocks });
        Comparison {
            ratio: Some(ratio),
            strict: None,
            verdict,
            p: differs,
            doubt: doubt.or(coarse),
        }
    }
}

/// A comparison without a test.
fn undecided(ratio: Option<Estimate>, doubt: Doubt) -> Comparison {
    Comparison { ratio, strict: None, verdict: Verdict::Undecided, p: 1.0, doubt: Some(doubt) }
}

/// The verdict that an interval alone supports; `None` if it contains an edge of the zone, ±`edge`
/// on logs.
fn proven_by(interval: &Interval, edge: f64) -> Option<Verdict> {
    let (low, high) = ((-edge).exp(), edge.exp());
    if interval.lo > high {
        Some(Verdict::Faster)
    } else if interval.hi < low {
        Some(Verdict::Slower)
    } else if low <= interval.lo && interval.hi <= high {
        Some(Verdict::Equal)
    } else {
        None
    }
}

/// Holm's corrected p-values, in the given order. `NaN` means not tested: it does not count in the
/// family, and its result is 1.
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).filter(|i| !p_values[*i].is_nan()).collect();
    order.sort_by(|i, j| p_values[*i].total_cmp(&p_values[*j]));
    let mut corrected = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max((order.len() - rank) as f64 * p_values[i]).min(1.0);
        corrected[i] = largest;
    }
    corrected
}

/// Clamps `alpha` to [`STRICTEST`] to 0.5; `NaN` gives the strictest.
fn clamp_alpha(alpha: f64) -> f64 {
    if alpha.is_nan() { STRICTEST } else { alpha.clamp(STRICTEST, 0.5) }
}
