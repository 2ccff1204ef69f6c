//! Latencies as redis-benchmark lists them: in microseconds, with some significant digits.
//!
//! The original keeps them in an `HdrHistogram` of values from 10 µs, whose smallest step is 8 µs,
//! to 3 s, where it cuts them. Here the step is 1 µs and nothing is cut. The levels and the lines
//! that are left out are the original's.

use stats::Histogram;

/// A line of a listing: so many requests took at most that long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// The share in percent, or the level that was asked for.
    pub(super) percent: f64,
    pub(super) up_to_us: u64,
    pub(super) count: u64,
}

/// Latencies in steps of the significant digits.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    /// Largest microseconds and number of each step that holds any, ascending.
    steps: Vec<(u64, u64)>,
    total: u64,
    digits: u8,
    least_us: u64,
    mean_us: f64,
}

/// Steps of the second listing: 100 µs up to 2 ms, then 1 ms.
const FINE_US: u64 = 100;
const COARSE_US: u64 = 1_000;
const COARSE_ABOVE_US: u64 = 2_000;

impl Latencies {
    /// Of a distribution in nanoseconds, with 1 to 4 digits.
    pub(super) fn new(histogram: &Histogram, digits: u8) -> Self {
        let mut steps: Vec<(u64, u64)> = Vec::new();
        let mut least_us = u64::MAX;
        for (ns, count) in histogram.recorded() {
            let (from_us, up_to_us) = step_of(ns / 1_000, digits);
            least_us = least_us.min(from_us);
            match steps.last_mut() {
                Some((us, before)) if *us == up_to_us => *before += count,
                _ => steps.push((up_to_us, count)),
            }
        }
        let total = histogram.count();
        if total == 0 {
            least_us = 0;
        }
        Self { steps, total, digits, least_us, mean_us: histogram.mean_ns() / 1e3 }
    }

    pub(super) fn mean_ms(&self) -> f64 {
        self.mean_us / 1e3
    }

    pub(super) fn min_ms(&self) -> f64 {
        self.least_us as f64 / 1e3
    }

    pub(super) fn max_ms(&self) -> f64 {
        self.steps.last().map_or(0.0, |(us, _)| *us as f64 / 1e3)
    }

    /// The latency at or below which a share `q` (0 to 1) lies.
    pub(super) fn quantile_ms(&self, q: f64) -> f64 {
        let wanted = ((self.total as f64 * q).ceil() as u64).max(1);
        let found = self.cumulative().find(|(_, count)| *count >= wanted);
        found.map_or(0.0, |(us, _)| us as f64 / 1e3)
    }

    /// Each step with the number of latencies in it and below.
    fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        self.steps.iter().scan(0, |sum, (us, count)| {
            *sum += count;
            Some((*us, *sum))
        })
    }

    /// Levels that halve what is left to 100 %: 0, 50, 75, 87.5, …
    pub(super) fn by_level(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        let mut left = 100.0;
        for (up_to_us, count) in self.cumulative() {
            let share = 100.0 * count as f64 / self.total as f64;
            let mut percent = 100.0 - left;
            while percent <= share {
                // A step may reach several levels, and is listed with the first.
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

    /// How many took at most 0.1 ms, 0.2 ms, …
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

/// Smallest and largest microseconds that are told apart neither from each other nor from `us`: the
/// steps of an `HdrHistogram`, twice as many as the digits need at least.
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
