//! What is counted and timed of the requests of one operation.

use model::{Counts, ErrorClass, OperationResult};
use stats::Histogram;

use super::protocol::Judged;
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

/// Length of an interval of
/// [`WireRecorder::done_per_interval`](super::WireRecorder::done_per_interval), nanoseconds.
pub const INTERVAL_NS: u64 = 100_000_000;

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
pub(super) fn merged(rows: &[Row]) -> Row {
    let mut whole = Row::default();
    for row in rows {
        whole.merge(row);
    }
    whole
}
