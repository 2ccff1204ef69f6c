//! Recent history of a run: rate, latencies and resource usage, twice a second.

use model::{ProcessUse, Recorded, RecordedOperation, Sample};
use serde::Serialize;
use stats::Time;
use std::collections::VecDeque;

use crate::metrics::threads;

/// Minimum span of a point, nanoseconds; the last one of a phase can be shorter.
const SPAN_NS: u64 = 500_000_000;
/// A shorter span at the end of a phase is too short for a rate, nanoseconds.
const SPAN_NS_MIN: u64 = 200_000_000;
/// How many points of each kind are kept: half an hour's worth.
const POINTS_MAX: usize = 3_600;

/// Requests in one span of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Point {
    /// Its end, seconds since the run began.
    at_s: f64,
    /// Number of its trial, from 1.
    trial: u64,
    target: String,
    phase: String,
    /// Number of the stage, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<u32>,
    /// Requests due per second, mean over the span.
    #[serde(skip_serializing_if = "Option::is_none")]
    planned_per_s: Option<f64>,
    /// Requests answered per second, all operations.
    rate_per_s: f64,
    operations: Vec<PointOperation>,
}

/// One operation in a span. Times in nanoseconds: response times under an open load, else service
/// times.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct PointOperation {
    operation: String,
    rate_per_s: f64,
    /// Null without requests; a lower bound if the percentile is a failed request.
    ns_p50: Option<Time>,
    ns_p99: Option<Time>,
    errors: u64,
    misses: u64,
}

/// Resources that server and generator used in a span or held at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Usage {
    /// Its end, seconds since the run began.
    at_s: f64,
    /// Number of its trial, from 1.
    trial: u64,
    target: String,
    /// CPUs that the server's processes kept busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_cpus: Option<f64>,
    /// The same by thread, without idle threads.
    threads: Vec<ThreadUsage>,
    /// Resident memory of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_bytes: Option<u64>,
    /// Memory of the server that is swapped out.
    #[serde(skip_serializing_if = "Option::is_none")]
    swapped_bytes: Option<u64>,
    /// CPUs that the generator kept busy.
    generator_cpus: f64,
    /// Mean number of generator threads that waited for a CPU.
    generator_waiting: f64,
    /// Memory of the store's data, as the store reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evicted_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expired_per_s: Option<f64>,
    /// Bytes that the server received per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    received_per_s: Option<f64>,
    /// Bytes that it sent per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_per_s: Option<f64>,
}

/// CPU usage of a server thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ThreadUsage {
    name: String,
    cpus: f64,
}

/// The last points and usage records of a run.
#[derive(Debug, Default)]
pub(crate) struct Course {
    points: VecDeque<Point>,
    usage: VecDeque<Usage>,
    pending: Option<Pending>,
    /// Number of trials started.
    trial: u64,
    /// Timeout of requests, nanoseconds.
    timeout_ns: u64,
    /// The sample at the start of the next usage record.
    before: Option<Box<Sample>>,
}

/// Requests recorded since the last point.
#[derive(Debug)]
struct Pending {
    target: String,
    phase: String,
    stage: Option<u32>,
    /// Requests due per second at `to_ns`.
    planned_per_s: Option<f64>,
    /// The integral of that rate over the span's nanoseconds.
    planned_sum: f64,
    from_ns: u64,
    to_ns: u64,
    operations: Vec<RecordedOperation>,
}

impl Course {
    /// Adds recorded requests; returns the points that they complete.
    pub(crate) fn recorded(&mut self, target: &str, recorded: &Recorded, at_s: f64) -> Vec<Point> {
        let mut completed = Vec::new();
        let continues =
            |pending: &Pending| pending.phase == recorded.phase && pending.to_ns <= recorded.at_ns;
        if self.pending.as_ref().is_some_and(|pending| !continues(pending)) {
            completed.extend(self.cut(at_s));
        }
        let pending = self.pending.get_or_insert_with(|| Pending {
            target: target.into(),
            phase: recorded.phase.clone(),
            stage: recorded.stage,
            planned_per_s: None,
            planned_sum: 0.0,
            from_ns: 0,
            to_ns: 0,
            operations: Vec::new(),
        });
        pending.add(recorded);
        if pending.to_ns - pending.from_ns >= SPAN_NS {
            let (phase, from_ns) = (pending.phase.clone(), pending.to_ns);
            completed.extend(self.cut(at_s));
            self.pending = Some(Pending {
                target: target.into(),
                phase,
                stage: recorded.stage,
                planned_per_s: recorded.planned_per_s,
                planned_sum: 0.0,
                from_ns,
                to_ns: from_ns,
                operations: Vec::new(),
            });
        }
        completed
    }

