//! A latency distribution, in the buckets of a published study and as a native histogram.
//!
//! Times have three significant digits, so a time within 0.1 % of a bound can count in the next
//! higher bucket.

use stats::Histogram;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Upper bounds in nanoseconds, ascending: the 261 buckets used by the study behind the ramp.
pub(super) static BOUNDS_NS: LazyLock<Vec<u64>> = LazyLock::new(|| {
    // From, to and step.
    let steps_us: [(u64, u64, u64); 7] = [
        (10, 100, 5),
        (101, 200, 1),
        (210, 1_000, 10),
        (1_500, 10_000, 500),
        (15_000, 100_000, 5_000),
        (150_000, 1_000_000, 50_000),
        (1_500_000, 5_000_000, 500_000),
    ];
    let bounds = |(from, to, step): (u64, u64, u64)| (from..=to).step_by(step as usize);
    steps_us.into_iter().flat_map(bounds).map(|us| us * 1_000).collect()
});

/// Schema of the native histograms: 2^5 buckets per doubling, each 2.2 % wider than the one before.
pub(super) const SCHEMA: i32 = 5;

/// Times up to this, in seconds, count as zero in a native histogram: the default of Prometheus.
pub(super) const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// Index of the native bucket for infinity, just above the largest finite number.
const OVERFLOW: i32 = (f64::MAX_EXP << SCHEMA) + 1;

/// Counts by bucket; bounds and sums are in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    /// One count per bound, and one for times above the last; empty until the first `add`.
    counts: Vec<u64>,
    /// Index `i` counts times above `b^(i−1)` up to `b^i` seconds, where `b = 2^(2^−SCHEMA)`.
    native: BTreeMap<i32, u64>,
    /// All requests, including failed ones.
    pub(super) count: u64,
    /// Total time of the answered requests, seconds.
    pub(super) sum_s: f64,
}

impl Distribution {
    /// Adds all times of `times`, and `failed` requests, which count as slower than any bound.
    pub(super) fn add(&mut self, times: &Histogram, failed: u64) {
        self.counts.resize(BOUNDS_NS.len() + 1, 0);
        for (ns, count) in times.recorded() {
            self.counts[BOUNDS_NS.partition_point(|bound| *bound < ns)] += count;
            *self.native.entry(native_index(ns)).or_default() += count;
        }
        if failed > 0 {
            self.counts[BOUNDS_NS.len()] += failed;
            *self.native.entry(OVERFLOW).or_default() += failed;
        }
        self.count += times.count() + failed;
        self.sum_s += times.mean_ns() * times.count() as f64 / 1e9;
    }

    /// Upper bounds in seconds and cumulative counts, ascending; without the +Inf bucket.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        BOUNDS_NS.iter().zip(&self.counts).scan(0, |below, (bound_ns, count)| {
            *below += count;
            Some((*bound_ns as f64 / 1e9, *below))
        })
    }

    /// Index and count of the non-empty native buckets, ascending.
    pub(super) fn native(&self) -> impl Iterator<Item = (i32, u64)> {
        self.native.iter().map(|(index, count)| (*index, *count))
    }
}

fn native_index(ns: u64) -> i32 {
    let seconds = ns.max(1) as f64 / 1e9;
    (seconds.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_261_buckets_from_10_us_to_5_s() {
        assert_eq!(BOUNDS_NS.len(), 261);
        assert!(BOUNDS_NS.is_sorted_by(|a, b| a < b));
        assert_eq!((BOUNDS_NS[0], BOUNDS_NS[260]), (10_000, 5_000_000_000));
        for bound_us in [95, 100, 101, 200, 210, 1_000, 1_500, 10_000, 15_000, 150_000] {
            assert!(BOUNDS_NS.contains(&(bound_us * 1_000)), "{bound_us}");
        }
    }

    #[test]
    fn times_count_in_their_buckets_and_above() {
        let mut times = Histogram::new();
        times.record_many(8_000, 2);
        times.record_many(103_000, 3);
        times.record(7_000_000_000);
        let mut distribution = Distribution::default();
        distribution.add(&times, 0);
        distribution.add(&times, 0);
        let at = |ns: u64| {
            let index = BOUNDS_NS.binary_search(&ns).unwrap();
            distribution.cumulative().nth(index).unwrap().1
        };
        let below = [10_000, 102_000, 104_000, 5_000_000_000].map(at);
        assert_eq!(below, [4, 4, 10, 10]);
        assert_eq!(distribution.count, 12);
        let exact_s = 2.0 * (2.0 * 8e-6 + 3.0 * 103e-6 + 7.0);
        assert!((distribution.sum_s / exact_s - 1.0).abs() < 0.001, "{}", distribution.sum_s);
    }

    #[test]
    fn failures_count_above_all_bounds() {
        let mut times = Histogram::new();
        times.record_many(8_000, 2);
        let mut distribution = Distribution::default();
        distribution.add(&times, 3);
        assert_eq!(distribution.cumulative().last(), Some((5.0, 2)));
        assert_eq!(distribution.native().last(), Some((32_769, 3)));
        assert_eq!(distribution.count, 5);
    }

    #[test]
    fn times_are_within_the_bounds_of_their_native_bucket() {
        for ns in [1, 999, 10_000, 1_000_000_000, 1_090_507_733, 5_000_000_000] {
            let index = native_index(ns);
            let bound = |i: i32| (f64::from(i) / f64::from(1 << SCHEMA)).exp2();
            let seconds = ns as f64 / 1e9;
            assert!(bound(index - 1) < seconds && seconds <= bound(index) * (1.0 + 1e-12), "{ns}");
        }
        assert_eq!(native_index(1_000_000_000), 0);
    }

    #[test]
    fn an_empty_distribution_has_no_bucket_counts() {
        let mut empty = Distribution::default();
        assert_eq!((empty.cumulative().count(), empty.native().count()), (0, 0));
        empty.add(&Histogram::new(), 0);
        assert_eq!((empty.count, empty.native().count()), (0, 0));
    }
}
