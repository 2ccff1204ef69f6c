//! One client's share of a measured phase.

use model::{Restored, Stop};
use std::time::{Duration, Instant};

use crate::recorder::CallTotals;
use crate::step::Step;
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

/// Times and rate of a step, over all clients.
pub(crate) struct StepTimes {
    pub(crate) begun: Instant,
    pub(crate) length_ns: u64,
    pub(crate) rate_per_s: f64,
    pub(crate) own_share: f64,
    pub(crate) restored: Vec<Restored>,
}

impl StepTimes {
    /// `None` if no client reached the measurement.
    pub(crate) fn of(shares: &[ClientShare], step: &Step) -> Option<Self> {
        let sum = |of: fn(&ClientShare) -> u64| shares.iter().map(of).sum::<u64>();
        let spans = || shares.iter().filter_map(|s| s.span);
        let begun = spans().map(|(from, _)| from).min()?;
        let wall_ns = nanos(spans().map(|(_, to)| to).max()? - begun);
        let own_wall_ns: u64 = spans().map(|(from, to)| nanos(to - from)).sum();
        let restoring_ns = sum(|s| s.restoring_ns);
        let own_share =
            sum(|s| s.untimed_ns) as f64 / own_wall_ns.saturating_sub(restoring_ns).max(1) as f64;
        // Clients that restore have very different free times.
        let restored: Vec<Restored> = match restoring_ns {
            0 => Vec::new(),
            _ => shares.iter().filter_map(ClientShare::restored).collect(),
        };
        let free_s = || {
            let at_work_ns = match step.phase.stop {
                // A client that is done does not wait: until the last operation ends, fewer are
                // active.
                Stop::AfterNs(_) => own_wall_ns / spans().count().max(1) as u64,
                Stop::Count(_) => wall_ns,
            };
            at_work_ns.max(1) as f64 / 1e9 * (1.0 - own_share).max(f64::EPSILON)
        };
        let (length_ns, rate_per_s) = match (step.planned_length(), restored.as_slice()) {
            // As in the wire engine: what was answered in a stage counts there.
            (Some(length), _) if step.stage.is_some() => {
                let answered = sum(|s| s.answered_in_time);
                (nanos(length), answered as f64 / length.as_secs_f64())
            }
            (Some(_), _) => (wall_ns, sum(|s| s.answered) as f64 / (wall_ns.max(1) as f64 / 1e9)),
            (None, []) => (wall_ns, sum(|s| s.answered) as f64 / free_s()),
            (None, clients) => (wall_ns, Restored::rate_per_s(clients)),
        };
        Some(Self { begun, length_ns, rate_per_s, own_share, restored })
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
