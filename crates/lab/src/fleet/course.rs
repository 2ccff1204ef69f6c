//! Progress of a load, from the reports of all workers.

use load::{Latest, Progress};
use model::RecordedOperation;
use std::collections::VecDeque;

use super::messages::SentProgress;

/// A rate is measured over at least this time.
const RATED_NS: u64 = 500_000_000;

/// What is reported.
pub(super) struct Reported<'a> {
    /// Name of the phase.
    pub(super) phase: &'a str,
    pub(super) timeout_ns: u64,
    /// From the start of the phase to that of this part, nanoseconds.
    pub(super) from_ns: u64,
    /// Planned operations per second, if progress reports them.
    pub(super) planned_per_s: Option<f64>,
    /// False for a fill, whose results are not reported.
    pub(super) is_measured: bool,
}

/// Reports of all workers. Each worker sends one a second, but not all at the same time. A report
/// on the fleet has the next one of each.
pub(super) struct Course {
    workers: Vec<Reports>,
    /// Everything so far.
    whole: Option<RecordedOperation>,
}

/// Reports of a worker.
#[derive(Default)]
struct Reports {
    /// Not yet passed on.
    waiting: VecDeque<SentProgress>,
    /// Time of the last one passed on, nanoseconds, and its rate.
    at_ns: u64,
    rate_per_s: f64,
    is_over: bool,
}

impl Course {
    pub(super) fn of(workers: usize) -> Self {
        Self { workers: (0..workers).map(|_| Reports::default()).collect(), whole: None }
    }

    pub(super) fn take(&mut self, at: usize, progress: SentProgress) {
        self.workers[at].waiting.push_back(progress);
    }

    /// The worker reports no more.
    pub(super) fn end(&mut self, at: usize) {
        self.workers[at].is_over = true;
    }

    /// Reports each time that all workers have.
    pub(super) fn report(&mut self, of: &Reported<'_>, progress: &mut dyn FnMut(Progress<'_>)) {
        while let Some((latest, rate_per_s)) = self.next() {
            let whole = &latest.whole;
            let times = whole.counts.times(whole.response(), of.timeout_ns);
            let response_ns_p99 = times.quantile(0.99);
            let at_ns = of.from_ns + latest.at_ns;
            let latest = Latest { at_ns, planned_per_s: of.planned_per_s, ..latest };
            let latest = Some(latest).filter(|_| of.is_measured);
            progress(Progress { phase: of.phase, rate_per_s, response_ns_p99, latest });
        }
    }

    /// What is new of all workers, with their rate; `None` as long as one has not reported.
    fn next(&mut self) -> Option<(Latest, f64)> {
        if !self.workers.iter().all(|one| one.is_over || !one.waiting.is_empty()) {
            return None;
        }
        let next: Vec<SentProgress> = self.workers.iter_mut().filter_map(Reports::next).collect();
        let stage = next.last()?.stage;
        let mut operations = Vec::new();
        for report in next {
            RecordedOperation::merge_all(&mut operations, &report.operations);
            match &mut self.whole {
                Some(whole) => whole.merge(&report.whole),
                None => self.whole = Some(report.whole),
            }
        }
        let whole = Box::new(self.whole.clone()?);
        let at_ns = self.workers.iter().map(|one| one.at_ns).max()?;
        let rate_per_s = self.workers.iter().map(|one| one.rate_per_s).sum();
        Some((Latest { at_ns, stage, planned_per_s: None, operations, whole }, rate_per_s))
    }
}

impl Reports {
    /// The next report to pass on, whose rate is that of the worker from now on.
    fn next(&mut self) -> Option<SentProgress> {
        let report = self.waiting.pop_front()?;
        let span_ns = report.at_ns.saturating_sub(self.at_ns);
        // The last one is on a part of a second, which may be too short for a rate.
        if span_ns >= RATED_NS || self.at_ns == 0 {
            let done = report.whole.counts.total() as f64;
            self.rate_per_s = done * 1e9 / span_ns.max(1) as f64;
        }
        self.at_ns = self.at_ns.max(report.at_ns);
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Counts;
    use stats::Histogram;

    fn report(millis: u64, done: u64) -> SentProgress {
        let whole = RecordedOperation {
            operation: "get".into(),
            counts: Counts { ok: done, ..Counts::default() },
            service: Histogram::default(),
            response: Histogram::default(),
        };
        let (job, at_ns, stage) = (1, millis * 1_000_000, None);
        SentProgress { job, at_ns, stage, operations: vec![whole.clone()], whole }
    }

    #[test]
    fn the_rate_is_that_of_all_workers_whenever_they_report() {
        let mut course = Course::of(2);
        let mut seen = Vec::new();
        let mut tell = |course: &mut Course| {
            while let Some((latest, rate_per_s)) = course.next() {
                let new: u64 = latest.operations.iter().map(|one| one.counts.total()).sum();
                seen.push((latest.at_ns / 1_000_000, rate_per_s, new, latest.whole.counts.ok));
            }
        };
        for second in 1..4 {
            // The second one half a second later, and twice as fast.
            course.take(0, report(1_000 * second, 1_000));
            tell(&mut course);
            let millis = 1_000 * second + 500;
            course.take(1, report(millis, if second == 1 { 3_000 } else { 2_000 }));
            tell(&mut course);
        }
        // What is left at the end, for too short a time to be a rate.
        course.take(0, report(3_010, 70));
        course.end(0);
        course.end(1);
        tell(&mut course);
        tell(&mut course);
        let expected = [
            (1_500, 3_000.0, 4_000, 4_000),
            (2_500, 3_000.0, 3_000, 7_000),
            (3_500, 3_000.0, 3_000, 10_000),
            (3_500, 3_000.0, 70, 10_070),
        ];
        assert_eq!(seen, expected);
    }
}
