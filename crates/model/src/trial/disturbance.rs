//! What others took of the CPUs.

use serde::{Deserialize, Serialize};

/// What others took of the CPUs of a measurement: other processes, and other virtual machines by
/// way of the hypervisor. No figure is corrected for it; where it is too much, a run is NOT-STEADY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// How long the generator's threads waited for a CPU on which others ran, in their mean, and
    /// how long the hypervisor had the CPU of which it took most, nanoseconds.
    pub generator_ns: u64,
    /// The same of the server's threads, of which those that worked more count more; `None` where
    /// there is no server, or its processes are not ours to see.
    pub server_ns: Option<u64>,
}

impl Disturbance {
    /// What was taken from the side from which others took more, as a share of so many nanoseconds,
    /// 0 to 1.
    pub fn share_of(self, length_ns: u64) -> f64 {
        let most_ns = self.generator_ns.max(self.server_ns.unwrap_or(0));
        (most_ns as f64 / length_ns.max(1) as f64).min(1.0)
    }

    /// What both say together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let server_ns = match (self.server_ns, other.server_ns) {
            (Some(own), Some(theirs)) => Some(own + theirs),
            (own, theirs) => own.or(theirs),
        };
        Self { generator_ns: self.generator_ns + other.generator_ns, server_ns }
    }
}
