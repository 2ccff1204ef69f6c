//! Latency distributions as redis-benchmark lists them: in microseconds, rounded to significant
//! digits.
//!
//! The original uses an `HdrHistogram` from 10 µs to 3 s, with a smallest step of 8 µs, and clips
//! larger values. Here the step is 1 µs and nothing is clipped. Levels and omitted lines are those
//! of the original.

use stats::Histogram;

/// A line of a listing: `count` requests took at most `up_to_us`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// The share in percent, or the listed level.
    pub(super) percent: f64,
    pub(super) up_to_us: u64,
    pub(super) count: u64,
}

/// A latency distribution in steps of the given number of significant digits.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    /// Upper bound in microseconds and count of each non-empty step, ascending.
    steps: Vec<(u64, u64)>,
    total: u64,
    digits: u8,
    min_us: u64,
    mean_us: f64,
}

/// Steps of [`Latencies::by_time`]: 100 µs up to 2 ms, then 1 ms.
const FINE_US: u64 = 100;
const COARSE_US: u64 = 1_000;
const COARSE_ABOVE_US: u64 = 2_000;

impl Latencies {
    /// Converts a histogram in nanoseconds; `digits` is 1 to 4.
    pub(super) fn new(histogram: &Histogram, digits: u8) -> Self {
        let mut steps: Vec<(u64, u64)> = Vec::new();
        let mut min_us = u64::MAX;
        for (ns, count) in histogram.recorded() {
            let (from_us, up_to_us) = step_of(ns / 1_000, digits);
            min_us = min_us.min(from_us);
            match steps.last_mut() {
                Some((us, before)) if *us == up_to_us => *before += count,
                _ => steps.push((up_to_us, count)),
            }
        }
        let total = histogram.count();
        if total == 0 {
            min_us = 0;
        }
        Self { steps, total, digits, min_us, mean_us: histogram.mean_ns() / 1e3 }
    }

    pub(super) fn mean_ms(&self) -> f64 {
        self.mean_us / 1e3
    }

    pub(super) fn min_ms(&self) -> f64 {
        self.min_us as f64 / 1e3
    }

    pub(super) fn max_ms(&self) -> f64 {
        self.steps.last().map_or(0.0, |(us, _)| *us as f64 / 1e3)
    }

    /// The `q` quantile (0 to 1); 0 if empty.
    pub(super) fn quantile_ms(&self, q: f64) -> f64 {
        let wanted = ((self.total as f64 * q).ceil() as u64).max(1);
        let found = self.cumulative().find(|(_, count)| *count >= wanted);
        found.map_or(0.0, |(us, _)| us as f64 / 1e3)
    }

    /// Upper bound and cumulative count of each step.
    fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        self.steps.iter().scan(0, |sum, (us, count)| {
            *sum += count;
            Some((*us, *sum))
        })
    }

    /// Lines at levels that halve the distance to 100 %: 0, 50, 75, 87.5, …
    pub(super) fn by_level(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut left = 100.0;
        for (up_to_us, count) in self.cumulative() {
            let share = 100.0 * count as f64 / self.total as f64;
            let mut percent = 100.0 - left;
            while percent <= share {
                // A step that reaches several levels is listed once, at the first one.
                if lines.last().is_none_or(|line| line.count != count) {
                    lines.push(Line { percent, up_to_us, count });
                }
                if count == self.total {
                    lines.push(Line { percent: 100.0, up_to_us, count });
                    return lines;
                }
                left /= 2.0;
                percent = 100.0 - left;
            }
        }
        lines
    }

    /// Cumulative counts up to 0.1 ms, 0.2 ms, …
    pub(super) fn by_time(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut steps = self.cumulative().peekable();
        let (mut count, mut level_us) = (0, FINE_US);
        while steps.peek().is_some() {
            let (_, up_to_us) = step_of(level_us, self.digits);
            while let Some((_, sum)) = steps.next_if(|(us, _)| *us <= up_to_us) {
                count = sum;
            }
            if lines.last().is_none_or(|line| line.count != count) {
                let percent = 100.0 * count as f64 / self.total as f64;
                lines.push(Line { percent, up_to_us, count });
            }
            level_us += if level_us > COARSE_ABOVE_US { COARSE_US } else { FINE_US };
        }
        lines
    }
}

/// First and last microsecond of the `HdrHistogram` step that contains `us`. As there, steps are at
/// most half as wide as `digits` requires.
fn step_of(us: u64, digits: u8) -> (u64, u64) {
    let kept_bits = (2 * 10_u64.pow(u32::from(digits))).next_power_of_two().ilog2();
    let bits = u64::BITS - us.leading_zeros();
    let shift = bits.saturating_sub(kept_bits);
    let from = us >> shift << shift;
    (from, from + (1 << shift) - 1)
}

#[cfg(test)]
#[path = "distribution_tests.rs"]
mod tests;
