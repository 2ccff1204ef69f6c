//! Percentiles over blocks: the blocks' distributions are merged and read; percentiles are never
//! averaged. Operations that failed are slower than any percentile: beyond the share that was
//! answered one is known only to be no less than a bound.
//!
//! The interval comes from leaving out one block at a time (the delete-one-block jackknife, on
//! logarithms): block i's pseudo-value is n·ln θ − (n−1)·ln θ₍₋ᵢ₎, and the pseudo-values' interval
//! is taken like that of any other metric. With the few blocks of a run this covers the truth more
//! often than resampling whole blocks, whose percentile interval is too narrow for small n, and it
//! costs 3n mergers instead of hundreds of times n. Source: Efron and Tibshirani, An Introduction
//! to the Bootstrap (1993), chapter 11; Tukey's pseudo-values.

use model::{Counts, ErrorClass};
use stats::Histogram;
use stats::compare::FEWEST_BLOCKS;

use crate::view::{Time, Value};

/// Confidence of every interval.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The percentiles that every time is reported with: key and quantile.
pub(crate) const PERCENTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)];

/// The times of the operations of a block, and how many have none because they failed: those are
/// slower than any percentile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    answered: Histogram,
    failed: u64,
    /// So long the longest of all was waited for at least, nanoseconds.
    longest_ns: u64,
}

impl Times {
    /// Of operations whose times are `answered`; one that timed out was waited for as long as
    /// `timeout_ns`.
    pub(crate) fn of(answered: &Histogram, counts: &Counts, timeout_ns: u64) -> Self {
        let timed_out = counts.errors_by_class.contains_key(&ErrorClass::Timeout);
        let waited_ns = if timed_out { timeout_ns } else { 0 };
        let longest_ns = answered.max_ns().max(waited_ns);
        Self { answered: answered.clone(), failed: counts.error, longest_ns }
    }

    /// Of times that only answered operations have.
    pub(crate) fn all(answered: &Histogram) -> Self {
        Self { answered: answered.clone(), failed: 0, longest_ns: answered.max_ns() }
    }

    fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.failed == 0
    }

    fn merge(&mut self, other: &Self) {
        self.answered.merge(&other.answered);
        self.failed += other.failed;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }

    /// A quantile over all of them, 0 to 1; `None` without any.
    pub(crate) fn quantile(&self, q: f64) -> Option<Time> {
        let answered = self.answered.count();
        let of_answered = q * (answered + self.failed) as f64 / answered.max(1) as f64;
        if self.is_empty() {
            None
        } else if answered == 0 || of_answered > 1.0 {
            Some(Time::Bound { at_least: self.longest_ns })
        } else {
            Some(Time::Of(self.answered.quantile_ns(of_answered)))
        }
    }

    /// The same where it is known, nanoseconds.
    pub(crate) fn known(&self, q: f64) -> Option<u64> {
        match self.quantile(q)? {
            Time::Of(ns) => Some(ns),
            Time::Bound { .. } => None,
        }
    }
}

/// The distributions of several blocks, merged, and merged without each one.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) all: Times,
    without: Vec<Times>,
    /// Each block's largest value, ascending.
    largest: Vec<u64>,
}

impl Merged {
    /// Merges the blocks' distributions; empty ones count as no block.
    pub(crate) fn of(parts: impl Iterator<Item = Times>) -> Self {
        let parts: Vec<Times> = parts.filter(|p| !p.is_empty()).collect();
        let mut after = vec![Times::default()];
        for part in parts.iter().rev() {
            let mut next = after[after.len() - 1].clone();
            next.merge(part);
            after.push(next);
        }
        let all = after.pop().unwrap_or_default();
        let mut before = Times::default();
        let mut without = Vec::new();
        for part in &parts {
            let mut rest = after.pop().unwrap_or_default();
            rest.merge(&before);
            before.merge(part);
            without.push(rest);
        }
        let mut largest: Vec<u64> = parts.iter().map(|p| p.answered.max_ns()).collect();
        largest.sort_unstable();
        Self { all, without, largest }
    }

