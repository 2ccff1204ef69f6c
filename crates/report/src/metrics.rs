//! Metrics of a whole point, in addition to the times of its operations.
//!
//! Each metric is defined once, here. Result rows, stages of ramps, shares of a knee, costs of a
//! search and their outputs have all of them.

use model::{Counts, NetworkUse, Point, Sample, TrialEvent};
use std::collections::BTreeMap;

use crate::blocks::over_blocks;
use crate::view::Value;

/// Name of Linux' loopback interface.
const LOOPBACK: &str = "lo";

/// A point with the samples and events of its trial.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'a> {
    pub(crate) point: &'a Point,
    /// In chronological order; empty without samples.
    pub(crate) samples: &'a [Sample],
    /// Events of its trial in chronological order.
    pub(crate) events: &'a [TrialEvent],
}

/// The kind of mean over blocks.
#[derive(Clone, Copy, PartialEq)]
enum Mean {
    /// Geometric mean with an interval; values that are not above 0 are ignored.
    Geometric,
    /// Arithmetic mean, for shares, which can be 0.
    Arithmetic,
    /// For amounts that can be 0: as [`Mean::Geometric`] if no block has 0, else as
    /// [`Mean::Arithmetic`].
    Amount,
}

/// One metric.
pub(crate) struct Metric {
    /// Its key in the summary, which ends in its unit.
    pub(crate) key: &'static str,
    mean: Mean,
    read: fn(&Whole<'_>) -> Option<f64>,
}

/// All metrics in the order of their CSV columns; append new ones.
pub(crate) const METRICS: [Metric; 34] = [
    geometric("server_cpu_ns_per_op", |w| w.per_op(w.point.server_cpu_ns? as f64)),
    geometric("generator_cpu_ns_per_op", |w| w.per_op(w.point.generator_cpu_ns as f64)),
    geometric("server_cpus", |w| w.by_time(w.point.server_cpu_ns?)),
    geometric("generator_cpus", |w| w.by_time(w.point.generator_cpu_ns)),
    arithmetic("generator_run_delay_share", |w| w.by_time(w.point.generator_run_delay_ns)),
    arithmetic("taken_share", |w| Some(w.point.disturbance.share_of(w.point.length_ns))),
    geometric("server_switches_per_op", |w| w.per_op(w.grown(switches)?)),
    geometric("network_received_bytes_per_op", |w| w.per_op(w.grown(received)?)),
    geometric("network_sent_bytes_per_op", |w| w.per_op(w.grown(sent)?)),
    geometric("network_bytes_per_op", |w| w.per_op(w.grown(received)? + w.grown(sent)?)),
    arithmetic("hit_ratio", |w| w.through_a_cache()?.hit_ratio()),
    arithmetic("queries_saved_share", |w| w.through_a_cache()?.queries_saved_share()),
    geometric("queries_per_expiry", |w| w.through_a_cache()?.queries_per_expiry()),
    geometric("server_calls_per_op", |w| w.per_op(w.grown(calls)?)),
    amount("server_major_faults_per_op", |w| w.per_op(w.grown(major_faults)?)),
    amount("device_read_bytes_per_op", |w| w.per_op(w.grown(device_read)?)),
    amount("device_written_bytes_per_op", |w| w.per_op(w.grown(device_written)?)),
    amount("evicted_per_op", |w| w.per_op(w.grown(evicted)?)),
    amount("flash_hit_share", flash_hit_share),
    amount("memory_pressure_some_share", |w| w.waited(|s| Some(s.pressure?.memory_some_ns))),
    amount("memory_pressure_full_share", |w| w.waited(|s| Some(s.pressure?.memory_full_ns))),
    amount("io_pressure_some_share", |w| w.waited(|s| Some(s.pressure?.io_some_ns))),
    amount("io_pressure_full_share", |w| w.waited(|s| Some(s.pressure?.io_full_ns))),
    amount("cpu_pressure_some_share", |w| w.waited(|s| Some(s.pressure?.cpu_some_ns))),
    amount("group_memory_pressure_some_share", |w| {
        w.waited(|s| Some(s.group_pressure?.memory_some_ns))
    }),
    amount("group_memory_pressure_full_share", |w| {
        w.waited(|s| Some(s.group_pressure?.memory_full_ns))
    }),
    amount("group_io_pressure_some_share", |w| w.waited(|s| Some(s.group_pressure?.io_some_ns))),
    amount("group_io_pressure_full_share", |w| w.waited(|s| Some(s.group_pressure?.io_full_ns))),
    geometric("proxy_cpu_ns_per_op", |w| w.per_op(w.grown(proxy_cpu)?)),
    geometric("proxy_cpus", |w| w.by_time(w.grown(proxy_cpu)? as u64)),
    amount("cpu_throttled_share", |w| w.waited(|s| s.group_throttled_ns)),
    geometric("link_received_bit_per_s", |w| w.bit_per_s(|s| Some(link(s)?.received_bytes))),
    geometric("link_sent_bit_per_s", |w| w.bit_per_s(|s| Some(link(s)?.sent_bytes))),
    geometric("generator_cpu_share", |w| generator_cpu_share(w.point)),
];

/// Reads of a database's rows through a cache.
struct ThroughCache<'a> {
    reads: u64,
    gets: &'a Counts,
    queries: &'a Counts,
}

