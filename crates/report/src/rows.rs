//! One row of results for each operation of each measured phase.

use model::{Counts, Load, OperationResult, PhaseResult, Plan, Restored, Workload};
use stats::compare::FEWEST_BLOCKS;
use stats::{Histogram, Warning};
use std::collections::BTreeMap;
use std::fmt;

use crate::cache;
use crate::distribution::{CONFIDENCE, Merged, PERCENTILES, Times, jackknife};
use crate::notes::Notes;
use crate::null;
use crate::recorded::Recorded;
use crate::rules::{ANSWERED_MIN, FREE_SHARE_MIN, VALUES_ABOVE_PERCENTILE};
use crate::series::{MeasuredPhase, Operation, Point};
use crate::show;
use crate::validity;
use crate::view::{BlockPoint, CurvePoint, Row, RowCharts, Value};

/// Quantiles of a charted curve: evenly spread by the logarithm of the share above them.
const CURVE: [f64; 22] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999,
    0.9995, 0.9999, 0.99995, 0.99999, 1.0,
];

/// The rows of one phase; `phase_notes` are footnotes that all of them carry.
pub(crate) fn rows(
    recorded: &Recorded,
    phase: &MeasuredPhase<'_>,
    phase_notes: &[usize],
    notes: &mut Notes,
) -> Vec<Row> {
    let plan = &recorded.header.plan;
    let mut rows: Vec<Row> =
        phase.operations.iter().map(|o| row(phase, o, phase_notes, notes, plan)).collect();
    let null = null::rate_of(phase, &recorded.header.null_rates);
    if let (Some(center), Some(whole)) = (null, rows.iter_mut().find(|r| r.operation == phase.name))
    {
        whole.metrics.insert("null_rate_per_s".into(), Value::alone(center));
    }
    rows
}

fn row(
    phase: &MeasuredPhase<'_>,
    operation: &Operation<'_>,
    phase_notes: &[usize],
    notes: &mut Notes,
    plan: &Plan,
) -> Row {
    let seed = plan.seed;
    let points = &operation.points;
    let counts = counted(operation);
    let of = |times: fn(&OperationResult) -> &Histogram| {
        let times = |p: &Point<'_>| Times::of(times(p.result), &p.result.counts, plan.timeout_ns);
        Merged::of(points.iter().map(times))
    };
    let (service, response) = (of(|o| &o.service), of(|o| &o.response));
    let lag = Merged::of(points.iter().map(|p| Times::all(&p.result.lag)));
    let lock_wait = Merged::of(points.iter().map(|p| Times::all(&p.result.lock_wait)));

    let mut metrics = BTreeMap::new();
    let mut footnotes = phase_notes.to_vec();
    let rates = points.iter().filter(|p| p.usable()).map(|p| p.result.rate_per_s);
    if let Some((rate, doubts)) = over_blocks(rates, seed) {
        metrics.insert("rate_per_s".to_string(), rate);
        footnotes.extend(doubts.iter().map(|d| notes.add(d.to_string())));
    }
    let rates = points.iter().filter(|p| !p.few).filter_map(|p| p.result.calls_rate_per_s);
    metrics.extend(over_blocks(rates, seed).map(|(v, _)| ("calls_rate_per_s".to_string(), v)));
    metrics.extend(error_share(&counts));
    times("service", &service, seed, &mut metrics);
    times("response", &response, seed, &mut metrics);
    times("lag", &lag, seed, &mut metrics);
    if operation.whole {
        cpu_per_operation(points, seed, &mut metrics);
        restoring_per_operation(points, seed, &mut metrics);
    }
    locks(points, &lock_wait, seed, &mut metrics);
    if let Workload::AppCache(_) = phase.cell.workload {
        cache::metrics(points, seed, &mut metrics);
    }
    footnotes.extend(sample_notes(service.answered().count(), notes));
    let place = format!("`{}` {}", phase.cell.id, operation.name);
    footnotes.extend(few_note(points, &place).map(|text| notes.add(text)));
    let mut told = Counts::default();
    for part in phase.operations.iter().filter(|o| operation.whole && !o.whole) {
        let counts = counted(part);
        footnotes.extend(count_notes(phase, part, (&counts, &Counts::default()), notes));
        told.merge(&counts);
    }
    footnotes.extend(count_notes(phase, operation, (&counts, &told), notes));
    footnotes.sort_unstable();
    footnotes.dedup();
    let times = match phase.cell.load {
        Load::Closed { .. } => &service.all,
        Load::Open { .. } | Load::Ramp { .. } => &response.all,
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
        charts: Some(charts(operation, times, &lock_wait.all, plan.timeout_ns)),
    }
}

