//! One client's share of a measured phase.

use model::Restored;
use std::time::{Duration, Instant};

use crate::recorder::InCalls;
use crate::watch::ThreadUse;

/// One client's share of a phase.
#[derive(Default)]
pub(crate) struct ClientShare {
    /// Start and end of the measurement; `None` when the client never came to measure.
    pub(crate) span: Option<(Instant, Instant)>,
    pub(crate) untimed_ns: u64,
    pub(crate) restoring_ns: u64,
    /// Time of counted operations that lies before the measurement.
    pub(crate) early_ns: u64,
    pub(crate) answered: u64,
    pub(crate) in_calls: Vec<InCalls>,
    pub(crate) used: ThreadUse,
}

impl ClientShare {
    /// The times that its rate is made of; `None` when it never came to measure.
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
