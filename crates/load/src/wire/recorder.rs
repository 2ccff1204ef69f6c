//! What a thread of the wire engine counts and times, by operation.

use model::{Counts, ErrorClass, OperationResult};
use stats::Histogram;

use super::due::DueCounts;
use super::protocol::Judged;
use super::stages::{self, Span, StageRows};
use crate::slowest::Slowest;

/// When a request was to be sent, was sent, and was answered: nanoseconds of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it should have been sent.
    pub intended_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// When its reply was there.
    pub done_ns: u64,
}

/// One operation's counts and times.
#[derive(Clone, Debug, Default)]
pub struct Row {
    counts: Counts,
    service: Histogram,
    /// A service time, and how many requests in a row had it that are not in the histogram yet:
    /// replies that come in one read to requests of one write have the same.
    run: (u64, u64),
    /// Kept only under an open load: in a closed one a request is intended when it is sent.
    open: Option<Box<Open>>,
    slowest: Slowest,
}

#[derive(Clone, Debug, Default)]
struct Open {
    response: Histogram,
    lag: Histogram,
    slowest: Slowest,
}

/// Length of an interval of [`WireRecorder::done_per_interval`], nanoseconds.
pub const INTERVAL_NS: u64 = 100_000_000;

/// Counts and times of a thread, or merged of all.
#[derive(Clone, Debug, Default)]
pub struct WireRecorder {
    rows: Vec<Row>,
    /// Empty unless the load has stages.
    pub(crate) stages: Vec<StageRows>,
    /// Requests answered in each interval of [`INTERVAL_NS`] from the start of the measurement.
    done_per_interval: Vec<u64>,
    /// What was due in each interval; `None` without limits.
    pub(crate) due: Option<Box<DueCounts>>,
    /// Time of the measurement that this is the record of, over all threads, nanoseconds.
    pub(crate) covered_ns: u64,
    /// Connections that broke and were made anew.
    pub reconnects: u64,
    /// Requests that were sent again to another server, as a cluster asked for.
    pub redirects: u64,
    /// Replies in the warm-up that were wrong: that must not happen there either.
    pub wrong_in_warmup: u64,
}

impl Row {
    /// `is_open` where requests have an intended start of their own; the longest times are kept for
    /// intervals of `slowest_ns`.
    pub(crate) fn new(is_open: bool, slowest_ns: u64) -> Self {
        let slowest = Slowest::new(slowest_ns);
        let open = || Box::new(Open { slowest: slowest.clone(), ..Open::default() });
        Self { open: is_open.then(open), slowest: slowest.clone(), ..Self::default() }
    }

    fn record_service(&mut self, ns: u64, requests: u64) {
        if self.run.0 != ns {
            self.end_run();
            self.run.0 = ns;
        }
        self.run.1 += requests;
    }

    pub(crate) fn end_run(&mut self) {
        let (ns, requests) = std::mem::take(&mut self.run);
        if requests > 0 {
            self.service.record_many(ns, requests);
        }
    }

    /// Counts `requests` replies that are alike, with their times, of errors the lag alone; true
    /// where all were recorded. The measurement began at `from_ns`.
    pub(crate) fn reply(
        &mut self,
        times: &Times,
        judged: &Judged,
        (requests, from_ns): (u64, u64),
    ) -> bool {
        let due_ns = times.intended_ns.saturating_sub(from_ns);
        self.record_lag(times, requests);
        let counts = &mut self.counts;
        match judged {
            Judged::Ok { verified } => {
                counts.ok += requests;
                counts.verified += u64::from(*verified) * requests;
            }
            Judged::Miss => counts.miss += requests,
            Judged::Wrong => counts.wrong += requests,
            // Refusing is quick: its time would make the others look better.
            Judged::Error(class, words) => {
                (0..requests).for_each(|_| counts.fail(*class, words));
                self.failed(due_ns);
                return false;
            }
            Judged::Elsewhere { address, .. } => {
                let words = format!("the server refers to {address}, which cannot be used");
                (0..requests).for_each(|_| counts.fail(ErrorClass::Reply, &words));
                self.failed(due_ns);
                return false;
            }
        }
        let service_ns = times.done_ns.saturating_sub(times.sent_ns);
        self.record_service(service_ns, requests);
        self.slowest.record(due_ns, service_ns);
        if let Some(open) = &mut self.open {
            let response_ns = times.done_ns.saturating_sub(times.intended_ns);
            open.response.record_many(response_ns, requests);
            open.slowest.record(due_ns, response_ns);
        }
        true
    }

