//! Counts and times. Each client has its own recorder; recorders are merged once an interval.

use model::{Counts, ErrorClass, OperationResult, Phase, RecordedOperation, Stop};
use stats::{Histogram, Time};
use workloads::app_cache::Effort;
use workloads::{Answer, LockWait, Outcome};

use crate::intervals;
use crate::slowest::{self, Slowest};

/// Histograms and counts of one operation.
#[derive(Clone, Debug, Default)]
pub struct OperationRecorder {
    counts: Counts,
    service: Histogram,
    /// Kept separately only where it can differ from the service time.
    response: Option<Histogram>,
    /// Kept only under planned arrivals.
    lag: Histogram,
    lock_wait: Histogram,
    slowest: Slowest,
    slowest_response: Option<Slowest>,
}

impl OperationRecorder {
    fn new(slowest_ns: u64) -> Self {
        Self { slowest: Slowest::new(slowest_ns), ..Self::default() }
    }

    fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.service.merge(&other.service);
        if let Some(theirs) = &other.response {
            self.response.get_or_insert_default().merge(theirs);
        }
        self.lag.merge(&other.lag);
        self.lock_wait.merge(&other.lock_wait);
        self.slowest.merge(&other.slowest);
        if let Some(theirs) = &other.slowest_response {
            self.slowest_response.get_or_insert_default().merge(theirs);
        }
    }

    fn clear(&mut self) {
        self.counts = Counts::default();
        self.service.clear();
        if let Some(response) = &mut self.response {
            response.clear();
        }
        self.lag.clear();
        self.lock_wait.clear();
        self.slowest.clear();
        if let Some(response) = &mut self.slowest_response {
            response.clear();
        }
    }

    fn time(&mut self, due_ns: u64, service_ns: u64, response_ns: Option<u64>) {
        self.service.record(service_ns);
        self.slowest.record(due_ns, service_ns);
        if let Some(ns) = response_ns {
            self.response.get_or_insert_default().record(ns);
            let empty = || Slowest::new(self.slowest.interval_ns());
            self.slowest_response.get_or_insert_with(empty).record(due_ns, ns);
        }
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Ok => self.counts.ok += 1,
            Outcome::Miss | Outcome::NotCached => self.counts.miss += 1,
            Outcome::Expired => {
                self.counts.miss += 1;
                self.counts.expired += 1;
            }
            Outcome::Lost => {
                self.counts.miss += 1;
                self.counts.lost += 1;
            }
            Outcome::Wrong => self.counts.wrong += 1,
            Outcome::Stale => self.counts.stale += 1,
            // The session was not saved, so this is an error of the operation.
            Outcome::LockLost => {
                self.counts.lock_broken += 1;
                self.counts.fail(ErrorClass::Lock, "the lock was gone or taken over");
            }
        }
    }

    fn fail(&mut self, class: ErrorClass, text: &str, due_ns: u64) {
        self.slowest.fail(due_ns);
        if let Some(response) = &mut self.slowest_response {
            response.fail(due_ns);
        }
        self.counts.fail(class, text);
        self.counts.lock_timeouts += u64::from(class == ErrorClass::Lock);
    }

    fn lock(&mut self, lock: Option<LockWait>) {
        let Some(lock) = lock else { return };
        self.counts.lock_attempts += u64::from(lock.attempts);
        if lock.waited_ns > 0 {
            self.counts.lock_waits += 1;
            self.lock_wait.record(lock.waited_ns);
        }
    }

    fn effort(&mut self, effort: Effort) {
        self.counts.round_trips += effort.round_trips;
        self.counts.commands += effort.commands;
        self.counts.files += effort.files;
    }

    fn to_recorded(&self, operation: &str) -> RecordedOperation {
        RecordedOperation {
            operation: operation.into(),
            counts: self.counts.clone(),
            service: self.service.clone(),
            response: self.response.clone().unwrap_or_default(),
        }
    }

    fn into_result(
        self,
        operation: &str,
        rate_per_s: f64,
        calls_rate_per_s: Option<f64>,
    ) -> OperationResult {
        let response = self.response.unwrap_or_else(|| self.service.clone());
        let slowest = self.slowest.to_record(self.slowest_response.as_ref());
        OperationResult {
            operation: operation.into(),
            counts: self.counts,
            rate_per_s,
            calls_rate_per_s,
            service: self.service,
            response,
            lag: self.lag,
            lock_wait: self.lock_wait,
            slowest: Some(slowest),
        }
    }
}

