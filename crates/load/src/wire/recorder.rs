//! Counts and times of a wire load, by operation.

use model::{ErrorClass, OperationResult};

use super::answered::AnswerTimeline;
use super::due::DueCounts;
use super::offer::{Offer, Pacing, Until};
use super::protocol::Judged;
use super::row::{INTERVAL_NS, Row, Times, merged, results};
use super::stages::{self, Span, StageRows, spans};
use super::work::Work;
use crate::intervals;
use crate::slowest;

/// Records of one thread, or merged records of all threads.
#[derive(Clone, Debug, Default)]
pub struct WireRecorder {
    rows: Vec<Row>,
    /// The milliseconds in which each operation was answered.
    pub(super) served: Vec<AnswerTimeline>,
    /// Empty unless the load has stages.
    pub(crate) stages: Vec<StageRows>,
    /// Requests answered in each interval of [`INTERVAL_NS`] from the start of the measurement.
    done_per_interval: Vec<u64>,
    /// Requests that failed in the same intervals; empty without any.
    failed_per_interval: Vec<u64>,
    /// Requests due in each interval; `None` without limits.
    pub(crate) due: Option<Box<DueCounts>>,
    /// Measurement time that these records cover, summed over all threads, nanoseconds.
    pub(crate) covered_ns: u64,
    /// Connections that were lost and opened again.
    pub reconnects: u64,
    /// Requests that a cluster redirected to another server.
    pub redirects: u64,
    /// Wrong replies in the warm-up, which count as faults too.
    pub wrong_in_warmup: u64,
}

impl WireRecorder {
    /// An empty recorder for a load.
    pub(crate) fn of(offer: &Offer, work: &Work) -> Self {
        let is_open = matches!(offer.pacing, Pacing::Open { .. });
        let length_ns = match offer.until {
            Until::AfterNs(ns) => Some(ns),
            Until::Requests(_) => None,
        };
        let recorder = Self::new(
            work.operations.len(),
            is_open || offer.hangs_up,
            slowest::interval_ns(length_ns),
        );
        let limits_ns: &[u64] = if is_open { &offer.limits_ns } else { &[] };
        recorder.with_stages(&spans(offer, work)).with_limits(limits_ns)
    }

    /// A recorder for `operations` kinds of request. `open` is true if requests have a separate
    /// intended start. The longest times are kept for intervals of `slowest_ns`.
    fn new(operations: usize, open: bool, slowest_ns: u64) -> Self {
        let served = vec![AnswerTimeline::default(); operations];
        Self { rows: vec![Row::new(open, slowest_ns); operations], served, ..Self::default() }
    }

    /// Adds separate records for each stage.
    fn with_stages(mut self, spans: &[Span]) -> Self {
        self.stages = spans.iter().map(|s| StageRows::new(*s, &self.rows)).collect();
        self
    }

    /// Adds counts of due requests, and of those answered later than each limit.
    fn with_limits(mut self, limits_ns: &[u64]) -> Self {
        self.due = (!limits_ns.is_empty()).then(|| Box::new(DueCounts::new(limits_ns)));
        self
    }

    /// Records `requests` identical replies of the measurement, which started at `from_ns`.
    pub(crate) fn answered(
        &mut self,
        operation: usize,
        times: &Times,
        judged: &Judged,
        (requests, from_ns): (u64, u64),
    ) {
        let counted = (requests, from_ns);
        stages::replied(&mut self.stages, operation, (times, judged), counted);
        if let Some(due) = &mut self.due {
            let succeeded = matches!(judged, Judged::Ok { .. } | Judged::Miss);
            let done_ns = succeeded.then_some(times.done_ns);
            due.count(times.intended_ns, done_ns, counted);
        }
        let at_ns = times.done_ns - from_ns;
        let interval = (at_ns / INTERVAL_NS) as usize;
        if !self.rows[operation].reply(times, judged, counted) {
            intervals::add_at(&mut self.failed_per_interval, interval, requests);
            return;
        }
        self.served[operation].at(at_ns);
        intervals::add_at(&mut self.done_per_interval, interval, requests);
    }

    /// Records `requests` replies to requests of the warm-up: whether they were wrong, and that the
    /// server was not silent at `done_ns`.
    pub(crate) fn answered_in_warmup(
        &mut self,
        operation: usize,
        done_ns: u64,
        judged: &Judged,
        (requests, from_ns): (u64, u64),
    ) {
        if *judged == Judged::Wrong {
            self.wrong_in_warmup += requests;
        }
        let is_answer = !matches!(judged, Judged::Error(..) | Judged::Redirected { .. });
        if let Some(at_ns) = done_ns.checked_sub(from_ns).filter(|_| is_answer) {
            self.served[operation].at(at_ns);
        }
    }

