//! What a thread of the engine tells of itself: what it used, and when it was late.

use super::protocol::Parser;
use super::recorder::Times;
use super::worker::Worker;
use crate::watch::{self, ThreadUse};

/// A turn of only looking that takes longer was interrupted by others.
const IDLE_TURN_NS_MAX: u64 = 50_000;
/// How much of that is told at once.
const SPUN_TOLD_NS: u64 = 100_000;

impl<P: Parser + Default> Worker<'_, P> {
    /// A turn of the event loop begins: the one before may have been one of only looking.
    pub(super) fn turns(&mut self, now: u64) {
        self.turn = (now, self.drawn);
        let Some(since_ns) = self.idle_since_ns.take() else { return };
        let spun_ns = now - since_ns;
        if spun_ns < IDLE_TURN_NS_MAX {
            self.spun_ns += spun_ns;
        }
        if self.spun_ns - self.told_spun_ns >= SPUN_TOLD_NS {
            watch::spun(self.spun_ns - self.told_spun_ns);
            self.told_spun_ns = self.spun_ns;
        }
    }

    /// What the thread has used so far, without what it only kept busy.
    pub(super) fn used(&self) -> ThreadUse {
        let used = ThreadUse::now();
        ThreadUse { cpu_ns: used.cpu_ns.saturating_sub(self.spun_ns), ..used }
    }

    /// Takes note of a planned request that is sent later than it was due although a client was
    /// free.
    pub(super) fn sent_at(&mut self, intended_ns: u64, sent_ns: u64) {
        let own = self.starved_ns < intended_ns && self.is_measured(intended_ns, sent_ns);
        if let Some(due) = self.recorder.due.as_mut().filter(|_| own) {
            due.was_late(&Times { intended_ns, sent_ns, done_ns: sent_ns });
        }
    }
}
