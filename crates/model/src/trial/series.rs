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
}
