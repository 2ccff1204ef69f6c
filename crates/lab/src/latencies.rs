//! Latencies over time of a trial: distributions per second for the latency log, and percentiles in
//! shorter intervals for the record.
//!
//! Threads hand over their records five times a second, so a request may count in the interval
//! after the one in which it ended.

use std::mem;

use load::{Latest, Progress};
use model::{Cell, Interval, RecordedOperation, Stop, Trial};
use stats::Time;

use crate::wall::unix_ms;

/// Shortest interval of the log, except for the last one of a phase or stage.
const LOGGED_NS: u64 = 1_000_000_000;
const NS_PER_MS: u64 = 1_000_000;
/// Largest number of percentiles of a phase that is bounded in time.
const PERCENTILES_MAX: u64 = 100;
/// Operations in an interval with a 99th percentile: with fewer it would be the longest one.
const COUNT_MIN: u64 = 100;

/// Latencies of a trial so far.
pub(crate) struct Latencies<'a> {
    cell: &'a Cell,
    timeout_ns: u64,
    phase: String,
    stage: Option<u32>,
    /// How far the records reach, nanoseconds since the start of the measurement.
    reached_ns: u64,
    /// Start of the pending interval of the log, in the same way as `reached_ns`, and its
    /// operations.
    logged: (u64, Vec<RecordedOperation>),
    /// The latest time at which the measurement can have started, milliseconds since 1970: reports
    /// arrive after what they cover, with varying delays.
    started_unix_ms: u64,
    /// Operations since the last percentile, together.
    whole: Option<RecordedOperation>,
    /// Percentiles of the phase.
    p99: Vec<(u64, u64)>,
    /// Intervals of complete measurements.
    intervals: Vec<Interval>,
    /// Intervals of this measurement; `begun_unix_ms` is since its start.
    measured: Vec<Interval>,
    /// Percentiles of complete phases.
    phases: Vec<(String, Vec<(u64, u64)>)>,
}

impl<'a> Latencies<'a> {
    /// Has no latencies yet. An operation without an answer took at least `timeout_ns`.
    pub(crate) fn of(cell: &'a Cell, timeout_ns: u64) -> Self {
        Self {
            cell,
            timeout_ns,
            phase: String::new(),
            stage: None,
            reached_ns: 0,
            logged: (0, Vec::new()),
            started_unix_ms: u64::MAX,
            whole: None,
            p99: Vec::new(),
            intervals: Vec::new(),
            measured: Vec::new(),
            phases: Vec::new(),
        }
    }

    /// Adds what was recorded since the last report.
    pub(crate) fn take(&mut self, progress: &Progress<'_>) {
        let Some(latest) = &progress.latest else { return };
        self.enter(progress.phase, latest);
        self.reached_ns = latest.at_ns;
        let started = unix_ms().saturating_sub(latest.at_ns / NS_PER_MS);
        self.started_unix_ms = self.started_unix_ms.min(started);
        RecordedOperation::merge_all(&mut self.logged.1, &latest.operations);
        if latest.at_ns.saturating_sub(self.logged.0) >= LOGGED_NS {
            self.log();
        }
        if latest.stage.is_none() {
            self.percentile(latest);
        }
    }

    /// Ends the measurement before, if this one is another.
    fn enter(&mut self, phase: &str, latest: &Latest) {
        let is_new_phase = phase != self.phase;
        let goes_back = latest.at_ns < self.reached_ns;
        if !is_new_phase && !goes_back && latest.stage == self.stage {
            return;
        }
        self.log();
        if is_new_phase || goes_back {
            self.end_measurement();
        }
        if is_new_phase {
            self.end_phase();
            self.phase = phase.into();
        }
        self.stage = latest.stage;
    }

    /// Ends the pending interval of the log.
    fn log(&mut self) {
        let length_ns = self.reached_ns.saturating_sub(self.logged.0);
        let begun_unix_ms = self.logged.0 / NS_PER_MS;
        for RecordedOperation { operation, service, response, .. } in mem::take(&mut self.logged.1)
        {
            let recorded = [("service", service), ("response", response)];
            self.measured.extend(recorded.iter().filter(|(_, times)| !times.is_empty()).map(
                |(time, times)| Interval {
                    phase: self.phase.clone(),
                    operation: operation.clone(),
                    time,
                    begun_unix_ms,
                    length_ns,
                    max_ns: times.max_ns(),
                    encoded: times.encode(),
                },
            ));
        }
        self.logged.0 = self.reached_ns;
    }

