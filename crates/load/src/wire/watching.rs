//! What a thread of the engine tells of itself: what it used, without what it only kept busy.

use crate::watch::{self, ThreadUse};

/// A turn of only looking that takes longer was interrupted by others.
const IDLE_TURN_NS_MAX: u64 = 50_000;
/// How much of that is told at once.
const SPUN_TOLD_NS: u64 = 100_000;

/// The time that a thread spends only looking for replies; nanoseconds of the engine's clock.
#[derive(Debug, Default)]
pub(super) struct Spinning {
    /// When the present turn of the event loop began, and what had been drawn by then.
    turn: (u64, u64),
    /// Since when it only looked for replies; `None` when anything was done.
    idle_since_ns: Option<u64>,
    /// Time spent so, and how much of it was told to who asks for all threads.
    spun_ns: u64,
    told_spun_ns: u64,
}

impl Spinning {
    /// A turn of the event loop begins, `drawn` requests having been drawn: the one before may have
    /// been one of only looking.
    pub(super) fn turns(&mut self, now: u64, drawn: u64) {
        self.turn = (now, drawn);
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

    /// The thread looked for replies from `now` on and found none.
    pub(super) fn found_nothing(&mut self, now: u64, drawn: u64) {
        let did_nothing = self.turn.1 == drawn;
        self.idle_since_ns = Some(if did_nothing { self.turn.0 } else { now });
    }

    /// What the thread has used so far, without what it only kept busy.
    pub(super) fn used(&self) -> ThreadUse {
        let used = ThreadUse::now();
        ThreadUse { cpu_ns: used.cpu_ns.saturating_sub(self.spun_ns), ..used }
    }
}
