//! Collects the records that clients hand over during a phase, and reports them a few times a
//! second.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::meter::{Latest, Progress};
use crate::recorder::Recorder;

/// The records of a phase, from the start of its measurement.
pub(crate) struct ProgressReporter<'a> {
    phase: &'a str,
    names: &'a [&'a str],
    clients: usize,
    timeout_ns: u64,
    /// The stage with its planned rate and the time from the start of the phase to its start,
    /// nanoseconds.
    stage: (Option<u32>, Option<f64>, u64),
    begun: Instant,
    reported_at: Instant,
    /// Records collected last.
    latest: Recorder,
    whole: Recorder,
}

impl<'a> ProgressReporter<'a> {
    /// Starts with the measurement of `phase`. `names` are the names of the kinds of call,
    /// `timeout_ns` is the clients' reply timeout.
    pub(crate) fn new(
        phase: &'a str,
        names: &'a [&'a str],
        clients: usize,
        timeout_ns: u64,
    ) -> Self {
        let now = Instant::now();
        let (latest, whole) = (Recorder::default(), Recorder::default());
        let stage = (None, None, 0);
        let (begun, reported_at) = (now, now);
        Self { phase, names, clients, timeout_ns, stage, begun, reported_at, latest, whole }
    }

    /// The same for a stage, a planned rate, and a start after that of the phase.
    pub(crate) fn at_stage(self, stage: Option<u32>, per_s: Option<f64>, from_ns: u64) -> Self {
        Self { stage: (stage, per_s, from_ns), ..self }
    }

    /// Collects the records in `inbox` and reports progress, with the rate since the previous
    /// report.
    pub(crate) fn take(&mut self, inbox: &Mutex<Recorder>) -> Progress<'a> {
        let seconds = self.reported_at.elapsed().as_secs_f64();
        let latest = self.collect_latest(inbox);
        self.reported_at = Instant::now();
        let rate_per_s = self.latest.answered() as f64 / seconds.max(f64::MIN_POSITIVE);
        self.progress(rate_per_s, latest)
    }

    /// Ends the phase: reports the remaining records with the rate of the whole phase, returns all
    /// records, and resets the inbox.
    pub(crate) fn end(
        mut self,
        inbox: &Mutex<Recorder>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Recorder {
        let latest = self.collect_latest(inbox);
        // Clients' last records cover a longer time than that since the previous report.
        let seconds = self.begun.elapsed().as_secs_f64();
        let rate_per_s = self.whole.answered() as f64 / seconds.max(f64::MIN_POSITIVE);
        progress(self.progress(rate_per_s, latest));
        *lock(inbox) = Recorder::default();
        self.whole
    }

    fn collect_latest(&mut self, inbox: &Mutex<Recorder>) -> Latest {
        // The inbox reuses the memory of the previous records: clients wait for it while it is
        // locked.
        self.latest.clear();
        mem::swap(&mut *lock(inbox), &mut self.latest);
        self.whole.merge(&self.latest);
        let (stage, planned_per_s, from_ns) = self.stage;
        Latest {
            at_ns: from_ns + self.whole.covered_ns / self.clients.max(1) as u64,
            stage,
            planned_per_s,
            operations: self.latest.to_recorded(self.phase, self.names),
            whole: Box::new(self.latest.whole_recorded(self.phase)),
        }
    }

    fn progress(&self, rate_per_s: f64, latest: Latest) -> Progress<'a> {
        let response_ns_p99 = self.whole.response_ns_p99(self.timeout_ns);
        Progress { phase: self.phase, rate_per_s, response_ns_p99, latest: Some(latest) }
    }
}

fn lock(inbox: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{Timed, WholeOperation};
    use model::ErrorClass;
    use stats::Time;
    use workloads::{Answer, Outcome};

    /// Hands over the records of a client that made `reads` reads.
    fn hand_over(inbox: &Mutex<Recorder>, reads: u64, kinds: usize) {
        let mut recorder = Recorder::new(kinds, 5_000_000, 5_000_000);
        for _ in 0..reads {
            let timed = Timed { operation: 0, due_ns: 0, service_ns: 1_000, response_ns: None };
            let mut whole = WholeOperation::default();
            whole.add(timed, Outcome::Miss, false, Answer::default());
            recorder.call(timed, Outcome::Miss, false, Answer::default());
            recorder.whole(&whole, 7_000_000);
        }
        recorder.covered_ns = 500;
        lock(inbox).merge(&recorder);
    }

    fn reported(progress: &Progress<'_>) -> Vec<(String, u64, u64)> {
        let latest = progress.latest.as_ref().unwrap();
        let of =
            |o: &model::RecordedOperation| (o.operation.clone(), o.service.count(), o.counts.miss);
        latest.operations.iter().map(of).collect()
    }

    #[test]
    fn operations_that_failed_are_slower_than_the_percentile() {
        let inbox = Mutex::new(Recorder::default());
        let mut reporter = ProgressReporter::new("steady", &["open", "close"], 2, 5_000_000_000);
        assert_eq!(reporter.take(&inbox).response_ns_p99, None);
        hand_over(&inbox, 98, 0);
        let known = reporter.take(&inbox).response_ns_p99;
        assert!(matches!(known, Some(Time::Of(990..=1_010))), "{known:?}");
        let mut failed = Recorder::new(0, 5_000_000, 5_000_000);
        (0..2).for_each(|_| failed.failed(0, (ErrorClass::Timeout, ""), (0, 0)));
        lock(&inbox).merge(&failed);
        let progress = reporter.take(&inbox);
        assert_eq!(progress.response_ns_p99, Some(Time::Bound { at_least: 5_000_000_000 }));
        assert_eq!(progress.latest.map(|l| l.operations[0].counts.error), Some(2));
    }

    #[test]
    fn progress_reports_add_up_to_the_total() {
        let inbox = Mutex::new(Recorder::default());
        for (kinds, name) in [(0, "steady"), (2, "open")] {
            let mut reporter = ProgressReporter::new("steady", &["open", "close"], 2, 9);
            hand_over(&inbox, 3, kinds);
            assert_eq!(reported(&reporter.take(&inbox)), [(name.to_string(), 3, 3)]);
            let nothing = reporter.take(&inbox);
            assert_eq!(
                (reported(&nothing), nothing.latest.map(|l| l.at_ns)),
                (Vec::new(), Some(250))
            );
            hand_over(&inbox, 4, kinds);
            hand_over(&inbox, 1, kinds);
            let mut last = Vec::new();
            let mut at_ns = None;
            let whole = reporter.end(&inbox, &mut |p| {
                last.extend(reported(&p));
                at_ns = p.latest.map(|l| l.at_ns);
            });
            assert_eq!((&last[..], at_ns), (&[(name.to_string(), 5, 5)][..], Some(750)));
            assert_eq!((whole.answered(), whole.intervals()), (8, (5_000_000, vec![0, 8])));
            assert_eq!(whole.reads_per_interval(), []);
            assert_eq!(lock(&inbox).intervals(), (0, Vec::new()));
        }
    }
}