    /// Records how late requests were sent, however they end.
    fn record_lag(&mut self, times: &Times, requests: u64) {
        if let Some(open) = &mut self.open {
            open.lag.record_many(times.sent_ns.saturating_sub(times.intended_ns), requests);
        }
    }

    /// Counts a request that was sent and never answered; the measurement began at `from_ns`.
    pub(crate) fn fail(&mut self, times: &Times, (class, words): (ErrorClass, &str), from_ns: u64) {
        self.record_lag(times, 1);
        self.counts.fail(class, words);
        self.failed(times.intended_ns.saturating_sub(from_ns));
    }

    fn failed(&mut self, due_ns: u64) {
        self.slowest.fail(due_ns);
        if let Some(open) = &mut self.open {
            open.slowest.fail(due_ns);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        debug_assert_eq!(other.run, (0, 0), "a thread's recorder is closed first");
        self.counts.merge(&other.counts);
        self.service.merge(&other.service);
        if let Some(theirs) = &other.open {
            let own = self.open.get_or_insert_default();
            own.response.merge(&theirs.response);
            own.lag.merge(&theirs.lag);
            own.slowest.merge(&theirs.slowest);
        }
        self.slowest.merge(&other.slowest);
    }

    pub(crate) fn clear(&mut self) {
        self.counts = Counts::default();
        self.service.clear();
        if let Some(open) = &mut self.open {
            open.response.clear();
            open.lag.clear();
            open.slowest.clear();
        }
        self.slowest.clear();
    }

    /// Requests that were answered, whatever was answered.
    pub fn answered(&self) -> u64 {
        self.service.count()
    }

    /// How they ended.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Done − sent.
    pub fn service(&self) -> &Histogram {
        &self.service
    }

    /// Done − intended start.
    pub fn response(&self) -> &Histogram {
        self.open.as_ref().map_or(&self.service, |open| &open.response)
    }

    /// Sent − intended start, of failed requests too; `None` where a request is intended when it is
    /// sent.
    pub fn lag(&self) -> Option<&Histogram> {
        self.open.as_ref().map(|open| &open.lag)
    }
}

impl WireRecorder {
    /// For `operations` kinds of request; `open` where requests have an intended start of their
    /// own. The longest times are kept for intervals of `slowest_ns`.
    pub(crate) fn new(operations: usize, open: bool, slowest_ns: u64) -> Self {
        Self { rows: vec![Row::new(open, slowest_ns); operations], ..Self::default() }
    }

    /// The same, telling apart what was due in each stage.
    pub(crate) fn with_stages(mut self, spans: &[Span]) -> Self {
        self.stages = spans.iter().map(|s| StageRows::new(*s, &self.rows)).collect();
        self
    }

    /// The same, counting what was due and what of it is answered later than each limit after.
    pub(crate) fn with_limits(mut self, limits_ns: &[u64]) -> Self {
        self.due = (!limits_ns.is_empty()).then(|| Box::new(DueCounts::new(limits_ns)));
        self
    }