    /// Operations of all blocks that have a time.
    pub(crate) fn answered(&self) -> &Histogram {
        &self.all.answered
    }

    /// A percentile of all operations, with its interval; `None` without any.
    pub(crate) fn quantile(&self, seed: u64, q: f64) -> Option<Value> {
        let center = match self.all.quantile(q)? {
            Time::Of(ns) => ns as f64,
            Time::Bound { at_least } => return Some(Value::at_least(at_least as f64)),
        };
        let without = self.without.iter().map(|times| times.known(q).map(|ns| ns as f64));
        // Where it is not known without one of the blocks, it has no interval.
        let without: Option<Vec<f64>> = without.collect();
        Some(without.map_or(Value::alone(center), |without| jackknife(center, &without, seed)))
    }

    /// The mean of the operations that were answered, with its interval; `None` without any.
    pub(crate) fn mean(&self, seed: u64) -> Option<Value> {
        let without: Vec<f64> = self.without.iter().map(|t| t.answered.mean_ns()).collect();
        let is_empty = self.all.answered.is_empty();
        (!is_empty).then(|| jackknife(self.all.answered.mean_ns(), &without, seed))
    }

    /// The largest value, or a bound where operations failed. Its interval is the bootstrap's,
    /// which has a closed form: the largest of n drawn blocks is at most the k-th of n with
    /// probability (k/n)ⁿ.
    pub(crate) fn largest(&self) -> Option<Value> {
        if self.all.failed > 0 {
            return Some(Value::at_least(self.all.longest_ns as f64));
        }
        let n = self.largest.len();
        let center = *self.largest.last()? as f64;
        if n < FEWEST_BLOCKS {
            return Some(Value::alone(center));
        }
        let at_most = |k: usize| (k as f64 / n as f64).powf(n as f64);
        let k = (1..=n).find(|k| at_most(*k) >= 0.025).unwrap_or(n);
        Some(Value::new(center, Some(self.largest[k - 1] as f64), Some(center)))
    }
}

