//! One result row for each operation of each measured phase.

use model::{Counts, OperationResult, Plan, Point, Restored, Sample, Slowest, Workload};
use stats::episodes::EPISODES_MIN;
use stats::{Histogram, Times};
use std::collections::BTreeMap;
use std::iter;

use crate::blocks::{Doubt, over_blocks};
use crate::cache;
use crate::distribution::{Merged, OfBlock, PERCENTILES, Unsure, over_all, seconds_min};
use crate::limits::{ANSWERED_MIN, FREE_SHARE_MIN};
use crate::metrics::{Whole, over_points};
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::requirements;
use crate::resources;
use crate::series::{InBlock, MeasuredPoint, Operation};
use crate::servers;
use crate::show;
use crate::view::{BlockPoint, CurvePoint, Row, RowCharts, Value};

/// Quantiles of a charted curve: evenly spread by the logarithm of the share above them.
const CURVE: [f64; 22] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999,
    0.9995, 0.9999, 0.99995, 0.99999, 1.0,
];

/// The rows of one phase; `phase_notes` are footnotes common to all of them.
pub(crate) fn rows(
    recorded: &Recorded,
    phase: &MeasuredPoint<'_>,
    phase_notes: &[usize],
    notes: &mut Notes,
) -> Vec<Row> {
    let mut rows: Vec<Row> =
        phase.operations.iter().map(|o| row(recorded, phase, o, phase_notes, notes)).collect();
    let null = recorded.null_rate(&phase.cell.id, phase.name).and_then(|null| null.rate_per_s);
    if let (Some(center), Some(whole)) = (null, rows.iter_mut().find(|r| r.operation == phase.name))
    {
        whole.metrics.insert("null_rate_per_s".into(), Value::alone(center));
    }
    rows
}

fn row(
    recorded: &Recorded,
    phase: &MeasuredPoint<'_>,
    operation: &Operation<'_>,
    phase_notes: &[usize],
    notes: &mut Notes,
) -> Row {
    let plan = &recorded.header.plan;
    let seed = plan.seed;
    let points = &operation.blocks;
    let counts = counted(operation);
    let service = merged(plan, operation, |o| &o.service, |s| &s.service);
    let response = merged(plan, operation, |o| &o.response, Slowest::response);
    let lag = Merged::of(points.iter().map(|p| Times::all(&p.result.lag)));
    let lock_wait = Merged::of(points.iter().map(|p| Times::all(&p.result.lock_wait)));

    let mut metrics = BTreeMap::new();
    let mut footnotes = phase_notes.to_vec();
    let doubts = rates(points, seed, &mut metrics);
    footnotes.extend(doubts.iter().map(|d| notes.add(d.to_string())));
    metrics.extend(error_share(&counts));
    let unsure_service = times("service", &service, seed, &mut metrics);
    let unsure_response = times("response", &response, seed, &mut metrics);
    times(phase.cell.load.waits(), &lag, seed, &mut metrics);
    if operation.whole {
        metrics.extend(over_points(&wholes(points, recorded), seed));
        restoring_per_operation(points, seed, &mut metrics);
    }
    locks(points, &lock_wait, seed, &mut metrics);
    if let Workload::AppCache(_) = phase.cell.workload {
        cache::metrics(points, seed, &mut metrics);
    }
    let has_response_times = phase.cell.load.has_response_times();
    let (times, unsure) = if has_response_times {
        (&response.all, unsure_response)
    } else {
        (&service.all, unsure_service)
    };
    footnotes.extend(unsure.and_then(unsure_note).map(|text| notes.add(text)));
    let place = format!("`{}` {}", phase.cell.id, operation.name);
    footnotes.extend(few_note(points, &place).map(|text| notes.add(text)));
    footnotes.extend(notes_of_parts_and_whole(phase, operation, &counts, notes));
    footnotes.sort_unstable();
    footnotes.dedup();
    let required = if operation.whole {
        let merged = if has_response_times { &response } else { &service };
        let unsent = points.iter().map(|p| p.point.unsent).sum();
        requirements::of_row(plan, merged, (&counts, unsent), &metrics, seed)
    } else {
        Vec::new()
    };
    Row {
        target: phase.cell.target.clone(),
        product: phase.trials.iter().find_map(|(t, _)| t.version.clone()),
        workload: phase.cell.workload.profile().into(),
        operation: operation.name.clone(),
        load: phase.cell.load.clone(),
        blocks: points.iter().filter(|p| p.usable()).count() as u32,
        compared_by: phase.compared_by(operation).into(),
        metrics,
        counts,
        footnotes,
        required,
        charts: Some(with_samples(
            charts(operation, times, &lock_wait.all, plan.timeout_ns),
            operation,
            recorded,
        )),
    }
}

