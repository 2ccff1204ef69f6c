//! Percentiles over blocks, read from the merged distributions of all blocks; percentiles are never
//! averaged. Failed operations count as slower than any answer, so a percentile beyond the answered
//! share is only a lower bound.
//!
//! With three blocks, the bounds of a value are the lowest and the highest of the single blocks: a
//! range. With more, a percentile's interval is that of the share of operations beyond it
//! ([`stats::episodes`]), so it never exceeds the observed values; with too few episodes or too
//! little time it has none. The interval of a mean comes from the delete-one-block jackknife on
//! logarithms: block i's pseudo-value is n·ln θ − (n−1)·ln θ₍₋ᵢ₎, and the interval of the
//! pseudo-values is computed like that of any other metric. Source: Efron and Tibshirani, An
//! Introduction to the Bootstrap (1993), chapter 11; Tukey's pseudo-values.

use stats::compare::FEWEST_BLOCKS;
use stats::episodes::{BEYOND_S_MIN, Block, EPISODES_MIN, Pooled};
use stats::{Time, Times};

use crate::view::Value;

/// Confidence of every interval.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Reported percentiles of all latencies: key and quantile.
pub(crate) const PERCENTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)];

/// Latencies of the operations of a block.
#[derive(Debug)]
pub(crate) struct OfBlock {
    times: Times,
    /// Longest latencies over time; `None` if not recorded.
    course: Option<Course>,
}

/// Longest latency in each interval of a block, and the measured time.
#[derive(Clone, Debug)]
struct Course {
    longest_ns: Vec<u64>,
    length_ns: u64,
}

/// Why a percentile has no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unsure {
    /// The times of slow operations were not recorded.
    Unknown,
    /// Too few slow episodes.
    Episodes,
    /// Too short a measurement.
    Short,
}

/// Minimum measured time for an interval of a percentile, seconds.
pub(crate) fn seconds_min(q: f64) -> f64 {
    BEYOND_S_MIN / (1.0 - q)
}

impl From<Times> for OfBlock {
    fn from(times: Times) -> Self {
        Self { times, course: None }
    }
}

impl OfBlock {
    /// Latencies with the longest one per interval of a measurement of this length.
    pub(crate) fn new(times: Times, longest_ns: Option<&[u64]>, length_ns: u64) -> Self {
        let course =
            longest_ns.map(|longest_ns| Course { longest_ns: longest_ns.to_vec(), length_ns });
        Self { times, course }
    }

    fn block(&self) -> Option<Block<'_>> {
        let longest_ns = &self.course.as_ref()?.longest_ns;
        let (answered, failed) = (self.times.answered(), self.times.failed());
        Some(Block { answered, failed, longest_ns })
    }
}

/// The distributions of several blocks, single and merged.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) all: Times,
    parts: Vec<OfBlock>,
}

impl Merged {
    /// Merges the blocks' distributions; empty ones are ignored.
    pub(crate) fn of(parts: impl Iterator<Item = impl Into<OfBlock>>) -> Self {
        let parts = parts.map(Into::into).filter(|part: &OfBlock| !part.times.is_empty());
        let parts: Vec<OfBlock> = parts.collect();
        let mut all = Times::default();
        for part in &parts {
            all.merge(&part.times);
        }
        Self { all, parts }
    }

    /// Percentiles over all operations with their intervals or why they have none, in the order of
    /// [`PERCENTILES`]; empty without operations.
    pub(crate) fn percentiles(&self) -> Vec<(&'static str, Value, Option<Unsure>)> {
        let pooled = self.pooled();
        let read = |(name, q): (&'static str, f64)| {
            let (value, unsure) = self.quantile(q, pooled.as_ref())?;
            Some((name, value, unsure))
        };
        PERCENTILES.into_iter().filter_map(read).collect()
    }

