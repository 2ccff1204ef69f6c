//! Results over time.

use serde::{Deserialize, Serialize};

/// Operations of a phase that finished in each interval, over all clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the phase.
    pub phase: String,
    /// Start of its measurement, nanoseconds since the start of the trial: the clock of
    /// [`Sample::at_ns`](crate::Sample::at_ns).
    pub begun_ns: u64,
    /// Length of an interval, nanoseconds.
    pub interval_ns: u64,
    /// Operations finished in each interval from the start of the measurement.
    pub done_per_interval: Vec<u64>,
    /// Reads and misses in the same intervals; empty without misses.
    pub reads_per_interval: Vec<(u64, u64)>,
    /// Operations that failed in the same intervals, up to the last one with a failure: when an
    /// error was received or the operation was given up. Empty without failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_per_interval: Vec<u64>,
    /// End of each of its own intervals, nanoseconds since the start of the measurement, and the
    /// 99th percentile of the response time in it, nanoseconds. A failed operation took at least
    /// its timeout. Empty for fills and ladders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p99: Vec<(u64, u64)>,
}

impl Series {
    /// True if one of its intervals contains a time on the clock of `begun_ns`, nanoseconds.
    pub fn covers(&self, at_ns: u64) -> bool {
        let length_ns = self.interval_ns * self.done_per_interval.len() as u64;
        (self.begun_ns..self.begun_ns + length_ns).contains(&at_ns)
    }

    /// Adds the operations of `next`, whose first interval is the one with number `first` here.
    pub fn add(&mut self, first: usize, next: &Self) {
        let numbers = [
            (&mut self.done_per_interval, &next.done_per_interval),
            (&mut self.failed_per_interval, &next.failed_per_interval),
        ];
        for (own, theirs) in numbers.into_iter().filter(|(_, theirs)| !theirs.is_empty()) {
            own.resize(own.len().max(first + theirs.len()), 0);
            own[first..].iter_mut().zip(theirs).for_each(|(own, theirs)| *own += theirs);
        }
    }
}