/// One finished call, as the engine timed it.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// Index of the call's operation.
    pub operation: usize,
    /// When it was due, nanoseconds since the start of the measurement; 0 for earlier calls.
    pub due_ns: u64,
    /// Done − sent, nanoseconds.
    pub service_ns: u64,
    /// Done − intended start, where that can differ.
    pub response_ns: Option<u64>,
}

/// Records of a phase: by kind of call, and for whole operations of several calls.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// Whole operations: one entry each, regardless of the number of calls.
    whole: OperationRecorder,
    by_operation: Vec<OperationRecorder>,
    /// Operations finished in each interval of the measurement.
    done_per_interval: Vec<u64>,
    /// Reads finished in each interval, and how many of them missed.
    reads_per_interval: Vec<(u64, u64)>,
    /// Operations that failed in each interval; empty without any.
    failed_per_interval: Vec<u64>,
    interval_ns: u64,
    /// Measurement time that these records cover, summed over all clients, nanoseconds.
    pub(crate) covered_ns: u64,
}

impl Recorder {
    /// A recorder for `operations` kinds of call. Operations are counted per `interval_ns`, the
    /// longest times are kept per `slowest_ns`. `operations` is 0 if every operation is one call of
    /// the same kind: then only whole operations are recorded.
    pub fn new(operations: usize, interval_ns: u64, slowest_ns: u64) -> Self {
        Self {
            whole: OperationRecorder::new(slowest_ns),
            by_operation: vec![OperationRecorder::new(slowest_ns); operations],
            interval_ns,
            ..Self::default()
        }
    }

    /// A recorder for a planned phase: twenty intervals if it is bounded in time, none shorter than
    /// 5 ms; 100 ms if its length is not known in advance.
    pub(crate) fn of_phase(operations: usize, phase: &Phase) -> Self {
        let length_ns = match phase.stop {
            Stop::AfterNs(ns) => Some(ns),
            Stop::Count(_) => None,
        };
        let interval_ns = length_ns.map_or(100_000_000, |ns| (ns / 20).max(5_000_000));
        Self::new(operations, interval_ns, slowest::interval_ns(length_ns))
    }

    /// Records a call that was answered.
    pub fn call(&mut self, timed: Timed, outcome: Outcome, verified: bool, answer: Answer) {
        let Some(own) = self.by_operation.get_mut(timed.operation) else { return };
        own.time(timed.due_ns, timed.service_ns, timed.response_ns);
        own.count(outcome);
        own.counts.verified += u64::from(verified);
        own.lock(answer.lock);
        own.effort(answer.effort);
        own.counts.deleted += answer.deleted;
    }

    /// Records a failed call, which also fails its operation. `due_ns` as in [`Timed`]; it failed
    /// `done_ns` after the start of the measurement.
    pub fn failed(
        &mut self,
        operation: usize,
        (class, text): (ErrorClass, &str),
        (due_ns, done_ns): (u64, u64),
    ) {
        let interval = (done_ns / self.interval_ns) as usize;
        intervals::add_at(&mut self.failed_per_interval, interval, 1);
        if let Some(own) = self.by_operation.get_mut(operation) {
            own.fail(class, text, due_ns);
        }
        self.whole.fail(class, text, due_ns);
    }

