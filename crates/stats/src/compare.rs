//! Two targets against each other, paired by block, and all comparisons of a run judged at once.
//!
//! Within a block both targets met the same disturbances, so each block gives one number,
//! d = ln(a / b), and what the block did to both cancels. The ratio is exp(mean d) with the
//! interval of [`crate::interval`].
//!
//! A verdict rests on an equivalence zone: ratios from 1 / (1 + zone) to 1 + zone are equal.
//! - `Faster` and `Slower`: Student's t of d against the near edge of the zone, two-sided.
//! - `Equal`: two one-sided tests (Schuirmann 1987) show that d lies within both edges.
//! - `Undecided`: neither is shown. A wide interval is never "no difference".
//!
//! A run makes many comparisons, so the p-values of all differences are corrected together by
//! Holm's step-down method (Holm 1979), and those of all equalities likewise: the chance of one or
//! more false `Faster` or `Slower` in a whole run is at most `alpha`, however the comparisons
//! depend on each other. A verdict also needs the interval that is printed with it to lie wholly
//! on its side of the edge, so the two never contradict each other.

use serde::Serialize;
use std::fmt;

pub use crate::interval::FEWEST_BLOCKS;
use crate::interval::{self, Estimate, Interval, IntervalError, RESAMPLES, Warning};
use crate::student::{self, Moments};

#[cfg(test)]
mod tests;

/// Seed of the resampling for ratios: a constant, so that equal blocks give equal ratios.
const SEED: u64 = 0;

/// The smallest `alpha` that is worked with.
const STRICTEST: f64 = 1e-6;

/// One value a block of two targets, in the same order of blocks; larger is faster (rates).
///
/// For durations, where smaller is faster, the two change places.
#[derive(Clone, Copy, Debug)]
pub struct Paired<'a> {
    /// Values of the first target.
    pub a: &'a [f64],
    /// Values of the second target.
    pub b: &'a [f64],
}

/// The first target of a comparison against the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Faster by more than the zone.
    Faster,
    /// Slower by more than the zone.
    Slower,
    /// Within the zone.
    Equal,
    /// None of these is shown.
    Undecided,
}

impl Verdict {
    /// The word that records and pages use: `faster`, `slower`, `equal` or `undecided`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equal => "equal",
            Self::Undecided => "undecided",
        }
    }

    /// The same seen from the second target.
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

/// Why a comparison is undecided, or what is doubtful about one that is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// Fewer blocks than [`FEWEST_BLOCKS`].
    TooFewBlocks {
        /// Blocks that there are.
        have: usize,
    },
    /// The interval of the ratio holds an edge of the zone.
    Wide,
    /// Clear when looked at alone, not among all comparisons of the run.
    Family {
        /// Comparisons that were judged together.
        comparisons: usize,
    },
    /// All blocks gave the same ratio: the values are coarser than their noise.
    Identical {
        /// Blocks that there are.
        blocks: usize,
    },
    /// The two sides do not have the same blocks.
    Unpaired {
        /// Blocks of the first target.
        a: usize,
        /// Blocks of the second target.
        b: usize,
    },
    /// A side has no logarithms.
    Unusable(IntervalError),
    /// The values counted more strictly give another verdict.
    NotStrictly {
        /// The verdict by the values themselves.
        verdict: Verdict,
        /// The verdict by the values counted more strictly.
        strict: Verdict,
        /// How those are counted.
        by: Stricter,
    },
}

impl Doubt {
    /// The doubt about everything that rests on so many blocks; `None` from [`FEWEST_BLOCKS`] on.
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
                write!(f, "all {blocks} blocks gave the same ratio: coarser than its noise")
            }
            Self::Unpaired { a, b } => {
                write!(f, "`{a}` blocks against `{b}`, expected the same blocks of both")
            }
            Self::Unusable(error) => error.fmt(f),
            Self::NotStrictly { verdict, strict, by: Stricter::WallTime } => write!(
                f,
                "{verdict} without the clients' own work between calls, {strict} by wall time"
            ),
            Self::NotStrictly { verdict, strict, by: Stricter::FailuresAtTimeout } => write!(
                f,
                "{verdict} by answered operations, {strict} with failures as long as the time-out"
            ),
        }
    }
}