    /// Ends a measurement, whose start is now as exact as it can be.
    fn end_measurement(&mut self) {
        let started_unix_ms = mem::replace(&mut self.started_unix_ms, u64::MAX);
        self.intervals.extend(self.measured.drain(..).map(|interval| Interval {
            begun_unix_ms: started_unix_ms.saturating_add(interval.begun_unix_ms),
            ..interval
        }));
        self.logged.0 = 0;
    }

    /// Adds the operations of a steady phase, and their percentile where there are enough.
    fn percentile(&mut self, latest: &Latest) {
        match &mut self.whole {
            Some(whole) => whole.merge(&latest.whole),
            whole => *whole = Some((*latest.whole).clone()),
        }
        let from_ns = self.p99.last().map_or(0, |(until_ns, _)| *until_ns);
        let is_long = latest.at_ns.saturating_sub(from_ns) >= self.shortest_ns();
        let Some(whole) = self.whole.take_if(|o| is_long && o.counts.total() >= COUNT_MIN) else {
            return;
        };
        let times = whole.counts.times(whole.response(), self.timeout_ns);
        let p99_ns = match times.quantile(0.99) {
            None => return,
            Some(Time::Of(ns)) => ns,
            // A limit must not seem to be kept because requests failed at once.
            Some(Time::Bound { at_least }) => at_least.max(self.timeout_ns),
        };
        self.p99.push((latest.at_ns, p99_ns));
    }

    /// Shortest interval of a percentile.
    fn shortest_ns(&self) -> u64 {
        let own = self.cell.workload.phases().iter().find(|phase| phase.name == self.phase);
        match own.map(|phase| phase.stop) {
            Some(Stop::AfterNs(ns)) => ns / PERCENTILES_MAX,
            Some(Stop::Count(_)) | None => 0,
        }
    }

    fn end_phase(&mut self) {
        self.whole = None;
        let p99 = mem::take(&mut self.p99);
        if !p99.is_empty() {
            self.phases.push((mem::take(&mut self.phase), p99));
        }
    }

    /// Ends the trial: adds the percentiles to its phases and returns the log.
    pub(crate) fn record(mut self, trial: &mut Trial) -> Vec<Interval> {
        self.log();
        self.end_measurement();
        self.end_phase();
        for (phase, p99) in self.phases {
            if let Some(series) = trial.series.iter_mut().find(|series| series.phase == phase) {
                series.p99 = p99;
            }
        }
        self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Counts, ErrorClass, Kv, Load, Phase, Series, Workload};
    use stats::Histogram;

    const MS: u64 = 1_000_000;

    fn cell(length_ns: u64) -> Cell {
        let phase = Phase {
            name: "get".into(),
            mix: [("get".into(), 1.0)].into(),
            warmup_ns: 0,
            stop: Stop::AfterNs(length_ns),
            control: None,
        };
        let workload = Workload::Kv(Kv { phases: vec![phase], ..Kv::default() });
        Cell { id: "redis".into(), target: "redis".into(), workload, load: Load::closed(1) }
    }

    /// `count` operations of `each_ns`.
    fn answered(count: u64, each_ns: u64) -> RecordedOperation {
        let mut service = Histogram::new();
        service.record_many(each_ns, count);
        let (operation, response) = ("get".into(), Histogram::new());
        let counts = Counts { ok: count, ..Counts::default() };
        RecordedOperation { operation, counts, service, response }
    }

    /// Reports `count` operations of `each_ns` until `at_ms`.
    fn report(
        latencies: &mut Latencies<'_>,
        phase: &str,
        at_ms: u64,
        (count, each_ns): (u64, u64),
    ) {
        reported(latencies, (phase, at_ms, None), answered(count, each_ns));
    }

    fn reported(
        latencies: &mut Latencies<'_>,
        (phase, until_ms, stage): (&str, u64, Option<u32>),
        whole: RecordedOperation,
    ) {
        let operations = vec![whole.clone()];
        let (at_ns, whole) = (until_ms * MS, Box::new(whole));
        let latest = Latest { at_ns, stage, planned_per_s: None, operations, whole };
        let (rate_per_s, response_ns_p99, latest) = (0.0, None, Some(latest));
        latencies.take(&Progress { phase, rate_per_s, response_ns_p99, latest });
    }