    /// Ends the current point, as at the end of a trial.
    pub(crate) fn cut(&mut self, at_s: f64) -> Option<Point> {
        let point = self.pending.take()?.point(at_s, self.trial, self.timeout_ns)?;
        keep(&mut self.points, point.clone());
        Some(point)
    }

    /// Adds a sample; returns the usage since the last record, if enough time has passed.
    pub(crate) fn sampled(&mut self, target: &str, sample: &Sample, at_s: f64) -> Option<Usage> {
        let Some(before) = &self.before else {
            self.before = Some(Box::new(sample.clone()));
            return None;
        };
        if sample.at_ns.checked_sub(before.at_ns)? < SPAN_NS {
            return None;
        }
        let usage = usage((target, self.trial), (before, sample), at_s);
        self.before = Some(Box::new(sample.clone()));
        keep(&mut self.usage, usage.clone());
        Some(usage)
    }

    /// Notes the start of a run with this request timeout.
    pub(crate) fn run_started(&mut self, timeout_ns: u64) {
        self.timeout_ns = timeout_ns;
    }

    /// Notes the start of a trial; its samples do not continue the previous ones.
    pub(crate) fn trial_started(&mut self) {
        self.trial += 1;
        self.before = None;
    }

    pub(crate) fn points(&self) -> &VecDeque<Point> {
        &self.points
    }

    pub(crate) fn usage(&self) -> &VecDeque<Usage> {
        &self.usage
    }
}

fn keep<T>(all: &mut VecDeque<T>, one: T) {
    if all.len() == POINTS_MAX {
        all.pop_front();
    }
    all.push_back(one);
}

impl Pending {
    fn add(&mut self, recorded: &Recorded) {
        if let Some(now) = recorded.planned_per_s {
            let mean = f64::midpoint(self.planned_per_s.unwrap_or(now), now);
            self.planned_sum += mean * (recorded.at_ns - self.to_ns) as f64;
        }
        (self.to_ns, self.planned_per_s) = (recorded.at_ns, recorded.planned_per_s);
        self.stage = recorded.stage;
        RecordedOperation::merge_all(&mut self.operations, &recorded.operations);
    }

    /// `None` if the span is too short for a rate.
    fn point(self, at_s: f64, trial: u64, timeout_ns: u64) -> Option<Point> {
        let length_ns = self.to_ns - self.from_ns;
        if length_ns < SPAN_NS_MIN {
            return None;
        }
        let seconds = length_ns as f64 / 1e9;
        let operation = |o: RecordedOperation| {
            let times = o.counts.times(o.response(), timeout_ns);
            PointOperation {
                rate_per_s: o.service.count() as f64 / seconds,
                ns_p50: times.quantile(0.5),
                ns_p99: times.quantile(0.99),
                errors: o.counts.failed(),
                misses: o.counts.miss,
                operation: o.operation,
            }
        };
        let operations: Vec<PointOperation> = self.operations.into_iter().map(operation).collect();
        Some(Point {
            at_s,
            trial,
            target: self.target,
            phase: self.phase,
            stage: self.stage,
            planned_per_s: self.planned_per_s.map(|_| self.planned_sum / length_ns as f64),
            rate_per_s: operations.iter().map(|o| o.rate_per_s).sum(),
            operations,
        })
    }
}