    /// The blocks with their longest latencies over time; `None` if one block lacks them.
    fn pooled(&self) -> Option<Pooled<'_>> {
        let blocks: Option<Vec<Block<'_>>> = self.parts.iter().map(OfBlock::block).collect();
        blocks.map(Pooled::of)
    }

    /// Total measured time of all blocks, seconds.
    fn seconds(&self) -> f64 {
        let courses = self.parts.iter().filter_map(|part| part.course.as_ref());
        courses.map(|course| course.length_ns as f64 / 1e9).sum()
    }

    fn quantile(&self, q: f64, pooled: Option<&Pooled<'_>>) -> Option<(Value, Option<Unsure>)> {
        let ns = match self.all.quantile(q)? {
            Time::Of(ns) => ns,
            Time::Bound { at_least } => return Some((Value::at_least(at_least as f64), None)),
        };
        let alone = Value::alone(ns as f64);
        let unsure = match pooled {
            _ if self.parts.len() < FEWEST_BLOCKS => return Some((alone, None)),
            None => Some(Unsure::Unknown),
            Some(pooled) if pooled.episodes(q) < EPISODES_MIN => Some(Unsure::Episodes),
            Some(_) if self.seconds() < seconds_min(q) => Some(Unsure::Short),
            Some(_) => None,
        };
        if self.parts.len() == FEWEST_BLOCKS {
            let own = self.parts.iter().map(|part| part.times.known(q).map(|ns| ns as f64));
            let own: Option<Vec<f64>> = own.collect();
            return Some((range(ns as f64, &own.unwrap_or_default()), unsure));
        }
        let (Some(pooled), None) = (pooled, unsure) else { return Some((alone, unsure)) };
        let (low, high) = pooled.shares_beyond(q, ns);
        let ends = (self.all.known(1.0 - high), self.all.known(1.0 - low));
        // A bound among failed operations is unknown.
        let (Some(lo), Some(hi)) = ends else { return Some((alone, None)) };
        Some((Value::new(ns as f64, Some(lo as f64), Some(hi as f64)), None))
    }

    /// The value of a quantile; `None` without operations.
    pub(crate) fn at(&self, q: f64) -> Option<Value> {
        self.quantile(q, self.pooled().as_ref()).map(|(value, _)| value)
    }

    /// Mean over answered operations with its interval, limited to observed values; `None` without
    /// answers.
    pub(crate) fn mean(&self, seed: u64) -> Option<Value> {
        let answered = self.all.answered();
        if answered.is_empty() {
            return None;
        }
        let parts = self.parts.iter().map(|p| p.times.answered()).filter(|p| !p.is_empty());
        let own: Vec<(f64, f64)> = parts.map(|p| (p.mean_ns(), p.count() as f64)).collect();
        let (sum, count) =
            own.iter().fold((0.0, 0.0), |(s, n), (mean, of)| (s + mean * of, n + of));
        let without = own.iter().map(|(mean, of)| (sum - mean * of) / (count - of));
        let (means, without): (Vec<f64>, Vec<f64>) = own.iter().map(|o| o.0).zip(without).unzip();
        let limits = (answered.quantile_ns(0.0) as f64, answered.max_ns() as f64);
        Some(over_all(answered.mean_ns(), (&means, &without), limits, seed))
    }

    /// The largest value, or a lower bound if operations failed. Its interval is that of the
    /// bootstrap in closed form: the largest of n drawn blocks is at most the k-th of n with
    /// probability (k/n)ⁿ.
    pub(crate) fn largest(&self) -> Option<Value> {
        if let Time::Bound { at_least } = self.all.longest()? {
            return Some(Value::at_least(at_least as f64));
        }
        let mut largest: Vec<u64> =
            self.parts.iter().map(|p| p.times.answered().max_ns()).collect();
        largest.sort_unstable();
        let n = largest.len();
        let center = *largest.last()? as f64;
        if n < FEWEST_BLOCKS {
            return Some(Value::alone(center));
        }
        let at_most = |k: usize| (k as f64 / n as f64).powf(n as f64);
        let k = (1..=n).find(|k| at_most(*k) >= 0.025).unwrap_or(n);
        Some(Value::new(center, Some(largest[k - 1] as f64), Some(center)))
    }
}

/// A value with the lowest and the highest value of single blocks as its range, if known.
fn range(all: f64, own: &[f64]) -> Value {
    let ends = |pick: fn(f64, f64) -> f64| own.iter().copied().reduce(pick);
    // The value over all operations may be outside the values of single blocks.
    let (lo, hi) = (ends(f64::min).map(|lo| lo.min(all)), ends(f64::max).map(|hi| hi.max(all)));
    Value::new(all, lo, hi)
}

