//! A thread's own resource use, without the CPU time that it spent polling.

use crate::watch::{self, ThreadUse};

/// A polling iteration that takes longer was preempted.
const IDLE_TURN_NS_MAX: u64 = 50_000;
/// Polling time that is reported at once, nanoseconds.
const SPUN_REPORT_NS: u64 = 100_000;

/// Time that a thread spends polling for replies; nanoseconds of the engine's clock.
#[derive(Debug, Default)]
pub(super) struct Spinning {
    /// Start of the current iteration of the event loop, and the requests drawn by then.
    turn: (u64, u64),
    /// Since when the thread has only polled; `None` if it did anything else.
    idle_since_ns: Option<u64>,
    /// Polling time in total, and the part of it already reported to the process-wide counter.
    spun_ns: u64,
    reported_spun_ns: u64,
}

impl Spinning {
    /// Starts an iteration of the event loop, after `drawn` requests were drawn; accounts for the
    /// previous iteration if it only polled.
    pub(super) fn start_turn(&mut self, now: u64, drawn: u64) {
        self.turn = (now, drawn);
        let Some(since_ns) = self.idle_since_ns.take() else { return };
        let spun_ns = now - since_ns;
        if spun_ns < IDLE_TURN_NS_MAX {
            self.spun_ns += spun_ns;
        }
        if self.spun_ns - self.reported_spun_ns >= SPUN_REPORT_NS {
            watch::spun(self.spun_ns - self.reported_spun_ns);
            self.reported_spun_ns = self.spun_ns;
        }
    }

    /// Called when polling from `now` on found no reply.
    pub(super) fn found_nothing(&mut self, now: u64, drawn: u64) {
        let did_nothing = self.turn.1 == drawn;
        self.idle_since_ns = Some(if did_nothing { self.turn.0 } else { now });
    }

    /// CPU usage of the thread so far, without polling.
    pub(super) fn used(&self) -> ThreadUse {
        let used = ThreadUse::now();
        ThreadUse { cpu_ns: used.cpu_ns.saturating_sub(self.spun_ns), ..used }
    }
}
