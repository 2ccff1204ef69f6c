//! Arrival times of requests, planned in advance, in nanoseconds.
//!
//! Arrivals are a process of rate one that is stretched over time. The position of the i-th arrival
//! is `i` (constant spacing) or the sum of i exponential draws (a Poisson process). The stages give
//! the expected number of arrivals up to each time. That function is linear where the rate is
//! constant and a parabola where the rate ramps; an arrival occurs where it reaches the arrival's
//! position. So arrivals stay evenly stretched across rate changes, and nothing depends on when the
//! generator asks for the next one.

use serde::{Deserialize, Serialize};
use stats::SplitMix64;
use workloads::kv::numbers;

/// Spacing of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Arrivals {
    /// Equal spacing at a constant rate.
    Constant,
    /// Independent arrivals, as from many users: exponentially distributed spacing.
    Poisson,
}

/// A span in which the rate is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Arrivals per second at its start; 0 or more.
    pub rate_from_per_s: f64,
    /// Arrivals per second at its end.
    pub rate_to_per_s: f64,
    /// Its length, nanoseconds.
    pub length_ns: u64,
}

impl Stage {
    /// Expected arrivals over its whole length.
    fn arrivals(&self) -> f64 {
        f64::midpoint(self.rate_from_per_s, self.rate_to_per_s) * self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.length_ns as f64 / 1e9
    }

    /// Seconds from its start until `count` arrivals are expected: the root of `from·t + (to −
    /// from)·t²/(2·length) = count`, in the form that avoids cancellation.
    fn reached_s(&self, count: f64) -> f64 {
        let slope = (self.rate_to_per_s - self.rate_from_per_s) / self.seconds();
        let root = (self.rate_from_per_s.powi(2) + 2.0 * slope * count).max(0.0).sqrt();
        2.0 * count / (self.rate_from_per_s + root)
    }
}

/// Arrivals of one thread, in order.
#[derive(Clone, Debug)]
pub struct Pacer {
    arrivals: Arrivals,
    stages: Vec<Stage>,
    random: SplitMix64,
    /// The current stage, its start, and the expected arrivals before it.
    stage: usize,
    stage_from_ns: u64,
    before: f64,
    /// Position of the last arrival.
    position: f64,
}

impl Pacer {
    /// Plan for one of `threads` threads, which share the rates equally. Under constant spacing,
    /// thread `thread` is shifted by its fraction of the spacing, so all arrivals together are
    /// evenly spaced. Under Poisson spacing the threads' independent processes add up to one with
    /// the total rate.
    pub fn new(
        arrivals: Arrivals,
        stages: &[Stage],
        (thread, threads): (u32, u32),
        seed: u64,
    ) -> Self {
        let share = 1.0 / f64::from(threads.max(1));
        let stages = stages.iter().map(|s| Stage {
            rate_from_per_s: s.rate_from_per_s * share,
            rate_to_per_s: s.rate_to_per_s * share,
            length_ns: s.length_ns,
        });
        // The first constant arrival is at the start, the second one spacing later.
        let shift = f64::from(thread) * share;
        Self {
            arrivals,
            stages: stages.collect(),
            random: numbers(seed, u64::from(thread), 0),
            stage: 0,
            stage_from_ns: 0,
            before: 0.0,
            position: if arrivals == Arrivals::Constant { shift - 1.0 } else { 0.0 },
        }
    }

    /// Time of the next arrival, nanoseconds from the start of the load; `None` after the last
    /// stage.
    pub fn next_ns(&mut self) -> Option<u64> {
        self.position += match self.arrivals {
            Arrivals::Constant => 1.0,
            // 1 − u lies in (0, 1], so its logarithm is finite.
            Arrivals::Poisson => -(1.0 - self.random.unit()).ln(),
        };
        loop {
            let stage = self.stages.get(self.stage)?;
            let within = self.position - self.before;
            let arrivals = stage.arrivals();
            if within < arrivals {
                return Some(self.stage_from_ns + (stage.reached_s(within) * 1e9) as u64);
            }
            self.before += arrivals;
            self.stage_from_ns += stage.length_ns;
            self.stage += 1;
        }
    }
}

#[cfg(test)]
#[path = "pacer_tests.rs"]
mod tests;