/// A way to count that is less kind to a target, by which a verdict must hold as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stricter {
    /// Rates by wall time, of which the clients' own work between calls is a part.
    WallTime,
    /// Mean times in which each failure lasts as long as the time-out.
    FailuresAtTimeout,
}

/// A judged comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// How many times as fast `a` is as `b`, with its interval at 1 − alpha; `None` where the
    /// values give no ratio (see the doubt), and without an interval below [`FEWEST_BLOCKS`].
    pub ratio: Option<Estimate>,
    /// The ratio of the values counted more strictly; `None` where they were not, or give none.
    pub strict: Option<Estimate>,
    /// `a` against `b`.
    pub verdict: Verdict,
    /// Two-sided p-value of a difference beyond the zone, corrected for the whole run: compare it
    /// with alpha. 1 where nothing was tested.
    pub p: f64,
    /// Why it is undecided, or what is doubtful; `None` when there is nothing to say.
    pub doubt: Option<Doubt>,
}

impl Comparison {
    /// The same, undecided where the values counted more strictly say something else.
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
    /// The ratio a / b with its interval at 1 − `alpha` (0.05 gives 95 %).
    pub fn ratio(&self, alpha: f64) -> Result<Estimate, Doubt> {
        Ok(interval::estimate(&self.differences()?, clean_alpha(alpha), RESAMPLES, SEED))
    }

    /// ln(a / b) of each block; at least one.
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
/// `zone` is the half-width of the equivalence zone as a fraction (0.03 is ±3 %); what is not a
/// number above 0 counts as 0, and then nothing can be equal. `alpha` is the chance of a false
/// difference in the whole run (0.05); it is brought into 0.000001 to 0.5.
pub fn verdicts(comparisons: &[Paired<'_>], zone: f64, alpha: f64) -> Vec<Comparison> {
    judge(comparisons, zone, alpha, RESAMPLES)
}

/// [`verdicts`] that hold by `strict` too: the same comparisons in the same order, counted more
/// strictly, each with how. Where the two differ, nothing is decided.
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

/// [`verdicts`] with a chosen number of resamples.
fn judge(pairs: &[Paired<'_>], zone: f64, alpha: f64, resamples: usize) -> Vec<Comparison> {
    let alpha = clean_alpha(alpha);
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

/// The p-values of one comparison, each as if it were the only one.
struct PValues {
    /// Two-sided, of a difference beyond the zone.
    differs: f64,
    /// Of equality: the larger of two one-sided ones.
    equal: f64,
}

/// One comparison before the correction.
struct Tested {
    /// The ratio, or why there is none.
    ratio: Result<Estimate, Doubt>,
    /// `None` where there are too few blocks or no ratio.
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

    /// The verdict by p-values corrected for a family of `size` and by the interval.
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

/// A comparison in which nothing was tested.
fn undecided(ratio: Option<Estimate>, doubt: Doubt) -> Comparison {
    Comparison { ratio, strict: None, verdict: Verdict::Undecided, p: 1.0, doubt: Some(doubt) }
}

/// The verdict that an interval would bear if it were the only one; `None` where it holds an edge
/// of the zone, ±`edge` on logs.
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

/// Holm's corrected p-values, in the order given. `NaN` marks what was not tested: it does not
/// count into the family and comes back as 1.
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

/// `alpha` brought into [`STRICTEST`] to 0.5; what is no number gives the strictest.
fn clean_alpha(alpha: f64) -> f64 {
    if alpha.is_nan() { STRICTEST } else { alpha.clamp(STRICTEST, 0.5) }
}
