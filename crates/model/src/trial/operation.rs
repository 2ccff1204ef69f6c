//! Results of one operation, and times of clients that restored records.

use serde::{Deserialize, Serialize};
use stats::Histogram;

use super::counts::Counts;
use super::slowest::Slowest;

/// One operation's result within a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationResult {
    /// `write`, `read`, `change`, `clean`; in the page layout `open`, `close` and `page` (both
    /// together).
    pub operation: String,
    /// Outcomes.
    pub counts: Counts,
    /// Operations finished per second, over all clients: per wall time of the phase, minus the
    /// share that clients spent on untimed preparation and checks.
    pub rate_per_s: f64,
    /// Operations per second of time in calls, summed over the clients; excludes pauses and the
    /// time of other operations. `None` if an event loop does the calls.
    pub calls_rate_per_s: Option<f64>,
    /// Done − sent.
    pub service: Histogram,
    /// Done − intended start; includes the generation of the value if that is timed.
    pub response: Histogram,
    /// Sent − intended start, of an open load; empty for a closed one.
    pub lag: Histogram,
    /// Time spent waiting for a session's lock; empty if no client waited.
    pub lock_wait: Histogram,
    /// Maximum latency over time; `None` in older records, which do not have it.
    pub slowest: Option<Slowest>,
}

/// Time of one client in a phase in which it restored records that cleans had removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Operations answered.
    pub answered: u64,
    /// Time without preparing, checking and restoring, nanoseconds; includes the full time of a
    /// counted operation that started in the warm-up.
    pub free_ns: u64,
    /// Time spent restoring, nanoseconds.
    pub restoring_ns: u64,
}

impl Restored {
    /// Operations per second that all `clients` would reach without restoring: the number of
    /// clients divided by the mean free time per operation, over all operations of all clients.
    ///
    /// Each client ends with a finished, counted operation, so the expected total time is the
    /// number of operations times the mean time of one (Wald's identity), however long a client
    /// spent restoring. A client's own rate lacks this property: a client with a single short call
    /// would count for thousands per second.
    pub fn rate_per_s(clients: &[Self]) -> f64 {
        let answered: u64 = clients.iter().map(|c| c.answered).sum();
        let free_ns: u64 = clients.iter().map(|c| c.free_ns).sum();
        clients.len() as f64 * answered as f64 / (free_ns.max(1) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that spent nearly all of a phase of 80 ms restoring.
    #[test]
    fn a_client_with_one_short_call_does_not_dominate_the_rate() {
        let client = |answered, free_ns| Restored { answered, free_ns, restoring_ns: 0 };
        let clients =
            [client(79, 70_000_000), client(9, 8_000_000), client(1, 100_000), client(1, 27_000)];
        let by_mean_time = 4.0 * 90.0 / 0.078_127;
        let rate = Restored::rate_per_s(&clients);
        assert!((rate / by_mean_time - 1.0).abs() < 1e-12, "{rate}");
    }

    #[test]
    fn rates_add_up_without_restoring() {
        let clients = [100, 300].map(|answered| Restored {
            answered,
            free_ns: 500_000_000,
            ..Restored::default()
        });
        assert!((Restored::rate_per_s(&clients) - 800.0).abs() < 1e-9);
    }
}