/// The times of an operation over its blocks, including failed requests.
fn merged(
    plan: &Plan,
    operation: &Operation<'_>,
    times: fn(&OperationResult) -> &Histogram,
    course: fn(&Slowest) -> &[u64],
) -> Merged {
    let of_block = |p: &InBlock<'_>| {
        let all = p.result.counts.times(times(p.result), plan.timeout_ns);
        // Unsent requests belong to no particular operation.
        let unsent = if operation.whole { p.point.unsent } else { 0 };
        let all = all.and_failed(unsent, plan.timeout_ns);
        OfBlock::new(all, p.result.slowest.as_ref().map(course), p.point.length_ns)
    };
    Merged::of(operation.blocks.iter().map(of_block))
}

/// The points of an operation's blocks, with their samples.
fn wholes<'a>(blocks: &[InBlock<'a>], recorded: &'a Recorded) -> Vec<Whole<'a>> {
    let whole = |b: &InBlock<'a>| Whole {
        point: b.point,
        samples: recorded.samples_of(b.trial),
        events: &b.trial.events,
    };
    blocks.iter().map(whole).collect()
}

/// Footnotes on counts: of an operation's parts, then of the operation itself.
fn notes_of_parts_and_whole(
    phase: &MeasuredPoint<'_>,
    operation: &Operation<'_>,
    counts: &Counts,
    notes: &mut Notes,
) -> Vec<usize> {
    let (mut found, mut counted_already) = (Vec::new(), Counts::default());
    for part in phase.operations.iter().filter(|o| operation.whole && !o.whole) {
        let counts = counted(part);
        found.extend(count_notes(phase, part, (&counts, &Counts::default()), notes));
        counted_already.merge(&counts);
    }
    found.extend(count_notes(phase, operation, (counts, &counted_already), notes));
    found
}