    /// Counts a request that was sent and never answered, in a measurement that started at
    /// `from_ns`.
    pub(crate) fn unanswered(
        &mut self,
        operation: usize,
        times: &Times,
        failed: (ErrorClass, &str),
        from_ns: u64,
    ) {
        let intended_ns = times.intended_ns;
        let stage = stages::unanswered(&mut self.stages, operation, (intended_ns, from_ns));
        if let Some(row) = stage {
            row.fail(times, failed, from_ns);
        }
        if let Some(due) = &mut self.due {
            due.count(intended_ns, None, (1, from_ns));
        }
        self.rows[operation].fail(times, failed, from_ns);
        let interval = (times.done_ns.saturating_sub(from_ns) / INTERVAL_NS) as usize;
        intervals::add_at(&mut self.failed_per_interval, interval, 1);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        if self.rows.len() < other.rows.len() {
            self.rows.resize_with(other.rows.len(), Row::default);
            self.served.resize_with(other.rows.len(), AnswerTimeline::default);
        }
        for (own, theirs) in self.served.iter_mut().zip(&other.served) {
            own.merge(theirs);
        }
        for (own, theirs) in self.rows.iter_mut().zip(&other.rows) {
            own.merge(theirs);
        }
        if self.stages.is_empty() {
            self.stages.clone_from(&other.stages);
        } else {
            for (own, theirs) in self.stages.iter_mut().zip(&other.stages) {
                own.merge(theirs);
            }
        }
        intervals::merge(&mut self.done_per_interval, &other.done_per_interval);
        intervals::merge(&mut self.failed_per_interval, &other.failed_per_interval);
        match (&mut self.due, &other.due) {
            (Some(own), Some(theirs)) => own.merge(theirs),
            (own, _) => *own = own.take().or_else(|| other.due.clone()),
        }
        self.covered_ns += other.covered_ns;
        self.reconnects += other.reconnects;
        self.redirects += other.redirects;
        self.wrong_in_warmup += other.wrong_in_warmup;
    }

    /// Completes the histograms so they can be read and merged.
    pub(crate) fn close(&mut self) {
        self.rows.iter_mut().for_each(Row::end_run);
        self.stages.iter_mut().for_each(StageRows::close);
    }

    /// Clears everything but keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.rows.iter_mut().for_each(Row::clear);
        self.served.iter_mut().for_each(AnswerTimeline::clear);
        self.stages.iter_mut().for_each(StageRows::clear);
        self.done_per_interval.fill(0);
        self.failed_per_interval.clear();
        if let Some(due) = &mut self.due {
            due.clear();
        }
        self.covered_ns = 0;
        (self.reconnects, self.redirects, self.wrong_in_warmup) = (0, 0, 0);
    }

    /// Rows in the order of the operations.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Measurement time that these records cover, summed over all threads, nanoseconds. Threads
    /// hand over their records independently.
    pub fn covered_ns(&self) -> u64 {
        self.covered_ns
    }

    /// Requests answered in each interval of [`INTERVAL_NS`] from the start of the measurement.
    pub fn done_per_interval(&self) -> &[u64] {
        &self.done_per_interval
    }

    /// Requests that failed in the same intervals, up to the last one with a failure.
    pub fn failed_per_interval(&self) -> &[u64] {
        &self.failed_per_interval
    }

    /// All operations together.
    pub fn whole(&self) -> Row {
        merged(&self.rows)
    }

    /// Requests that were answered, whatever the answer.
    pub fn answered_in_all(&self) -> u64 {
        self.rows.iter().map(Row::answered).sum()
    }

    /// Result rows: one for each operation that occurred and, if there are several operations, one
    /// for all of them under `phase`, which is the last. `seconds` is the length of the
    /// measurement.
    pub fn results(&self, phase: &str, names: &[&str], seconds: f64) -> Vec<OperationResult> {
        results(&self.rows, (phase, names), seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_requests_have_a_lag_but_no_other_time() {
        let mut recorder = WireRecorder::new(1, true, 1_000);
        let times = Times { intended_ns: 1_000, sent_ns: 1_500, done_ns: 9_000 };
        let refused = Judged::Error(ErrorClass::Full, "OOM".into());
        recorder.answered(0, &times, &refused, (1, 0));
        recorder.unanswered(0, &times, (ErrorClass::Timeout, "late"), 0);
        let row = &recorder.rows()[0];
        assert_eq!((row.counts().error, row.answered(), row.response().count()), (2, 0, 0));
        let lag = row.lag().unwrap();
        assert_eq!((lag.count(), lag.max_ns()), (2, 500));
    }

    #[test]
    fn failures_count_in_the_interval_in_which_they_were_noticed() {
        let mut recorder = WireRecorder::new(1, true, 1_000);
        let at = |done_ns| Times { intended_ns: 1_000, sent_ns: 1_500, done_ns };
        let refused = Judged::Error(ErrorClass::Full, "OOM".into());
        recorder.answered(0, &at(9_000), &Judged::Ok { verified: false }, (1, 0));
        recorder.answered(0, &at(INTERVAL_NS), &refused, (3, 0));
        recorder.unanswered(0, &at(2 * INTERVAL_NS), (ErrorClass::Timeout, "late"), 0);
        recorder.close();
        let mut all = WireRecorder::new(1, true, 1_000);
        all.merge(&recorder);
        all.merge(&recorder);
        assert_eq!(all.failed_per_interval(), [0, 6, 2]);
        assert_eq!(all.done_per_interval(), [2]);
        all.clear();
        assert!(all.failed_per_interval().is_empty());
    }

    /// Under an open load, a backlog from the warm-up is answered in the measurement.
    #[test]
    fn replies_to_warm_up_requests_end_a_silence() {
        const MS: u64 = 1_000_000;
        let mut recorder = WireRecorder::new(1, true, 1_000);
        let from_ns = 500 * MS;
        let ok = Judged::Ok { verified: false };
        for done_ms in [400, 550, 620] {
            recorder.answered_in_warmup(0, done_ms * MS, &ok, (1, from_ns));
        }
        let refused = Judged::Error(ErrorClass::Full, "OOM".into());
        recorder.answered_in_warmup(0, 700 * MS, &refused, (1, from_ns));
        recorder.answered_in_warmup(0, 450 * MS, &Judged::Wrong, (1, from_ns));
        let silences = recorder.served[0].silences("get", 300 * MS);
        let found: Vec<_> = silences.iter().map(|s| (s.begun_ns / MS, s.length_ns / MS)).collect();
        assert_eq!((found, recorder.wrong_in_warmup), (vec![(121, 179)], 1));
        assert_eq!(recorder.answered_in_all(), 0);
    }
}
