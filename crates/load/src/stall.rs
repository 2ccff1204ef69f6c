//! Detects that a store stopped answering, for both engines.
//!
//! Threads of the load count operations sent and answered, and the coordinator looks at the counts
//! a few times a second. A load that sends nothing, because of a low rate or think time, is not
//! stalled. Operations that fail without an answer, such as by their timeout, do not end a
//! stall.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{ErrorClass, Failure};
use stats::format_ns;

/// Counts of one thread, in a cache line of its own. Only that thread writes them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Pulse {
    sent: AtomicU64,
    open: AtomicU64,
    answered: AtomicU64,
}

impl Pulse {
    /// Sets the number of operations sent so far, of those that wait for an answer or for a
    /// connection, and of answers so far.
    pub(crate) fn set(&self, sent: u64, open: u64, answered: u64) {
        self.sent.store(sent, Ordering::Relaxed);
        self.open.store(open, Ordering::Relaxed);
        self.answered.store(answered, Ordering::Relaxed);
    }

    /// Counts an operation of a thread that waits for each of them.
    pub(crate) fn send(&self) {
        self.sent.store(self.sent.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.open.store(1, Ordering::Relaxed);
    }

    /// Counts its end.
    pub(crate) fn end(&self, is_answered: bool) {
        let answered = self.answered.load(Ordering::Relaxed) + u64::from(is_answered);
        self.answered.store(answered, Ordering::Relaxed);
        self.open.store(0, Ordering::Relaxed);
    }
}

/// Watches the counts of all threads of a load.
#[derive(Debug)]
pub(crate) struct StallWatch {
    /// Longest time without an answer, nanoseconds; 0 for no limit.
    limit_ns: u64,
    sent: u64,
    answered: u64,
    /// When an operation was first sent after the last answer.
    since_ns: Option<u64>,
    /// Time of the last look; `None` before the first.
    looked_ns: Option<u64>,
}

impl StallWatch {
    /// Watches with this limit, nanoseconds; 0 for none.
    pub(crate) fn new(limit_ns: u64) -> Self {
        Self { limit_ns, sent: 0, answered: 0, since_ns: None, looked_ns: None }
    }

    /// The failure of a load that exceeds the limit at `now_ns`; also of one whose coordinator was
    /// away for that long, since then the whole machine stood still.
    pub(crate) fn look(&mut self, pulses: &[Pulse], now_ns: u64) -> Option<Failure> {
        let sum = |count: fn(&Pulse) -> &AtomicU64| {
            pulses.iter().map(|pulse| count(pulse).load(Ordering::Relaxed)).sum::<u64>()
        };
        let answered = sum(|pulse| &pulse.answered);
        let (sent, open) = (sum(|pulse| &pulse.sent), sum(|pulse| &pulse.open));
        let away_ns = self.looked_ns.map_or(0, |looked_ns| now_ns.saturating_sub(looked_ns));
        self.looked_ns = Some(now_ns);
        if answered != self.answered {
            self.since_ns = None;
        } else if open > 0 || sent != self.sent {
            self.since_ns.get_or_insert(now_ns);
        }
        (self.sent, self.answered) = (sent, answered);
        if self.limit_ns == 0 {
            return None;
        }
        let message = if away_ns >= self.limit_ns {
            let away = format_ns(away_ns as f64);
            format!("this machine stood still for {away}: the generator's thread got no CPU")
        } else if now_ns.saturating_sub(self.since_ns?) >= self.limit_ns {
            let limit = format_ns(self.limit_ns as f64);
            format!("no answer for {limit} (for another limit: --stall-limit TIME)")
        } else {
            return None;
        };
        Some(Failure { class: ErrorClass::Stalled, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(counts: &[(u64, u64, u64, u64)]) -> Option<String> {
        let (mut watch, pulses) = (StallWatch::new(10), [Pulse::default(), Pulse::default()]);
        let look = |(now_ns, sent, open, answered): &(u64, u64, u64, u64)| {
            pulses[0].set(*sent, *open, *answered);
            watch.look(&pulses, *now_ns).map(|failure| failure.to_string())
        };
        counts.iter().find_map(look)
    }

    #[test]
    fn only_unanswered_requests_are_a_stall() {
        let stalled =
            Some("stalled: no answer for 10.0 ns (for another limit: --stall-limit TIME)");
        assert_eq!(watched(&[(0, 5, 1, 4), (8, 5, 1, 4), (16, 5, 1, 4)]), None);
        let waits = [(0, 5, 1, 4), (8, 5, 1, 4), (16, 5, 1, 4), (18, 5, 1, 4)];
        assert_eq!(watched(&waits).as_deref(), stalled);
        // Requests that fail again and again.
        let fails = [(0, 5, 0, 4), (8, 6, 0, 4), (16, 7, 0, 4), (18, 7, 0, 4)];
        assert_eq!(watched(&fails).as_deref(), stalled);
        let answers = [(0, 5, 1, 4), (8, 5, 1, 4), (16, 5, 1, 5), (24, 5, 1, 5), (32, 5, 0, 6)];
        assert_eq!(watched(&answers), None);
        // Nothing is sent for a long time.
        let idle: Vec<_> = (0..9).map(|step| (step * 9, 5, 0, 5)).collect();
        assert_eq!(watched(&idle), None);
    }

    #[test]
    fn a_machine_that_stood_still_ends_a_load() {
        let stood = watched(&[(0, 5, 0, 5), (8, 6, 0, 6), (20, 7, 0, 7)]).unwrap();
        assert!(stood.starts_with("stalled: this machine stood still for 12.0 ns"), "{stood}");
        let mut watch = StallWatch::new(0);
        assert_eq!([0, u64::MAX].map(|at| watch.look(&[Pulse::default()], at)), [None, None]);
    }

    #[test]
    fn a_waiting_thread_counts_its_operations() {
        let pulse = [Pulse::default()];
        let mut watch = StallWatch::new(10);
        pulse[0].send();
        assert_eq!(watch.look(&pulse, 0), None);
        assert_eq!(watch.look(&pulse, 9), None);
        pulse[0].end(false);
        pulse[0].send();
        assert!(watch.look(&pulse, 10).is_some());
        pulse[0].end(true);
        assert_eq!(watch.look(&pulse, 11), None);
    }
}