    fn recorded(latencies: Latencies<'_>, phase: &str) -> (Vec<(u64, u64)>, Vec<Interval>) {
        let series = vec![Series { phase: phase.into(), ..Series::default() }];
        let mut trial = Trial { series, ..Trial::default() };
        let intervals = latencies.record(&mut trial);
        (trial.series.remove(0).p99, intervals)
    }

    #[test]
    fn an_interval_with_few_operations_grows_until_it_has_a_percentile() {
        let cell = cell(2_000 * MS);
        let mut latencies = Latencies::of(&cell, 0);
        for (at_ms, count, each_ns) in [(200, 150, 500), (400, 99, 700), (600, 0, 0)] {
            report(&mut latencies, "get", at_ms, (count, each_ns));
        }
        report(&mut latencies, "get", 800, (1, 900));
        report(&mut latencies, "get", 1_000, (20, 900));
        let (p99, _) = recorded(latencies, "get");
        // The last interval has too few.
        assert_eq!(p99, [(200 * MS, 500), (800 * MS, 700)]);
    }

    #[test]
    fn operations_that_fail_at_once_take_their_timeout() {
        let cell = cell(2_000 * MS);
        let mut latencies = Latencies::of(&cell, 900);
        for (at_ms, failed) in [(200, 1), (400, 50), (600, 150)] {
            let mut whole = answered(150 - failed, 500);
            (0..failed).for_each(|_| whole.counts.fail(ErrorClass::Reply, "READONLY"));
            reported(&mut latencies, ("get", at_ms, None), whole);
        }
        let (p99, _) = recorded(latencies, "get");
        assert_eq!(p99, [(200 * MS, 500), (400 * MS, 900), (600 * MS, 900)]);
    }

    #[test]
    fn a_long_phase_has_at_most_a_hundred_percentiles() {
        let cell = cell(100_000 * MS);
        let mut latencies = Latencies::of(&cell, 0);
        (1..=15).for_each(|i| report(&mut latencies, "get", 200 * i, (100, i)));
        let (p99, _) = recorded(latencies, "get");
        assert_eq!(p99, [(1_000 * MS, 5), (2_000 * MS, 10), (3_000 * MS, 15)]);
    }

    #[test]
    fn a_failed_operation_takes_its_timeout() {
        let cell = cell(2_000 * MS);
        let mut latencies = Latencies::of(&cell, 30_000 * MS);
        let mut whole = answered(100, 500);
        (0..2).for_each(|_| whole.counts.fail(ErrorClass::Timeout, "late"));
        reported(&mut latencies, ("get", 200, None), whole);
        assert_eq!(recorded(latencies, "get").0, [(200 * MS, 30_000 * MS)]);
    }

    #[test]
    fn the_log_has_intervals_of_a_second_and_the_rest_of_each_phase() {
        let cell = cell(2_000 * MS);
        let mut latencies = Latencies::of(&cell, 0);
        (1..=7).for_each(|i| report(&mut latencies, "get", 200 * i, (10, 500)));
        // A probe of the same phase starts anew, and a phase of another name as well.
        (1..=2).for_each(|i| report(&mut latencies, "get", 200 * i, (10, 500)));
        report(&mut latencies, "set", 900, (10, 500));
        let (_, intervals) = recorded(latencies, "set");
        let lengths: Vec<(&str, u64, u64)> =
            intervals.iter().map(|i| (&*i.phase, i.length_ns / MS, i.max_ns)).collect();
        assert_eq!(
            lengths,
            [("get", 1_000, 500), ("get", 400, 500), ("get", 400, 500), ("set", 900, 500)]
        );
        // Both intervals of the first measurement count from its start.
        assert_eq!(intervals[1].begun_unix_ms, intervals[0].begun_unix_ms + 1_000);
    }

    #[test]
    fn stages_have_no_percentiles_over_time() {
        let cell = cell(2_000 * MS);
        let mut latencies = Latencies::of(&cell, 0);
        reported(&mut latencies, ("get", 200, Some(0)), answered(200, 500));
        reported(&mut latencies, ("get", 400, Some(1)), answered(200, 500));
        let (p99, intervals) = recorded(latencies, "get");
        assert_eq!(p99, []);
        let lengths: Vec<u64> = intervals.iter().map(|i| i.length_ns / MS).collect();
        assert_eq!(lengths, [200, 200]);
    }
}
