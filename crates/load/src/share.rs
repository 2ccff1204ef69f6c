//! One client's share of a measured phase.

use model::Restored;
use std::time::{Duration, Instant};

use crate::recorder::CallTotals;
use crate::watch::ThreadUse;

/// One client's share of a phase.
#[derive(Default)]
pub(crate) struct ClientShare {
    /// Start and end of the measurement; `None` if the client never reached it.
    pub(crate) span: Option<(Instant, Instant)>,
    pub(crate) untimed_ns: u64,
    pub(crate) restoring_ns: u64,
    /// Part of the counted operations' time that precedes the measurement.
    pub(crate) early_ns: u64,
    pub(crate) answered: u64,
    /// Operations answered in the planned length of the measurement, whenever they were due.
    pub(crate) answered_in_time: u64,
    /// Operations of the phase so far.
    pub(crate) operations: u64,
    pub(crate) call_totals: Vec<CallTotals>,
    pub(crate) used: ThreadUse,
}

impl ClientShare {
    /// Times that the client's rate is computed from; `None` if it never reached the measurement.
    pub(crate) fn restored(&self) -> Option<Restored> {
        let (from, to) = self.span?;
        let (answered, restoring_ns) = (self.answered, self.restoring_ns);
        let span_ns = nanos(to - from) + self.early_ns;
        let free_ns = span_ns.saturating_sub(self.untimed_ns + restoring_ns);
        Some(Restored { answered, free_ns, restoring_ns })
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