    /// Records an answered operation that ended `done_ns` after the start of the measurement.
    pub fn whole(&mut self, operation: &WholeOperation, done_ns: u64) {
        self.whole.time(operation.due_ns, operation.service_ns, operation.response_ns);
        self.whole.count(operation.outcome);
        self.whole.counts.verified += u64::from(operation.verified);
        self.whole.lock(operation.lock);
        self.whole.effort(operation.effort);
        self.whole.counts.deleted += operation.deleted;
        let interval = (done_ns / self.interval_ns) as usize;
        if self.done_per_interval.len() <= interval {
            self.done_per_interval.resize(interval + 1, 0);
            self.reads_per_interval.resize(interval + 1, (0, 0));
        }
        self.done_per_interval[interval] += 1;
        let is_miss = matches!(operation.outcome, Outcome::Miss | Outcome::Lost);
        let (reads, misses) = &mut self.reads_per_interval[interval];
        *reads += u64::from(operation.is_read);
        *misses += u64::from(operation.is_read && is_miss);
    }

    /// Records how late an operation was sent under planned arrivals, whatever its outcome.
    pub(crate) fn lag(&mut self, ns: u64) {
        self.whole.lag.record(ns);
    }

    /// Counts an operation of the warm-up: only a wrong value matters there.
    pub fn warmed_up(&mut self, outcome: Outcome) {
        if outcome == Outcome::Wrong {
            self.whole.count(outcome);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.whole.merge(&other.whole);
        if self.by_operation.len() < other.by_operation.len() {
            self.by_operation.resize_with(other.by_operation.len(), OperationRecorder::default);
        }
        for (own, theirs) in self.by_operation.iter_mut().zip(&other.by_operation) {
            own.merge(theirs);
        }
        intervals::merge(&mut self.done_per_interval, &other.done_per_interval);
        intervals::merge(&mut self.failed_per_interval, &other.failed_per_interval);
        self.reads_per_interval.resize(self.done_per_interval.len(), (0, 0));
        for (own, theirs) in self.reads_per_interval.iter_mut().zip(&other.reads_per_interval) {
            *own = (own.0 + theirs.0, own.1 + theirs.1);
        }
        self.interval_ns = self.interval_ns.max(other.interval_ns);
        self.covered_ns += other.covered_ns;
    }

    /// Clears everything but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.whole.clear();
        self.by_operation.iter_mut().for_each(OperationRecorder::clear);
        self.done_per_interval.fill(0);
        self.reads_per_interval.fill((0, 0));
        self.failed_per_interval.clear();
        self.covered_ns = 0;
    }

    /// Whole operations that were answered, regardless of the outcome.
    pub fn answered(&self) -> u64 {
        self.whole.service.count()
    }

    /// 99th percentile of the whole operations' response time; a timeout counts as `timeout_ns`.
    /// `None` if empty.
    pub fn response_ns_p99(&self, timeout_ns: u64) -> Option<Time> {
        let response = self.whole.response.as_ref().unwrap_or(&self.whole.service);
        self.whole.counts.times(response, timeout_ns).quantile(0.99)
    }

    /// Length of an interval, and operations finished in each.
    pub fn intervals(&self) -> (u64, Vec<u64>) {
        (self.interval_ns, self.done_per_interval.clone())
    }

    /// Reads finished and missed in each interval; empty if none missed.
    pub fn reads_per_interval(&self) -> Vec<(u64, u64)> {
        let any_missed = self.reads_per_interval.iter().any(|(_, missed)| *missed > 0);
        if any_missed { self.reads_per_interval.clone() } else { Vec::new() }
    }

    /// Operations that failed in each interval, up to the last one with a failure.
    pub fn failed_per_interval(&self) -> &[u64] {
        &self.failed_per_interval
    }

    /// Whole operations, for a progress report.
    pub(crate) fn whole_recorded(&self, phase: &str) -> RecordedOperation {
        self.whole.to_recorded(phase)
    }