    /// Records `requests` replies that are alike; the measurement began at `from_ns`, not after
    /// them.
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
            let is_right = matches!(judged, Judged::Ok { .. } | Judged::Miss);
            let done_ns = is_right.then_some(times.done_ns);
            due.count(times.intended_ns, done_ns, counted);
        }
        if !self.rows[operation].reply(times, judged, counted) {
            return;
        }
        let interval = ((times.done_ns - from_ns) / INTERVAL_NS) as usize;
        if self.done_per_interval.len() <= interval {
            self.done_per_interval.resize(interval + 1, 0);
        }
        self.done_per_interval[interval] += requests;
    }

    /// Counts a request that was sent and never answered; the measurement began at `from_ns`.
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
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        if self.rows.len() < other.rows.len() {
            self.rows.resize_with(other.rows.len(), Row::default);
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
        if self.done_per_interval.len() < other.done_per_interval.len() {
            self.done_per_interval.resize(other.done_per_interval.len(), 0);
        }
        for (own, theirs) in self.done_per_interval.iter_mut().zip(&other.done_per_interval) {
            *own += theirs;
        }
        match (&mut self.due, &other.due) {
            (Some(own), Some(theirs)) => own.merge(theirs),
            (own, _) => *own = own.take().or_else(|| other.due.clone()),
        }
        self.covered_ns += other.covered_ns;
        self.reconnects += other.reconnects;
        self.redirects += other.redirects;
        self.wrong_in_warmup += other.wrong_in_warmup;
    }

    /// Completes the histograms, so that they can be read and merged.
    pub(crate) fn close(&mut self) {
        self.rows.iter_mut().for_each(Row::end_run);
        self.stages.iter_mut().for_each(StageRows::close);
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.rows.iter_mut().for_each(Row::clear);
        self.stages.iter_mut().for_each(StageRows::clear);
        self.done_per_interval.fill(0);
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

    /// Time of the measurement that this is the record of, over all threads, nanoseconds: threads
    /// hand over what they recorded each in its own time.
    pub fn covered_ns(&self) -> u64 {
        self.covered_ns
    }

    /// Requests answered in each interval of [`INTERVAL_NS`] from the start of the measurement.
    pub fn done_per_interval(&self) -> &[u64] {
        &self.done_per_interval
    }

    /// All operations together.
    pub fn whole(&self) -> Row {
        merged(&self.rows)
    }

    /// Requests that were answered, whatever was answered.
    pub fn answered_in_all(&self) -> u64 {
        self.rows.iter().map(Row::answered).sum()
    }

    /// Result rows: each operation that happened, and all together under `phase` where there are
    /// several operations; the row that stands for all is the last. `seconds` is the length of the
    /// measurement.
    pub fn results(&self, phase: &str, names: &[&str], seconds: f64) -> Vec<OperationResult> {
        results(&self.rows, (phase, names), seconds)
    }
}

fn result(name: &str, row: &Row, seconds: f64) -> OperationResult {
    OperationResult {
        calls_rate_per_s: None,
        operation: name.into(),
        counts: row.counts.clone(),
        rate_per_s: row.answered() as f64 / seconds.max(f64::MIN_POSITIVE),
        service: row.service.clone(),
        response: row.response().clone(),
        lag: row.lag().cloned().unwrap_or_default(),
        lock_wait: Histogram::default(),
        slowest: Some(row.slowest.to_record(row.open.as_ref().map(|open| &open.slowest))),
    }
}

/// Each operation that happened, and all together under `phase` where there are several.
pub(crate) fn results(
    rows: &[Row],
    (phase, names): (&str, &[&str]),
    seconds: f64,
) -> Vec<OperationResult> {
    let happened = rows.iter().zip(names).filter(|(row, _)| row.counts.total() > 0);
    let mut results: Vec<OperationResult> =
        happened.map(|(row, name)| result(name, row, seconds)).collect();
    if names.len() > 1 {
        results.push(result(phase, &merged(rows), seconds));
    }
    results
}

/// All operations together.
fn merged(rows: &[Row]) -> Row {
    let mut whole = Row::default();
    for row in rows {
        whole.merge(row);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_fail_have_a_lag_and_no_other_time() {
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
}