fn usage((target, trial): (&str, u64), (before, after): (&Sample, &Sample), at_s: f64) -> Usage {
    let seconds = (after.at_ns - before.at_ns) as f64 / 1e9;
    let rate = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
    let cpus = |before: u64, after: u64| rate(before, after) / 1e9;
    let server = before.server.as_ref().zip(after.server.as_ref());
    let store = before.store.as_ref().zip(after.store.as_ref());
    let store_rate = |read: fn(&model::StoreCounters) -> Option<u64>| {
        store.and_then(|(b, a)| Some(rate(read(b)?, read(a)?)))
    };
    let network = before.network.as_ref().zip(after.network.as_ref());
    // Bytes received by this host were sent by the server; on loopback both are equal.
    let received = network.map(|(b, a)| rate(b.sent_bytes, a.sent_bytes));
    let sent = network.map(|(b, a)| rate(b.received_bytes, a.received_bytes));
    let latest = after.store.as_ref();
    let (generator, generator_before) = (&after.generator, &before.generator);
    Usage {
        at_s,
        trial,
        target: target.into(),
        server_cpus: server.map(|(b, a)| cpus(b.cpu_ns, a.cpu_ns)),
        threads: server.map(|(b, a)| busy_threads(b, a, seconds)).unwrap_or_default(),
        server_bytes: after.server.as_ref().map(|s| s.resident_bytes),
        swapped_bytes: after.server.as_ref().map(|s| s.swapped_bytes),
        generator_cpus: cpus(generator_before.cpu_ns, generator.cpu_ns),
        generator_waiting: cpus(generator_before.run_delay_ns, generator.run_delay_ns),
        store_bytes: latest.and_then(|s| s.used_bytes),
        connections: latest.and_then(|s| s.connections),
        evicted_per_s: store_rate(|s| s.evicted),
        expired_per_s: store_rate(|s| s.expired),
        received_per_s: store_rate(|s| s.received_bytes).or(received),
        sent_per_s: store_rate(|s| s.sent_bytes).or(sent),
    }
}