/// A doubt about a value over blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Doubt {
    /// Its ends are the lowest and the highest of the blocks.
    Range,
    Estimate(Warning),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range => write!(
                f,
                "the ends beside rates and costs are the lowest and the highest of \
                 {FEWEST_BLOCKS} blocks, a range and no interval (more blocks give one)"
            ),
            Self::Estimate(warning) => warning.fmt(f),
        }
    }
}

/// A metric with one value a block; values that are no positive number are no block.
pub(crate) fn over_blocks(
    values: impl Iterator<Item = f64>,
    seed: u64,
) -> Option<(Value, Vec<Doubt>)> {
    let values: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
    let estimate = stats::geometric_mean_interval(&values, CONFIDENCE, seed).ok()?;
    let ends = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
    let (value, warnings) = match values.len() {
        0..FEWEST_BLOCKS => (Value::alone(estimate.center), Vec::new()),
        // Student's interval of three reaches far beyond anything that was observed.
        FEWEST_BLOCKS => {
            (Value::new(estimate.center, ends(f64::min), ends(f64::max)), vec![Doubt::Range])
        }
        _ => {
            let warnings = estimate.warnings.iter().copied().map(Doubt::Estimate);
            (Value::new(estimate.center, estimate.lo(), estimate.hi()), warnings.collect())
        }
    };
    Some((value, warnings))
}

fn times(kind: &str, merged: &Merged, seed: u64, metrics: &mut BTreeMap<String, Value>) {
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            metrics.insert(format!("{kind}_ns_{name}"), value);
        }
    };
    for (name, q) in PERCENTILES {
        put(name, merged.quantile(seed, q));
    }
    put("mean", merged.mean(seed));
    put("max", merged.largest());
}

/// The share of failed operations, beside means that do not contain them; nothing for none.
fn error_share(counts: &Counts) -> Option<(String, Value)> {
    let share = counts.error as f64 / counts.total() as f64;
    (counts.error > 0).then(|| ("error_share".into(), Value::alone(share)))
}