impl ThroughCache<'_> {
    /// Share of the cache's answers that had the row.
    fn hit_ratio(&self) -> Option<f64> {
        let answers = self.gets.ok + self.gets.miss;
        (answers > 0).then(|| self.gets.ok as f64 / answers as f64)
    }

    /// Share of the reads without a query.
    fn queries_saved_share(&self) -> Option<f64> {
        let queries = self.queries.total();
        (self.reads > 0).then(|| 1.0 - queries as f64 / self.reads as f64)
    }

    /// Queries per expiry of a row that all clients read.
    fn queries_per_expiry(&self) -> Option<f64> {
        let expired = self.gets.expired;
        (expired > 0).then(|| self.queries.total() as f64 / expired as f64)
    }
}

/// Context switches of the server's threads.
fn switches(sample: &Sample) -> Option<u64> {
    let server = sample.server.as_ref()?;
    Some(server.voluntary_switches + server.involuntary_switches)
}

/// Bytes that the server has received, as it reports them. This and `sent` cover all of its
/// traffic, including the sampling of its counters, ten times a second.
fn received(sample: &Sample) -> Option<u64> {
    sample.store.as_ref()?.received_bytes
}

fn sent(sample: &Sample) -> Option<u64> {
    sample.store.as_ref()?.sent_bytes
}

/// CPU time of a proxy before the servers, which is part of the server's.
fn proxy_cpu(sample: &Sample) -> Option<u64> {
    Some(sample.proxy?.cpu_ns)
}

/// Traffic of the interface that leads to the server, unless it is the loopback, which counts all
/// traffic twice.
fn link(sample: &Sample) -> Option<&NetworkUse> {
    sample.network.as_ref().filter(|network| network.interface != LOOPBACK)
}

/// Calls of the server's processes that read and write.
fn calls(sample: &Sample) -> Option<u64> {
    Some(sample.server.as_ref()?.calls)
}

fn major_faults(sample: &Sample) -> Option<u64> {
    Some(sample.server.as_ref()?.major_faults)
}

/// Bytes that everyone has read from the disk with the target's data.
fn device_read(sample: &Sample) -> Option<u64> {
    Some(sample.device?.read_bytes)
}

fn device_written(sample: &Sample) -> Option<u64> {
    Some(sample.device?.written_bytes)
}

/// Keys that the server has dropped because its memory was full.
fn evicted(sample: &Sample) -> Option<u64> {
    sample.store.as_ref()?.evicted
}

/// Share of the values found that the server read from its file of values.
fn flash_hit_share(whole: &Whole<'_>) -> Option<f64> {
    let hits = whole.grown(|sample| sample.store.as_ref()?.hits)?;
    let flash = whole.grown(|sample| sample.store.as_ref()?.flash_hits)?;
    (hits > 0.0).then(|| flash / hits)
}

/// CPU time of the generator by that of the server.
fn generator_cpu_share(point: &Point) -> Option<f64> {
    let server = point.server_cpu_ns.filter(|ns| *ns > 0)?;
    Some(point.generator_cpu_ns as f64 / server as f64)
}

/// Keys that the server has expired, as it reports them.
fn expired(sample: &Sample) -> Option<u64> {
    sample.store.as_ref()?.expired
}

const fn geometric(key: &'static str, read: fn(&Whole<'_>) -> Option<f64>) -> Metric {
    Metric { key, mean: Mean::Geometric, read }
}

const fn amount(key: &'static str, read: fn(&Whole<'_>) -> Option<f64>) -> Metric {
    Metric { key, mean: Mean::Amount, read }
}