/// A statistic over all blocks with its interval, from its values for each block alone and for all
/// others. With three blocks it is the range; with fewer, or if the statistic is 0, there is none.
/// The interval is clamped to possible values.
pub(crate) fn over_all(
    all: f64,
    (own, without): (&[f64], &[f64]),
    (least, most): (f64, f64),
    seed: u64,
) -> Value {
    let few = own.len() == FEWEST_BLOCKS;
    let alone = if few { range(all, own) } else { Value::alone(all) };
    if own.len() < FEWEST_BLOCKS || all <= 0.0 || without.iter().any(|w| *w <= 0.0) {
        return alone;
    }
    let weight = without.len() as f64 - 1.0;
    let pseudo: Vec<f64> = without.iter().map(|w| (all / w).powf(weight)).collect();
    let Ok(estimate) = stats::geometric_mean_interval(&pseudo, CONFIDENCE, seed) else {
        return alone;
    };
    // The center of the pseudo-values corrects a bias far smaller than the interval, so show the
    // value of the merged distribution instead.
    let moved = |bound: f64| (all * bound / estimate.center).clamp(least.min(all), most.max(all));
    let whole = Value::new(all, estimate.lo().map(moved), estimate.hi().map(moved));
    let observed = alone.lo.zip(alone.hi);
    observed.map_or(whole, |observed| whole.within(observed))
}

#[cfg(test)]
mod coverage;

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Histogram;

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::new();
        for value in values {
            h.record(*value);
        }
        h
    }

    #[test]
    fn the_center_is_that_of_the_merged_distribution() {
        let parts = [of(&[100; 99]), of(&[900; 1])];
        let merged = Merged::of(parts.iter().map(Times::all));
        let (name, median, _) = merged.percentiles()[0];
        assert!(name == "p50" && (median.center - 100.0).abs() < 0.1, "{median:?}");
        assert_eq!(merged.all.answered().count(), 100);
    }

    #[test]
    fn failures_are_slower_than_any_percentile() {
        let mut answered = of(&[3_000_000; 6]);
        answered.record_many(1_000_000, 9_990);
        let times = Times::new(&answered, 4, 5_000_000_000);
        let other = || Times::all(&of(&[1_000_000; 100]));
        let merged = Merged::of([times, other(), other()].into_iter());
        let rarest = merged.percentiles()[5].1;
        assert_eq!(rarest, Value::at_least(5e9));
        assert_eq!(merged.largest(), Some(Value::at_least(5e9)));
        assert!(!merged.percentiles()[0].1.at_least && merged.percentiles()[0].1.lo.is_some());
        let json = serde_json::to_string(&rarest).unwrap();
        assert_eq!(json, r#"{"at_least":5000000000.0}"#);
    }

    #[test]
    fn three_blocks_have_a_range_and_four_none_without_a_course() {
        let of_scale = |scale: u64| of(&[scale, 2 * scale, 9 * scale]);
        let merged = |n: u64| Merged::of((1..=n).map(|i| Times::all(&of_scale(100 * i))));
        for (name, value, unsure) in merged(3).percentiles().into_iter().filter(|p| p.0 != "p50") {
            assert_eq!((value.lo, value.hi), (Some(900.0), Some(2_701.0)), "{name}");
            assert_eq!(unsure, Some(Unsure::Unknown));
        }
        let mean = merged(3).mean(1).unwrap();
        assert!(mean.lo.is_some_and(|lo| (lo / 400.0 - 1.0).abs() < 0.01), "{mean:?}");
        assert!(mean.hi.is_some_and(|hi| (hi / 1_200.0 - 1.0).abs() < 0.01), "{mean:?}");
        let none = |(_, value, unsure): &(&str, Value, Option<Unsure>)| {
            value.lo.is_none() && *unsure == Some(Unsure::Unknown)
        };
        assert!(merged(4).percentiles().iter().all(none));
    }

    /// Four blocks so different that Student's interval of the mean exceeds all observations.
    #[test]
    fn a_mean_lies_within_what_was_observed() {
        let parts = [of(&[10; 50]), of(&[10; 50]), of(&[10; 50]), of(&[10_000; 50])];
        let mean = Merged::of(parts.iter().map(Times::all)).mean(1).unwrap();
        assert!(mean.lo >= Some(10.0) && mean.hi <= Some(10_010.0), "{mean:?}");
        assert!(mean.hi > Some(mean.center), "{mean:?}");
    }

    #[test]
    fn one_block_has_no_interval_and_none_has_no_value() {
        let parts = [of(&[100]), Histogram::new()];
        let one = Merged::of(parts.iter().map(Times::all)).percentiles()[0].1;
        assert_eq!((one.lo, one.hi), (None, None));
        assert!(Merged::of(std::iter::empty::<Times>()).mean(1).is_none());
        assert!(Merged::of(std::iter::empty::<Times>()).largest().is_none());
    }

    #[test]
    fn the_largest_is_bounded_by_the_blocks_own_largest() {
        let parts = [of(&[10]), of(&[30]), of(&[20])];
        let got = Merged::of(parts.iter().map(Times::all)).largest().unwrap();
        assert_eq!((got.center, got.lo, got.hi), (30.0, Some(10.0), Some(30.0)));
    }
}