/// CPU time of server and generator by the operations done in the phase.
fn cpu_per_operation(points: &[Point<'_>], seed: u64, metrics: &mut BTreeMap<String, Value>) {
    let each = |cpu: fn(&PhaseResult) -> Option<u64>| {
        let per_operation = points
            .iter()
            .filter_map(|p| Some(cpu(p.phase)? as f64 / p.result.counts.total() as f64));
        over_blocks(per_operation, seed).map(|(value, _)| value)
    };
    let server = each(|p| p.server_cpu_ns);
    let generator = each(|p| Some(p.generator_cpu_ns));
    metrics.extend(server.map(|v| ("server_cpu_ns_per_op".into(), v)));
    metrics.extend(generator.map(|v| ("generator_cpu_ns_per_op".into(), v)));
}

/// Time in which clients saved again what cleans had removed, by the operations done.
fn restoring_per_operation(points: &[Point<'_>], seed: u64, metrics: &mut BTreeMap<String, Value>) {
    let each = points.iter().map(|p| {
        let restoring_ns: u64 = p.phase.restored.iter().map(|r| r.restoring_ns).sum();
        restoring_ns as f64 / p.result.counts.total() as f64
    });
    let value = over_blocks(each, seed).map(|(value, _)| value);
    metrics.extend(value.map(|v| ("restoring_ns_per_op".into(), v)));
}

/// Waits for locks, where there were any: how long, and what share of the operations waited.
fn locks(points: &[Point<'_>], waits: &Merged, seed: u64, metrics: &mut BTreeMap<String, Value>) {
    for (name, q) in PERCENTILES.iter().filter(|(name, _)| matches!(*name, "p50" | "p99")) {
        let value = waits.quantile(seed, *q);
        metrics.extend(value.map(|v| (format!("lock_wait_ns_{name}"), v)));
    }
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
        metrics.insert("lock_wait_share".into(), jackknife(all, &without, seed));
    }
}

/// Percentiles that rest on too few values.
fn sample_notes(operations: u64, notes: &mut Notes) -> Vec<usize> {
    let need = |q: f64| (VALUES_ABOVE_PERCENTILE as f64 / (1.0 - q)).round() as u64;
    let few: Vec<&str> = [("p99", 0.99), ("p99.9", 0.999)]
        .iter()
        .filter(|(_, q)| operations < need(*q))
        .map(|(name, _)| *name)
        .collect();
    if few.is_empty() {
        return Vec::new();
    }
    let needed = if few.len() == 2 { need(0.99) } else { need(0.999) };
    vec![notes.add(format!(
        "{} {} on fewer than {VALUES_ABOVE_PERCENTILE} slower operations: need {needed} \
         operations or more",
        few.join(" and "),
        if few.len() == 1 { "rests" } else { "rest" },
    ))]
}

/// Blocks without a rate, since too few operations were answered in them.
fn few_note(points: &[Point<'_>], place: &str) -> Option<String> {
    let few = points.iter().filter(|p| p.few).count();
    (few > 0).then(|| {
        format!(
            "{place}: in {few} of {} blocks fewer than {ANSWERED_MIN} operations a client were \
             answered, or fewer than {ANSWERED_MIN} of this kind, in less than {} of the clients' \
             time: no rate and no comparison rests on them; measure longer (`--set measure_ms=…`)",
            points.len(),
            show::percent(FREE_SHARE_MIN)
        )
    })
}

/// An operation's counts in all blocks.
fn counted(operation: &Operation<'_>) -> Counts {
    let mut counts = Counts::default();
    for point in &operation.points {
        counts.merge(&point.result.counts);
    }
    counts
}

/// Counts that break no rule and yet should be known; what was `told` of parts of the operation
/// is not repeated for the whole.
fn count_notes(
    phase: &MeasuredPhase<'_>,
    operation: &Operation<'_>,
    (counts, told): (&Counts, &Counts),
    notes: &mut Notes,
) -> Vec<usize> {
    let place = format!("`{}` {}", phase.cell.id, operation.name);
    let mut found = Vec::new();
    let mut note = |of: fn(&Counts) -> u64, what: &str| {
        let (n, all) = (of(counts), counts.total());
        if n > 0 && of(told) == 0 {
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
    note(|c| c.lost, "missed a record that nobody had removed: the layout or its store lost it");
    note(|c| c.lock_broken, "closed a session whose lock was gone or taken over");
    note(|c| c.lock_timeouts, "gave up waiting for the session's lock");
    note(
        |c| c.miss,
        &format!("did not find their {}", validity::things(phase).trim_end_matches('s')),
    );
    note(|c| c.error, &format!("failed: {}", validity::classes(counts)));
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
    let usable: Vec<&Point<'_>> = operation.points.iter().filter(|p| p.usable()).collect();
    let interval_s = usable.first().map_or(0.0, |p| p.phase.interval_ns as f64 / 1e9);
    // Counts by interval are those of the whole phase.
    let with_series = operation.whole && interval_s > 0.0;
    let series = |p: &&Point<'_>| -> Vec<f64> {
        // The last interval is cut short by the end of the phase and would look like a fall.
        let whole = (p.phase.wall_ns / p.phase.interval_ns.max(1)) as usize;
        let counts = p.phase.done_per_interval.iter().take(whole);
        counts.map(|n| *n as f64 / interval_s).collect()
    };
    let hits = |p: &&Point<'_>| -> Vec<Option<f64>> {
        let share = |(reads, missed): &(u64, u64)| {
            (*reads > 0).then(|| (reads - missed) as f64 / *reads as f64)
        };
        p.phase.reads_per_interval.iter().map(share).collect()
    };
    let of_reads = usable.iter().filter(|p| p.result.operation == "read");
    RowCharts {
        time_curve: curve(times),
        lock_wait_curve: curve(lock_wait),
        rate_series: if with_series { usable.iter().map(series).collect() } else { Vec::new() },
        hit_series: of_reads.map(hits).filter(|series| !series.is_empty()).collect(),
        interval_s,
        rate_by_block: usable.iter().map(|p| p.result.rate_per_s).collect(),
        by_block: usable.iter().map(|p| block_point(p, timeout_ns)).collect(),
    }
}

fn block_point(point: &Point<'_>, timeout_ns: u64) -> BlockPoint {
    let OperationResult { service, counts, rate_per_s, .. } = point.result;
    let PhaseResult { wall_ns, own_share, restored, .. } = point.phase;
    let sum = |of: fn(&Restored) -> u64| restored.iter().map(of).sum::<u64>();
    let free_ns = match restored.len() as u64 {
        0 => (*wall_ns as f64 * (1.0 - own_share)) as u64,
        clients => sum(|r| r.free_ns) / clients,
    };
    let times = Times::of(service, counts, timeout_ns);
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