/// A statistic of all blocks with its interval, from what it is without each block. There is no
/// interval below three blocks, nor where the statistic is 0.
pub(crate) fn jackknife(all: f64, without: &[f64], seed: u64) -> Value {
    let alone = Value::alone(all);
    if without.len() < FEWEST_BLOCKS || all <= 0.0 || without.iter().any(|w| *w <= 0.0) {
        return alone;
    }
    let weight = without.len() as f64 - 1.0;
    let pseudo: Vec<f64> = without.iter().map(|w| (all / w).powf(weight)).collect();
    let Ok(estimate) = stats::geometric_mean_interval(&pseudo, CONFIDENCE, seed) else {
        return alone;
    };
    // The pseudo-values' own centre corrects a bias that is far smaller than the interval; the
    // centre shown is the merged distribution's own value.
    let moved = |bound: f64| all * bound / estimate.center;
    Value::new(all, estimate.lo().map(moved), estimate.hi().map(moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::new();
        for value in values {
            h.record(*value);
        }
        h
    }

    #[test]
    fn the_centre_is_read_from_the_merged_distribution() {
        let parts = [of(&[100; 99]), of(&[900; 1])];
        let merged = Merged::of(parts.iter().map(Times::all));
        let median = merged.quantile(1, 0.5).unwrap();
        assert!((median.center - 100.0).abs() < 0.1, "{median:?}");
        assert_eq!(merged.answered().count(), 100);
    }

    #[test]
    fn failures_are_slower_than_any_percentile() {
        let mut counts = Counts { ok: 9_996, ..Counts::default() };
        (0..4).for_each(|_| counts.fail(ErrorClass::Timeout, ""));
        let mut answered = of(&[3_000_000; 6]);
        answered.record_many(1_000_000, 9_990);
        let times = Times::of(&answered, &counts, 5_000_000_000);
        assert_eq!(times.quantile(0.5), Some(Time::Of(answered.quantile_ns(0.5))));
        assert_eq!(times.quantile(0.9995), Some(Time::Of(answered.quantile_ns(1.0))));
        assert_eq!(times.quantile(0.9999), Some(Time::Bound { at_least: 5_000_000_000 }));
        let other = || Times::all(&of(&[1_000_000; 100]));
        let merged = Merged::of([times, other(), other()].into_iter());
        assert_eq!(merged.quantile(1, 0.9999), Some(Value::at_least(5e9)));
        assert_eq!(merged.largest(), Some(Value::at_least(5e9)));
        assert!(merged.quantile(1, 0.5).is_some_and(|v| !v.at_least && v.lo.is_some()));
        // Refused at once, all of them: nothing is known but that.
        let mut refused = Counts::default();
        refused.fail(ErrorClass::Refused, "");
        let none = Times::of(&Histogram::new(), &refused, 5);
        assert_eq!(none.quantile(0.5), Some(Time::Bound { at_least: 0 }));
        assert_eq!(Times::default().quantile(0.5), None);
        let json = serde_json::to_string(&merged.quantile(1, 0.9999)).unwrap();
        assert_eq!(json, r#"{"at_least":5000000000.0}"#);
    }

    #[test]
    fn each_block_is_left_out_once() {
        let parts = [of(&[10]), of(&[20, 20]), of(&[30, 30, 30])];
        let merged = Merged::of(parts.iter().map(Times::all));
        let counts: Vec<u64> = merged.without.iter().map(|t| t.answered.count()).collect();
        assert_eq!(counts, [5, 4, 3]);
        assert_eq!(merged.without[2].answered.max_ns(), 20);
    }

    #[test]
    fn one_block_has_no_interval_and_none_has_no_value() {
        let parts = [of(&[100]), Histogram::new()];
        let one = Merged::of(parts.iter().map(Times::all)).quantile(1, 0.5).unwrap();
        assert_eq!((one.lo, one.hi), (None, None));
        assert!(Merged::of([].into_iter()).mean(1).is_none());
        assert!(Merged::of([].into_iter()).largest().is_none());
    }

    #[test]
    fn the_largest_is_bounded_by_the_blocks_own_largest() {
        let parts = [of(&[10]), of(&[30]), of(&[20])];
        let got = Merged::of(parts.iter().map(Times::all)).largest().unwrap();
        assert_eq!((got.center, got.lo, got.hi), (30.0, Some(10.0), Some(30.0)));
    }

    /// Blocks of exponential times whose scale varies by 10 % from block to block: the interval of
    /// the 99th percentile must cover that of the whole population about as often as it says.
    #[test]
    fn the_interval_covers_the_truth() {
        let mut seed = 12_345_u64;
        let mut uniform = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            ((seed >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        };
        let mut block = |n: usize| {
            let scale = 100_000.0 * (1.0 + 0.2 * 3f64.sqrt() * (uniform() - 0.5));
            let mut h = Histogram::new();
            (0..n).for_each(|_| h.record((-uniform().ln() * scale) as u64));
            h
        };
        let everything: Vec<Histogram> = (0..1_000).map(|_| block(300)).collect();
        let mut population = Histogram::new();
        for part in &everything {
            population.merge(part);
        }
        let truth = population.quantile_ns(0.99) as f64;
        let runs = 120;
        let covered = (0..runs)
            .filter(|run| {
                let parts: Vec<Histogram> = (0..5).map(|_| block(1_000)).collect();
                let value = Merged::of(parts.iter().map(Times::all)).quantile(*run, 0.99);
                value.is_some_and(|v| v.lo <= Some(truth) && v.hi >= Some(truth))
            })
            .count();
        assert!(covered * 100 >= runs as usize * 91, "{covered} of {runs}");
    }
}
