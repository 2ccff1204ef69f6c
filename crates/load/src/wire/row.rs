//! Counts and times of one operation's requests.

use model::{Counts, ErrorClass, OperationResult};
use stats::Histogram;

use super::protocol::Judged;
use crate::slowest::Slowest;

/// Times of a request in nanoseconds of the same clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it should have been sent.
    pub intended_ns: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// When its reply was received.
    pub done_ns: u64,
}

/// Counts and times of one operation.
#[derive(Clone, Debug, Default)]
pub struct Row {
    counts: Counts,
    service: Histogram,
    /// A service time and the number of consecutive requests with it that are not in the histogram
    /// yet: replies received in one read to requests of one write have the same time.
    run: (u64, u64),
    /// `None` under a closed load, where the intended start is the send time.
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
    /// An empty row. `is_open` is true if requests have a separate intended start; the longest
    /// times are kept for intervals of `slowest_ns`.
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

    /// Counts `requests` identical replies and records their times; for errors, only the lag. True
    /// if all times were recorded. The measurement started at `from_ns`.
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
            // Errors are fast: their times would make the operation look faster.
            Judged::Error(class, text) => {
                (0..requests).for_each(|_| counts.fail(*class, text));
                self.failed(due_ns);
                return false;
            }
            Judged::Redirected { address, .. } => {
                let text = format!("the server refers to {address}, which cannot be used");
                (0..requests).for_each(|_| counts.fail(ErrorClass::Reply, &text));
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

    /// Records how late requests were sent, whatever their outcome.
    fn record_lag(&mut self, times: &Times, requests: u64) {
        if let Some(open) = &mut self.open {
            open.lag.record_many(times.sent_ns.saturating_sub(times.intended_ns), requests);
        }
    }

    /// Counts a request that was sent and never answered, in a measurement that started at
    /// `from_ns`.
    pub(crate) fn fail(&mut self, times: &Times, (class, text): (ErrorClass, &str), from_ns: u64) {
        self.record_lag(times, 1);
        self.counts.fail(class, text);
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

    /// Requests that were answered, whatever the answer.
    pub fn answered(&self) -> u64 {
        self.service.count()
    }

    /// Counts by outcome.
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

    /// Sent − intended start, of failed requests too; `None` if the intended start is the send
    /// time.
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

/// A result for each operation that occurred and, if there are several operations, a total named
/// `phase`.
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
