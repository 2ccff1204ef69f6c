//! Stolen CPU time.

use serde::{Deserialize, Serialize};

use super::counts::is_zero;

/// CPU time stolen from a measurement by other processes, and by other virtual machines through the
/// hypervisor. No figure is corrected for it; too much of it makes a run NOT-STEADY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Mean time that the generator's threads waited for a CPU occupied by other processes, plus
    /// the steal time of the most affected CPU or, if that is longer, the time for which the
    /// generator was stopped, frozen or throttled; nanoseconds.
    pub generator_ns: u64,
    /// The same for the server's threads, weighted by their work; `None` without a server or if its
    /// processes are not visible.
    pub server_ns: Option<u64>,
    /// Time for which the generator was stopped, frozen or throttled, in pauses of 10 ms or more;
    /// nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub paused_ns: u64,
}

impl Disturbance {
    /// Stolen time of the more affected side as a share of `length_ns`, 0 to 1.
    pub fn share_of(self, length_ns: u64) -> f64 {
        let most_ns = self.generator_ns.max(self.server_ns.unwrap_or(0));
        (most_ns as f64 / length_ns.max(1) as f64).min(1.0)
    }

    /// Sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let server_ns = match (self.server_ns, other.server_ns) {
            (Some(own), Some(theirs)) => Some(own + theirs),
            (own, theirs) => own.or(theirs),
        };
        Self {
            generator_ns: self.generator_ns + other.generator_ns,
            server_ns,
            paused_ns: self.paused_ns + other.paused_ns,
        }
    }
}
