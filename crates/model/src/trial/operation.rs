//! What one operation gave, and clients that saved again.

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
    /// How they ended.
    pub counts: Counts,
    /// Operations finished per second, over all clients: by the wall time of the phase, less the
    /// share of it that clients spent on untimed preparing and checking.
    pub rate_per_s: f64,
    /// Operations by time in calls, summed over the clients; pauses, and the time of other
    /// operations, are not in it. `None` where an event loop does the calls.
    pub calls_rate_per_s: Option<f64>,
    /// Done − sent.
    pub service: Histogram,
    /// Done − intended start; contains the drawing of the value when that is timed.
    pub response: Histogram,
    /// Sent − intended start, of an open load; empty where a request is intended when it is sent.
    pub lag: Histogram,
    /// Time spent waiting for a session's lock; empty where no lock was waited for.
    pub lock_wait: Histogram,
    /// The longest times in the course of it; `None` in records from before they were kept.
    pub slowest: Option<Slowest>,
}

/// The time of one client in a phase in which it saved again what cleans had removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Operations answered.
    pub answered: u64,
    /// Time in which it neither prepared, checked nor saved again, nanoseconds; with all of the
    /// time of an operation that began in the warm-up and is counted.
    pub free_ns: u64,
    /// Time in which it saved again, nanoseconds.
    pub restoring_ns: u64,
}

impl Restored {
    /// Operations per second of all `clients`, had none of them saved again: as many as there are
    /// by the mean free time of an operation, over all operations of all of them.
    ///
    /// Each client ends with an operation that is finished and counted, so the time of all
    /// operations is, in expectation, their number times that of one (Wald's identity), however
    /// long a client saved again. A client's own rate has no such property: one that came to a
    /// single short call would stand for thousands a second.
    pub fn rate_per_s(clients: &[Self]) -> f64 {
        let answered: u64 = clients.iter().map(|c| c.answered).sum();
        let free_ns: u64 = clients.iter().map(|c| c.free_ns).sum();
        clients.len() as f64 * answered as f64 / (free_ns.max(1) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that saved again for nearly all of a phase, as they came out of one of 80 ms.
    #[test]
    fn a_client_with_one_short_call_does_not_make_the_rate() {
        let client = |answered, free_ns| Restored { answered, free_ns, restoring_ns: 0 };
        let clients =
            [client(79, 70_000_000), client(9, 8_000_000), client(1, 100_000), client(1, 27_000)];
        let by_mean_time = 4.0 * 90.0 / 0.078_127;
        let rate = Restored::rate_per_s(&clients);
        assert!((rate / by_mean_time - 1.0).abs() < 1e-12, "{rate}");
    }

    #[test]
    fn clients_that_are_always_free_have_the_sum_of_their_rates() {
        let clients = [100, 300].map(|answered| Restored {
            answered,
            free_ns: 500_000_000,
            ..Restored::default()
        });
        assert!((Restored::rate_per_s(&clients) - 800.0).abs() < 1e-9);
    }
}