    /// Records for a progress report: each kind of call that occurred, or the whole operations
    /// under the phase's name if there is only one kind.
    pub(crate) fn to_recorded(&self, phase: &str, names: &[&str]) -> Vec<RecordedOperation> {
        let happened = |recorder: &OperationRecorder| recorder.counts.total() > 0;
        if self.by_operation.is_empty() {
            return happened(&self.whole).then(|| self.whole_recorded(phase)).into_iter().collect();
        }
        let calls = self.by_operation.iter().zip(names).filter(|(recorder, _)| happened(recorder));
        calls.map(|(recorder, name)| recorder.to_recorded(name)).collect()
    }

    /// Result rows: each kind of call that occurred, then whole operations under the phase's name.
    /// `rate_per_s` is the rate of whole operations; a call's rate is in proportion to its count.
    /// `call_totals` has each client's totals by kind of call, whole operations last.
    pub fn into_results(
        self,
        phase: &str,
        names: &[&str],
        rate_per_s: f64,
        call_totals: &[Vec<CallTotals>],
    ) -> Vec<OperationResult> {
        let all = self.answered().max(1) as f64;
        let kinds = self.by_operation.len();
        let calls = self.by_operation.into_iter().zip(names).enumerate();
        let mut results: Vec<OperationResult> = calls
            .filter(|(_, (recorder, _))| recorder.counts.total() > 0)
            .map(|(kind, (recorder, name))| {
                let rate = rate_per_s * recorder.service.count() as f64 / all;
                recorder.into_result(name, rate, calls_rate_per_s(call_totals, kind))
            })
            .collect();
        let of_calls = calls_rate_per_s(call_totals, kinds);
        results.push(self.whole.into_result(phase, rate_per_s, of_calls));
        results
    }
}

/// Operations of one kind that a client did in a phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallTotals {
    /// Operations answered.
    pub operations: u64,
    /// Time spent in them, nanoseconds.
    pub ns: u64,
}

/// Operations of a kind per second spent in calls, summed over clients; `None` if there were none.
fn calls_rate_per_s(clients: &[Vec<CallTotals>], kind: usize) -> Option<f64> {
    let done = clients.iter().filter_map(|c| c.get(kind)).filter(|c| c.ns > 0);
    done.map(|c| c.operations as f64 / (c.ns as f64 / 1e9)).reduce(|a, b| a + b)
}

/// A whole operation: the sum of its calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct WholeOperation {
    /// When it was due under planned arrivals, otherwise when its last call was; nanoseconds since
    /// the start of the measurement, 0 for earlier ones.
    pub due_ns: u64,
    /// Time in calls, nanoseconds, without think time.
    pub service_ns: u64,
    /// Time in calls including the drawing of values, if that is timed; under planned arrivals,
    /// done − due.
    pub response_ns: Option<u64>,
    /// The worst outcome of its calls.
    pub outcome: Outcome,
    /// True if a value was compared byte by byte.
    pub verified: bool,
    /// How long the lock was waited for, if one was taken.
    pub lock: Option<LockWait>,
    /// Work that its calls caused in the store.
    pub effort: Effort,
    /// Expired sessions that its calls deleted.
    pub deleted: u64,
    /// True if it was a read, which is a single call.
    pub is_read: bool,
}

impl WholeOperation {
    /// Adds a call that was answered.
    pub fn add(&mut self, timed: Timed, outcome: Outcome, verified: bool, answer: Answer) {
        self.due_ns = timed.due_ns;
        self.service_ns += timed.service_ns;
        if let Some(ns) = timed.response_ns {
            *self.response_ns.get_or_insert_default() += ns;
        }
        let is_recovered = matches!(outcome, Outcome::NotCached | Outcome::Expired);
        if self.outcome == Outcome::Ok && !is_recovered {
            self.outcome = outcome;
        }
        self.verified |= verified;
        self.lock = self.lock.or(answer.lock);
        self.effort = self.effort + answer.effort;
        self.deleted += answer.deleted;
    }
}