fn busy_threads(before: &ProcessUse, after: &ProcessUse, seconds: f64) -> Vec<ThreadUsage> {
    let earlier = threads(before);
    // A new thread has no earlier CPU time to compare with; it counts from the next sample on.
    let used = threads(after).into_iter().filter_map(|(name, cpu_ns)| {
        let (_, before_ns) = earlier.iter().find(|(n, _)| *n == name)?;
        let cpus = cpu_ns.saturating_sub(*before_ns) as f64 / 1e9 / seconds;
        Some(ThreadUsage { name, cpus })
    });
    used.filter(|thread| thread.cpus > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Counts, ErrorClass, StoreCounters, ThreadCpu};
    use stats::Histogram;

    const MS: u64 = 1_000_000;

    fn recorded(phase: &str, at_ms: u64, requests: u64, ns: u64) -> Recorded {
        let mut service = Histogram::new();
        service.record_many(ns, requests);
        let response = Histogram::new();
        let mut counts = Counts { ok: requests, miss: 2, ..Counts::default() };
        counts.fail(ErrorClass::Timeout, "");
        let get = RecordedOperation { operation: "get".into(), counts, service, response };
        Recorded {
            cell: "redis/kv/8".into(),
            phase: phase.into(),
            at_ns: at_ms * MS,
            stage: Some(2),
            planned_per_s: Some(500.0),
            operations: vec![get],
        }
    }

    #[test]
    fn a_point_covers_half_a_second() {
        let mut course = Course::default();
        assert_eq!(course.recorded("redis", &recorded("mixed", 250, 100, 1_000), 1.0), []);
        let completed = course.recorded("redis", &recorded("mixed", 500, 150, 3_000), 1.25);
        let [point] = &completed[..] else { panic!("{completed:?}") };
        assert_eq!((point.at_s, point.rate_per_s, point.stage), (1.25, 500.0, Some(2)));
        let [get] = &point.operations[..] else { panic!("{point:?}") };
        assert_eq!((get.rate_per_s, get.errors, get.misses), (500.0, 2, 4));
        assert!(matches!(get.ns_p50, Some(Time::Of(2_990..3_010))), "{get:?}");
        // The next one starts where this one ended.
        let completed = course.recorded("redis", &recorded("mixed", 1_000, 50, 1_000), 1.75);
        assert_eq!((completed[0].rate_per_s, course.points().len()), (100.0, 2));
    }

    #[test]
    fn failed_requests_count_as_slower_than_any_answered() {
        let mut course = Course::default();
        course.run_started(5_000 * MS);
        // First, one of 61 requests times out; then, the only one does.
        let completed = course.recorded("redis", &recorded("mixed", 500, 60, 1_000), 0.5);
        let [get] = &completed[0].operations[..] else { panic!("{completed:?}") };
        assert!(matches!(get.ns_p50, Some(Time::Of(990..=1_010))), "{get:?}");
        let json = serde_json::to_value(get).unwrap();
        assert_eq!(json["ns_p99"], serde_json::json!({"at_least": 5_000 * MS}));
        let completed = course.recorded("redis", &recorded("mixed", 1_000, 0, 1), 1.0);
        let p50 = completed[0].operations[0].ns_p50;
        assert_eq!(p50, Some(Time::Bound { at_least: 5_000 * MS }));
    }

    #[test]
    fn the_planned_rate_is_the_mean_over_the_span() {
        let mut course = Course::default();
        let planned = |at_ms: u64, planned_per_s: f64| Recorded {
            planned_per_s: Some(planned_per_s),
            ..recorded("mixed", at_ms, 100, 1_000)
        };
        // The planned rate is interpolated linearly between two recordings.
        course.recorded("redis", &planned(250, 1_000.0), 0.25);
        let means = [(500, 2_000.0), (750, 2_000.0), (1_000, 2_000.0), (1_500, 3_000.0)];
        let planned_means = means.map(|(at_ms, per_s)| {
            let points = course.recorded("redis", &planned(at_ms, per_s), at_ms as f64 / 1e3);
            points.first().and_then(|point| point.planned_per_s)
        });
        assert_eq!(planned_means, [Some(1_250.0), None, Some(2_000.0), Some(2_500.0)]);
    }

    #[test]
    fn a_phase_end_completes_a_point_and_a_stall_has_rate_zero() {
        let mut course = Course::default();
        course.recorded("redis", &recorded("read", 250, 100, 1_000), 1.0);
        let completed = course.recorded("redis", &recorded("write", 600, 60, 1_000), 2.0);
        let of = |p: &Point| (p.phase.clone(), p.rate_per_s);
        let expected = [("read".to_string(), 400.0), ("write".to_string(), 100.0)];
        assert_eq!(completed.iter().map(of).collect::<Vec<_>>(), expected);
        let stalled = Recorded { operations: Vec::new(), ..recorded("write", 1_200, 0, 1) };
        let completed = course.recorded("redis", &stalled, 2.6);
        assert_eq!(completed.iter().map(of).collect::<Vec<_>>(), [("write".to_string(), 0.0)]);
        // No point is pending when the trial ends.
        assert_eq!(course.cut(2.7), None);
    }

    #[test]
    fn only_recent_points_are_kept() {
        let mut course = Course::default();
        for i in 1..=POINTS_MAX as u64 + 10 {
            course.recorded("redis", &recorded("mixed", i * 500, 1, 1_000), i as f64);
        }
        assert_eq!((course.points().len(), course.points()[0].at_s), (POINTS_MAX, 11.0));
    }

    #[test]
    fn usage_is_the_difference_of_two_samples() {
        let sample = |at_ms: u64, cpu_ms: u64, evicted: u64| Sample {
            at_ns: at_ms * MS,
            server: Some(ProcessUse {
                cpu_ns: cpu_ms * MS,
                threads: vec![
                    ThreadCpu { id: 9, name: "worker".into(), cpu_ns: cpu_ms * MS / 2 },
                    ThreadCpu { id: 4, name: "worker".into(), cpu_ns: 7 },
                ],
                resident_bytes: 4096,
                ..ProcessUse::default()
            }),
            store: Some(StoreCounters { evicted: Some(evicted), ..StoreCounters::default() }),
            ..Sample::default()
        };
        let mut course = Course::default();
        assert_eq!(course.sampled("redis", &sample(100, 50, 0), 0.1), None);
        assert_eq!(course.sampled("redis", &sample(200, 90, 0), 0.2), None);
        let usage = course.sampled("redis", &sample(1_100, 850, 30), 1.1).unwrap();
        assert_eq!((usage.server_cpus, usage.evicted_per_s), (Some(0.8), Some(30.0)));
        assert_eq!(usage.threads, [ThreadUsage { name: "worker 2".into(), cpus: 0.4 }]);
        assert_eq!((usage.server_bytes, usage.connections), (Some(4096), None));
        // The usage of a new trial starts at its first sample.
        course.trial_started();
        assert_eq!(course.sampled("redis", &sample(100, 0, 0), 2.0), None);
        let next = course.sampled("redis", &sample(700, 0, 0), 2.6).unwrap();
        assert_eq!((usage.trial, next.trial), (0, 1));
    }
}