const fn arithmetic(key: &'static str, read: fn(&Whole<'_>) -> Option<f64>) -> Metric {
    Metric { key, mean: Mean::Arithmetic, read }
}

impl Metric {
    /// The metric of one point.
    pub(crate) fn read(&self, whole: &Whole<'_>) -> Option<f64> {
        (self.read)(whole)
    }

    /// The mean of the values of several points.
    pub(crate) fn over(&self, values: &[f64], seed: u64) -> Option<Value> {
        let mean = match self.mean {
            Mean::Amount if values.iter().all(|value| *value > 0.0) => Mean::Geometric,
            Mean::Amount => Mean::Arithmetic,
            mean => mean,
        };
        match mean {
            Mean::Geometric => over_blocks(values.iter().copied(), seed).map(|(value, _)| value),
            _ if values.is_empty() => None,
            Mean::Arithmetic | Mean::Amount => {
                Some(Value::alone(values.iter().sum::<f64>() / values.len() as f64))
            }
        }
    }
}

/// Every metric over repetitions of a point.
pub(crate) fn over_points(wholes: &[Whole<'_>], seed: u64) -> BTreeMap<String, Value> {
    let of = |metric: &Metric| {
        let values: Vec<f64> = wholes.iter().filter_map(|whole| metric.read(whole)).collect();
        Some((metric.key.to_string(), metric.over(&values, seed)?))
    };
    METRICS.iter().filter_map(of).collect()
}

impl Whole<'_> {
    /// `None` unless rows were read through a cache.
    fn through_a_cache(&self) -> Option<ThroughCache<'_>> {
        let counts = |name| Some(&self.point.operation(name)?.counts);
        let reads = self.point.whole()?.counts.total();
        Some(ThroughCache { reads, gets: counts("get")?, queries: counts("query")? })
    }

    /// Keys that the server expired in its span; `None` if it did not report them.
    pub(crate) fn expired(&self) -> Option<f64> {
        self.grown(expired)
    }

    /// Operations done in its span; for a stage those answered in it, even if due earlier.
    fn operations(&self) -> f64 {
        let Some(whole) = self.point.whole() else { return 0.0 };
        match self.point.stage {
            Some(_) => whole.rate_per_s * self.point.length_ns as f64 / 1e9,
            None => whole.counts.total() as f64,
        }
    }

    fn per_op(&self, amount: f64) -> Option<f64> {
        let operations = self.operations();
        (operations > 0.0).then(|| amount / operations)
    }

    /// By the length of its span, both nanoseconds.
    fn by_time(&self, ns: u64) -> Option<f64> {
        (self.point.length_ns > 0).then(|| ns as f64 / self.point.length_ns as f64)
    }

    /// Bits per second, by a counter of bytes.
    fn bit_per_s(&self, read: fn(&Sample) -> Option<u64>) -> Option<f64> {
        let bytes = self.grown(read)?;
        (self.point.length_ns > 0).then(|| bytes * 8e9 / self.point.length_ns as f64)
    }

    /// Share of its span in which tasks waited, by a counter of nanoseconds.
    fn waited(&self, read: fn(&Sample) -> Option<u64>) -> Option<f64> {
        let grown = self.grown(read)?;
        (self.point.length_ns > 0).then(|| (grown / self.point.length_ns as f64).min(1.0))
    }

    /// Growth of a counter in its span, extrapolated from the samples within it, because the rate
    /// just outside the span can differ. After a fault, another server's counter
    /// continues; growth between the two is not counted. `None` if the samples cover less than half
    /// of the span.
    fn grown(&self, read: fn(&Sample) -> Option<u64>) -> Option<f64> {
        let (begun_ns, length_ns) = (self.point.begun_ns, self.point.length_ns);
        let from = self.samples.partition_point(|sample| sample.at_ns < begun_ns);
        let to = self.samples.partition_point(|sample| sample.at_ns <= begun_ns + length_ns);
        let reading = |sample: &Sample| Some((sample.at_ns, read(sample)?));
        let within = self.samples.get(from..to)?;
        let is_kill = |event: &&TrialEvent| event.kind.is_fault();
        let kills: Vec<u64> = self.events.iter().filter(is_kill).map(|e| e.at_ns).collect();
        let server = |sample: &Sample| kills.partition_point(|at_ns| *at_ns <= sample.at_ns);
        let of_each = within.chunk_by(|a, b| server(a) == server(b)).filter_map(|of_one| {
            let first = of_one.iter().find_map(reading)?;
            Some((first, of_one.iter().rev().find_map(reading)?))
        });
        let of_each: Vec<_> = of_each.collect();
        let ((first_ns, _), _) = of_each.first()?;
        let (_, (last_ns, _)) = of_each.last()?;
        let covered_ns = last_ns - first_ns;
        let grown = of_each.iter().map(|((_, first), (_, last))| last.saturating_sub(*first));
        let grown = grown.sum::<u64>() as f64;
        (covered_ns * 2 >= length_ns.max(1)).then(|| grown * length_ns as f64 / covered_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EventKind, OperationResult, ProcessUse};
    use stats::Histogram;

    fn sample(at_ns: u64, switches: Option<u64>) -> Sample {
        let used = |n| ProcessUse {
            voluntary_switches: n / 2,
            involuntary_switches: n / 2,
            ..ProcessUse::default()
        };
        Sample { at_ns, server: switches.map(used), ..Sample::default() }
    }

    fn point(stage: Option<u32>) -> Point {
        let whole = OperationResult {
            operation: "get".into(),
            counts: Counts { ok: 50, ..Counts::default() },
            rate_per_s: 1e9,
            calls_rate_per_s: None,
            service: Histogram::new(),
            response: Histogram::new(),
            lag: Histogram::new(),
            lock_wait: Histogram::new(),
            slowest: None,
        };
        let operations = vec![whole];
        Point {
            phase: "get".into(),
            stage,
            begun_ns: 150,
            length_ns: 100,
            operations,
            ..Point::default()
        }
    }

    fn switches_per_op(samples: &[Sample], stage: Option<u32>) -> Option<f64> {
        let point = point(stage);
        let metric = METRICS.iter().find(|m| m.key == "server_switches_per_op").unwrap();
        metric.read(&Whole { point: &point, samples, events: &[] })
    }

    /// The point starts at 150 and ends at 250.
    #[test]
    fn counters_are_read_by_the_samples_within() {
        let samples = [
            sample(140, Some(0)),
            sample(160, Some(2_000)),
            sample(200, None),
            sample(240, Some(4_000)),
            sample(260, Some(90_000)),
        ];
        let grown = 2_000.0 * 100.0 / 80.0;
        assert_eq!(switches_per_op(&samples, None), Some(grown / 50.0));
        assert_eq!(switches_per_op(&samples, Some(0)), Some(grown / 100.0), "by those answered");
        assert_eq!(switches_per_op(&samples[..3], None), None, "one says nothing");
        let near = [sample(190, Some(1)), sample(230, Some(2))];
        assert_eq!(switches_per_op(&near, None), None, "less than half of the span");
        assert_eq!(switches_per_op(&[], None), None);
    }

    /// The next server's counter starts at another value, lower or higher.
    #[test]
    fn counters_before_and_after_a_kill_are_not_mixed() {
        let metric = METRICS.iter().find(|m| m.key == "server_switches_per_op").unwrap();
        let kill = TrialEvent { at_ns: 190, kind: EventKind::Killed, subject: "a".into() };
        for next in [10, 90_000] {
            let samples = [
                sample(160, Some(2_000)),
                sample(180, Some(3_000)),
                sample(200, None),
                sample(220, Some(next)),
                sample(240, Some(next + 500)),
            ];
            let point = point(None);
            let events = std::slice::from_ref(&kill);
            let whole = Whole { point: &point, samples: &samples, events };
            let grown = 1_500.0 * 100.0 / 80.0;
            assert_eq!(metric.read(&whole), Some(grown / 50.0), "{next}");
        }
    }

    #[test]
    fn the_generators_share_needs_the_servers_cpu_time() {
        let metric = METRICS.iter().find(|m| m.key == "generator_cpu_share").unwrap();
        for (server_cpu_ns, share) in [(Some(20), Some(1.5)), (Some(0), None), (None, None)] {
            let point = Point { generator_cpu_ns: 30, server_cpu_ns, ..point(None) };
            let whole = Whole { point: &point, samples: &[], events: &[] };
            assert_eq!(metric.read(&whole), share);
        }
    }

    #[test]
    fn shares_of_zero_count() {
        let metric = METRICS.iter().find(|m| m.key == "taken_share").unwrap();
        assert_eq!(metric.over(&[0.0, 0.1], 0).map(|v| v.center), Some(0.05));
        assert_eq!(metric.over(&[], 0), None);
    }
}