/// Adds rates by each way of counting, and what is doubtful about them.
fn rates(points: &[InBlock<'_>], seed: u64, metrics: &mut BTreeMap<String, Value>) -> Vec<Doubt> {
    let usable = || points.iter().filter(|p| p.usable());
    let rate = over_blocks(usable().map(|p| p.result.rate_per_s), seed);
    let wall = over_blocks(usable().map(InBlock::wall_rate_per_s), seed);
    let calls = points.iter().filter(|p| !p.few).filter_map(|p| p.result.calls_rate_per_s);
    let calls = over_blocks(calls, seed);
    let doubts = rate.iter().flat_map(|(_, doubts)| doubts.clone()).collect();
    let named =
        [("rate_per_s", rate), ("wall_rate_per_s", wall), ("calls_rate_per_s", calls)].into_iter();
    metrics.extend(named.filter_map(|(name, found)| Some((name.to_string(), found?.0))));
    doubts
}

/// Adds the metrics of a time. Returns the lowest percentile without an interval, and why it has
/// none.
fn times(
    kind: &str,
    merged: &Merged,
    seed: u64,
    metrics: &mut BTreeMap<String, Value>,
) -> Option<(&'static str, Unsure)> {
    let percentiles = merged.percentiles();
    let values = percentiles.iter().map(|(name, value, _)| (*name, Some(*value)));
    let others = [("mean", merged.mean(seed)), ("max", merged.largest())];
    let found = values.chain(others).filter_map(|(name, value)| Some((name, value?)));
    metrics.extend(found.map(|(name, value)| (format!("{kind}_ns_{name}"), value)));
    percentiles.iter().find_map(|(name, _, unsure)| Some((*name, (*unsure)?)))
}

/// The share of failed operations, which means do not include; `None` if none failed.
fn error_share(counts: &Counts) -> Option<(String, Value)> {
    let share = counts.error as f64 / counts.total() as f64;
    (counts.error > 0).then(|| ("error_share".into(), Value::alone(share)))
}

/// Time in which clients restored records that cleans had removed, per operation.
fn restoring_per_operation(
    points: &[InBlock<'_>],
    seed: u64,
    metrics: &mut BTreeMap<String, Value>,
) {
    let each = points.iter().map(|p| {
        let restoring_ns: u64 = p.point.restored.iter().map(|r| r.restoring_ns).sum();
        restoring_ns as f64 / p.result.counts.total() as f64
    });
    let value = over_blocks(each, seed).map(|(value, _)| value);
    metrics.extend(value.map(|v| ("restoring_ns_per_op".into(), v)));
}

/// Lock waits, if there were any: their length, and the share of operations that waited.
fn locks(points: &[InBlock<'_>], waits: &Merged, seed: u64, metrics: &mut BTreeMap<String, Value>) {
    let percentiles = waits.percentiles().into_iter();
    let kept = percentiles.filter(|(name, ..)| matches!(*name, "p50" | "p99"));
    metrics.extend(kept.map(|(name, value, _)| (format!("lock_wait_ns_{name}"), value)));
    metrics.extend(waits.largest().map(|v| ("lock_wait_ns_max".into(), v)));
    let share = |points: &mut dyn Iterator<Item = &OperationResult>| {
        let (waited, all) = points.fold((0, 0), |(waited, all), o| {
            (waited + o.counts.lock_waits, all + o.counts.total())
        });
        if all == 0 { 0.0 } else { waited as f64 / all as f64 }
    };
    let all = share(&mut points.iter().map(|p| p.result));
    if all > 0.0 {
        let without = |i: usize| {
            let others = points.iter().enumerate().filter(|(j, _)| *j != i);
            share(&mut others.map(|(_, p)| p.result))
        };
        let without: Vec<f64> = (0..points.len()).map(without).collect();
        let own = |p: &InBlock<'_>| share(&mut [p.result].into_iter());
        let own: Vec<f64> = points.iter().map(own).collect();
        let value = over_all(all, (&own, &without), (0.0, 1.0), seed);
        metrics.insert("lock_wait_share".into(), value);
    }
}

/// Why a percentile and all higher ones have no interval; `None` if no table shows them.
fn unsure_note((name, unsure): (&str, Unsure)) -> Option<String> {
    let (shown, q) = PERCENTILES.iter().rev().skip(1).find(|(known, _)| *known == name)?;
    let subject = match *shown {
        "p999" => "p99.9 and higher percentiles are based".into(),
        shown => format!("{shown} and higher percentiles are based"),
    };
    Some(match unsure {
        Unsure::Unknown => "percentiles have no interval: the record does not contain the number \
             of slow episodes"
            .into(),
        Unsure::Episodes => {
            format!("{subject} on fewer than {EPISODES_MIN} slow episodes, too few for an interval")
        }
        Unsure::Short => format!(
            "{subject} on less than {} s of measurement, too short for an interval: a stall too \
             rare to occur in it could change them",
            seconds_min(*q).round()
        ),
    })
}

/// Note on blocks without a rate because too few operations were answered.
fn few_note(points: &[InBlock<'_>], place: &str) -> Option<String> {
    let few = points.iter().filter(|p| p.few).count();
    (few > 0).then(|| {
        format!(
            "{place}: in {few} of {} blocks fewer than {ANSWERED_MIN} operations per client were \
             answered, or fewer than {ANSWERED_MIN} of this kind, in less than {} of the clients' \
             time; rates and comparisons ignore them: measure longer (`--set measure_ms=…`)",
            points.len(),
            show::percent(FREE_SHARE_MIN)
        )
    })
}

/// An operation's counts in all blocks.
fn counted(operation: &Operation<'_>) -> Counts {
    let mut counts = Counts::default();
    for point in &operation.blocks {
        counts.merge(&point.result.counts);
    }
    counts
}

/// Notes on counts that break no rule but are worth knowing. Counts already noted for parts of the
/// operation (`counted_already`) are not repeated for the whole.
fn count_notes(
    phase: &MeasuredPoint<'_>,
    operation: &Operation<'_>,
    (counts, counted_already): (&Counts, &Counts),
    notes: &mut Notes,
) -> Vec<usize> {
    let place = format!("`{}` {}", phase.cell.id, operation.name);
    let mut found = Vec::new();
    let mut note = |of: fn(&Counts) -> u64, what: &str| {
        let (n, all) = (of(counts), counts.total());
        if n > 0 && of(counted_already) == 0 {
            found.push(notes.add(format!("{place}: {n} of {all} {what}")));
        }
    };
    let is_cache = matches!(phase.cell.workload, Workload::AppCache(_));
    let stale = if is_cache {
        "found a value that an earlier write or clean should have replaced or removed"
    } else {
        "returned an older value than the last one written under the lock"
    };
    note(|c| c.stale, stale);
    note(|c| c.lost, "missed a record that had not been removed: layout or store lost it");
    note(|c| c.lock_broken, "closed a session whose lock was gone or taken over");
    note(|c| c.lock_timeouts, "gave up waiting for the session's lock");
    note(
        |c| c.miss,
        &format!("did not find their {}", show::things(&phase.cell.workload).trim_end_matches('s')),
    );
    note(|c| c.error, &format!("failed: {}", show::classes(counts)));
    found
}

fn charts(
    operation: &Operation<'_>,
    times: &Times,
    lock_wait: &Times,
    timeout_ns: u64,
) -> RowCharts {
    let curve = |times: &Times| {
        CURVE.iter().filter_map(|q| Some(CurvePoint { q: *q, ns: times.known(*q)? })).collect()
    };
    let usable: Vec<&InBlock<'_>> = operation.blocks.iter().filter(|p| p.usable()).collect();
    let interval_s =
        usable.first().and_then(|p| p.series()).map_or(0.0, |s| s.interval_ns as f64 / 1e9);
    // Counts by interval are those of the whole phase.
    let with_series = operation.whole && interval_s > 0.0;
    let series = |p: &&InBlock<'_>| -> Option<Vec<f64>> {
        let series = p.series()?;
        // The last interval is cut short by the end of the phase and would look like a fall.
        let whole = (p.point.length_ns / series.interval_ns.max(1)) as usize;
        let counts = series.done_per_interval.iter().take(whole);
        Some(counts.map(|n| *n as f64 / interval_s).collect())
    };
    let p99 = |p: &&InBlock<'_>| -> Vec<(f64, f64)> {
        let each = p.series().into_iter().flat_map(|series| &series.p99);
        each.map(|(until_ns, ns)| (*until_ns as f64 / 1e9, *ns as f64)).collect()
    };
    let hits = |p: &&InBlock<'_>| -> Vec<Option<f64>> {
        let share = |(reads, missed): &(u64, u64)| {
            (*reads > 0).then(|| (reads - missed) as f64 / *reads as f64)
        };
        p.series().iter().flat_map(|series| &series.reads_per_interval).map(share).collect()
    };
    let of_reads = usable.iter().filter(|p| p.result.operation == "read");
    RowCharts {
        time_curve: curve(times),
        lock_wait_curve: curve(lock_wait),
        rate_series: if with_series {
            usable.iter().filter_map(series).collect()
        } else {
            Vec::new()
        },
        p99_series: if operation.whole { usable.iter().map(p99).collect() } else { Vec::new() },
        failed_series: if with_series { failures(&usable, interval_s) } else { Vec::new() },
        hit_series: of_reads.map(hits).filter(|series| !series.is_empty()).collect(),
        interval_s,
        resources: None,
        servers: None,
        by_block: usable.iter().map(|p| block_point(p, timeout_ns)).collect(),
    }
}

/// Failed operations per second in each whole interval of each block; empty if none failed.
fn failures(blocks: &[&InBlock<'_>], interval_s: f64) -> Vec<Vec<f64>> {
    let of_block = |p: &&InBlock<'_>| {
        let series = p.series()?;
        let whole = (p.point.length_ns / series.interval_ns.max(1)) as usize;
        let failed = series.failed_per_interval.iter().copied().chain(iter::repeat(0));
        let failed = failed.take(whole.min(series.done_per_interval.len()));
        Some(failed.map(|n| n as f64 / interval_s).collect())
    };
    let all: Vec<Vec<f64>> = blocks.iter().filter_map(of_block).collect();
    if all.iter().flatten().any(|n| *n > 0.0) { all } else { Vec::new() }
}

/// The same with what samples of the charted blocks of a whole phase show.
fn with_samples(charts: RowCharts, operation: &Operation<'_>, recorded: &Recorded) -> RowCharts {
    let usable = operation.blocks.iter().filter(|p| p.usable() && operation.whole);
    let sampled: Vec<(&InBlock<'_>, &[Sample])> =
        usable.map(|p| (p, recorded.samples_of(p.trial))).collect();
    RowCharts {
        resources: resources::over_time(&sampled),
        servers: servers::over_time(&sampled, recorded.header.plan.limit_ns),
        ..charts
    }
}

fn block_point(point: &InBlock<'_>, timeout_ns: u64) -> BlockPoint {
    let OperationResult { service, counts, rate_per_s, .. } = point.result;
    let Point { length_ns, own_share, restored, .. } = point.point;
    let sum = |of: fn(&Restored) -> u64| restored.iter().map(of).sum::<u64>();
    let free_ns = match restored.len() as u64 {
        0 => (*length_ns as f64 * (1.0 - own_share)) as u64,
        clients => sum(|r| r.free_ns) / clients,
    };
    let times = counts.times(service, timeout_ns);
    BlockPoint {
        block: point.block,
        rate_per_s: *rate_per_s,
        service_ns_mean: service.mean_ns(),
        service_ns_p50: times.known(0.5),
        service_ns_p99: times.known(0.99),
        service_ns_p999: times.known(0.999),
        ok: counts.ok,
        not_ok: counts.total() - counts.ok,
        free_ns,
        restoring_ns: sum(|r| r.restoring_ns),
    }
}
