//! Percentiles over blocks: the blocks' distributions are merged and read; percentiles are never
//! averaged.
//!
//! The interval comes from leaving out one block at a time (the delete-one-block jackknife, on
//! logarithms): block i's pseudo-value is n·ln θ − (n−1)·ln θ₍₋ᵢ₎, and the pseudo-values' interval
//! is taken like that of any other metric. With the few blocks of a run this covers the truth more
//! often than resampling whole blocks, whose percentile interval is too narrow for small n, and it
//! costs 3n mergers instead of hundreds of times n. Source: Efron and Tibshirani, An Introduction
//! to the Bootstrap (1993), chapter 11; Tukey's pseudo-values.

use stats::Histogram;

use crate::view::Value;

/// Confidence of every interval.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The percentiles that every time is reported with: key and quantile.
pub(crate) const PERCENTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999)];

/// The distributions of several blocks, merged, and merged without each one.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) all: Histogram,
    without: Vec<Histogram>,
    /// Each block's largest value, ascending.
    largest: Vec<u64>,
}

impl Merged {
    /// Merges the blocks' distributions; empty ones count as no block.
    pub(crate) fn of<'a>(parts: impl Iterator<Item = &'a Histogram>) -> Self {
        let parts: Vec<&Histogram> = parts.filter(|p| !p.is_empty()).collect();
        let mut after = vec![Histogram::new()];
        for part in parts.iter().rev() {
            let mut next = after[after.len() - 1].clone();
            next.merge(part);
            after.push(next);
        }
        let all = after.pop().unwrap_or_default();
        let mut before = Histogram::new();
        let mut without = Vec::new();
        for part in &parts {
            let mut rest = after.pop().unwrap_or_default();
            rest.merge(&before);
            before.merge(part);
            without.push(rest);
        }
        let mut largest: Vec<u64> = parts.iter().map(|p| p.max_ns()).collect();
        largest.sort_unstable();
        Self { all, without, largest }
    }

    /// What `read` reads of the merged distribution, with its interval; `None` when it is empty.
    pub(crate) fn value(&self, seed: u64, read: impl Fn(&Histogram) -> f64) -> Option<Value> {
        if self.all.is_empty() {
            return None;
        }
        let without: Vec<f64> = self.without.iter().map(&read).collect();
        Some(jackknife(read(&self.all), &without, seed))
    }

    /// The largest value. Its interval is the bootstrap's, which has a closed form: the largest of
    /// n drawn blocks is at most the k-th of n with probability (k/n)ⁿ.
    pub(crate) fn largest(&self) -> Option<Value> {
        let n = self.largest.len();
        let center = *self.largest.last()? as f64;
        if n < 2 {
            return Some(Value { center, lo: None, hi: None });
        }
        let at_most = |k: usize| (k as f64 / n as f64).powf(n as f64);
        let k = (1..=n).find(|k| at_most(*k) >= 0.025).unwrap_or(n);
        Some(Value { center, lo: Some(self.largest[k - 1] as f64), hi: Some(center) })
    }
}

/// A statistic of all blocks with its interval, from what it is without each block. There is no
/// interval below two blocks, nor where the statistic is 0.
pub(crate) fn jackknife(all: f64, without: &[f64], seed: u64) -> Value {
    let alone = Value { center: all, lo: None, hi: None };
    if without.len() < 2 || all <= 0.0 || without.iter().any(|w| *w <= 0.0) {
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
    Value { center: all, lo: estimate.lo().map(moved), hi: estimate.hi().map(moved) }
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
        let merged = Merged::of(parts.iter());
        let median = merged.value(1, |h| h.quantile_ns(0.5) as f64).unwrap();
        assert!((median.center - 100.0).abs() < 0.1, "{median:?}");
        assert_eq!(merged.all.count(), 100);
    }

    #[test]
    fn each_block_is_left_out_once() {
        let parts = [of(&[10]), of(&[20, 20]), of(&[30, 30, 30])];
        let merged = Merged::of(parts.iter());
        let counts: Vec<u64> = merged.without.iter().map(Histogram::count).collect();
        assert_eq!(counts, [5, 4, 3]);
        assert_eq!(merged.without[2].max_ns(), 20);
    }

    #[test]
    fn one_block_has_no_interval_and_none_has_no_value() {
        let parts = [of(&[100]), Histogram::new()];
        let one = Merged::of(parts.iter()).value(1, |h| h.quantile_ns(0.5) as f64).unwrap();
        assert_eq!((one.lo, one.hi), (None, None));
        assert!(Merged::of([].into_iter()).value(1, Histogram::mean_ns).is_none());
        assert!(Merged::of([].into_iter()).largest().is_none());
    }

    #[test]
    fn the_largest_is_bounded_by_the_blocks_own_largest() {
        let parts = [of(&[10]), of(&[30]), of(&[20])];
        let got = Merged::of(parts.iter()).largest().unwrap();
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
                let value = Merged::of(parts.iter()).value(*run, |h| h.quantile_ns(0.99) as f64);
                value.is_some_and(|v| v.lo <= Some(truth) && v.hi >= Some(truth))
            })
            .count();
        assert!(covered * 100 >= runs as usize * 91, "{covered} of {runs}");
    }
}
