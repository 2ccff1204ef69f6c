//! Rules on the results of operations: complete and correct.

use model::{Cell, Counts, ErrorClass, Point, StoreCounters, Trial, Workload};

use crate::fault_facts::has_fault;
use crate::findings::Findings;
use crate::hits;
use crate::limits::{ERROR_SHARE_MAX, LENGTH_SHARE_MIN, MISS_SHARE_MAX, SILENCE_MIN, WRONG_MAX};
use crate::measurement::{Counted, Measurement, Part};
use crate::recorded::Recorded;
use crate::show;

/// A server that counts TTLs in whole seconds may expire a key this much early.
const SECOND_NS: u64 = 1_000_000_000;

/// Wrong values at every point, including the warm-up.
pub(super) fn wrong(measurement: &Measurement<'_>, operation: &Counted, findings: &mut Findings) {
    let Counts { wrong, .. } = operation.all;
    if wrong > WRONG_MAX {
        let plural = if wrong == 1 { "" } else { "s" };
        findings.invalid.push(format!(
            "`{}` {}: {wrong} wrong value{plural} in {} operations (different in length or content \
             than was written)",
            measurement.cell.id,
            operation.name,
            operation.all.total()
        ));
    }
}

/// Missing records at every point used in a figure. A miss is faster than a hit, so misses would
/// also make the result of a search too high.
pub(super) fn missing(measurement: &Measurement<'_>, operation: &Counted, findings: &mut Findings) {
    let is_control = |at: &(&Trial, &Point)| measurement.part(at) == Part::Control;
    if operation.is_warmup || measurement.points.iter().any(is_control) {
        return;
    }
    let (workload, counts) = (&measurement.cell.workload, &operation.all);
    let missing = match workload {
        // Without writes no record may vanish. With writes and cleans, some layouts lose records
        // by their own races, which is only a footnote.
        Workload::AppCache(_) if measurement.only_reads() => counts.lost,
        Workload::AppCache(_) => 0,
        // The cache may miss, the database may not.
        Workload::CacheAside(_) if operation.name.rsplit_once('.').is_some_and(is_get) => 0,
        Workload::CacheAside(_) => counts.miss,
        Workload::Kv(kv) if kv.follows => match excused_pairs(measurement) {
            Some(excused) => counts.miss.saturating_sub(excused),
            None => return,
        },
        other if other.misses_are_planned() => 0,
        // What a fault destroys is a result.
        _ if has_fault(measurement.cell) => 0,
        _ if measurement.recorded.header.plan.drops_keys(measurement.cell) => 0,
        _ => counts.miss,
    };
    let share = missing as f64 / counts.total().max(1) as f64;
    if share > MISS_SHARE_MAX {
        findings.invalid.push(format!(
            "`{}` {}: {missing} of {} {} that should exist were not found ({}; at most {} may be \
             missing){}",
            measurement.cell.id,
            operation.name,
            counts.total(),
            show::things(workload),
            show::percent(share),
            show::percent(MISS_SHARE_MAX),
            expired(measurement)
        ));
    }
}

/// True for an operation's call that asks a cache, given as phase and call.
fn is_get((_, call): (&str, &str)) -> bool {
    call == "get"
}

/// Evicted keys in a run that measures a certain amount of data.
pub(super) fn evicted(recorded: &Recorded, cell: &Cell, _: &[&Trial], findings: &mut Findings) {
    let evicted = recorded.counted(&cell.id, |store| store.evicted);
    let is_planned = recorded.header.plan.drops_keys(cell);
    if evicted > 0 && cell.workload.needs_all_data() && !is_planned {
        findings.invalid.push(format!(
            "`{}`: the store evicted {} keys, so it contained less data than planned{}",
            cell.id,
            show::commas(evicted),
            room(recorded, &cell.target)
        ));
    }
}

/// Misses that evictions explain if a read follows the acknowledged write of its own key; `None` if
/// the key may have expired by then.
fn excused_pairs(measurement: &Measurement<'_>) -> Option<u64> {
    let slowest_ns = |(_, point): &(&Trial, &Point)| {
        let parts = point.operations.iter().filter(|o| o.operation != point.phase);
        parts.map(|o| o.service.max_ns()).sum::<u64>()
    };
    let slowest_ns = measurement.points.iter().map(slowest_ns).max().unwrap_or(0);
    let lifetime_ns = measurement.cell.workload.ttl_s().saturating_mul(SECOND_NS);
    if lifetime_ns > 0 && slowest_ns + SECOND_NS >= lifetime_ns {
        return None;
    }
    let evicted = |store: &StoreCounters| store.evicted;
    Some(measurement.recorded.counted(&measurement.cell.id, evicted))
}

/// Explains misses by expiry if a trial took longer than the TTL of sessions.
fn expired(measurement: &Measurement<'_>) -> String {
    let workload = &measurement.cell.workload;
    let ttl_s = workload.ttl_s();
    let longest_ns = measurement.points.iter().map(|(t, _)| t.took_ns).max().unwrap_or(0);
    if ttl_s == 0 || u128::from(ttl_s) * 1_000_000_000 >= u128::from(longest_ns) {
        return String::new();
    }
    let collects = matches!(workload, Workload::Sessions(sessions) if sessions.gc.is_some());
    let key = if collects { "gc_maxlifetime_s" } else { "ttl_s" };
    format!(
        ": they expired, since {} live {ttl_s} s and a trial took {} s; raise `{key}`",
        show::things(workload),
        longest_ns / 1_000_000_000
    )
}

/// Failures at points that must hold. Beyond the knee or the limits of a search failures are
/// expected; control phases handle failures themselves.
pub(super) fn failed(measurement: &Measurement<'_>, operation: &Counted, findings: &mut Findings) {
    let counts = &operation.held;
    let errors = counts.error - hits::refused(&measurement.cell.workload, counts);
    let share = errors as f64 / counts.total().max(1) as f64;
    if share > ERROR_SHARE_MAX {
        let is_full = counts.errors_by_class.contains_key(&ErrorClass::Full);
        let cure = is_full.then(|| room(measurement.recorded, &measurement.cell.target));
        findings.invalid.push(format!(
            "`{}` {}: {} of {} operations failed ({}; at most {} is allowed): {}{}",
            measurement.cell.id,
            operation.name,
            errors,
            counts.total(),
            show::percent(share),
            show::percent(ERROR_SHARE_MAX),
            show::classes(counts),
            cure.unwrap_or_default()
        ));
    }
}

/// Hint for a target that ran out of memory or disk.
pub(super) fn room(recorded: &Recorded, name: &str) -> String {
    let target = recorded.header.plan.target(name);
    let limit = target.and_then(|target| target.settings.keys().find(|k| k.ends_with("maxmemory")));
    match limit {
        Some(limit) => format!("; to give it more memory: --set {name}.{limit}"),
        None => "; give it more memory or disk, or write less".into(),
    }
}

/// Points that ended before their planned time: if one of several servers is gone, every client
/// waits for it and nothing is answered. Not judged if unanswered requests already count against
/// the point (see [`Measurement::planned_ns`]), or if the point has a failure.
pub(super) fn cut_short(measurement: &Measurement<'_>, findings: &mut Findings) {
    let whole = measurement.points.iter();
    let whole = whole.filter(|(trial, point)| trial.failure.is_none() && point.failure.is_none());
    let silent = |at: &(&Trial, &Point)| {
        let (point, planned_ns) = (at.1, measurement.planned_ns(*at)?);
        let operations = point.whole().map_or(0, |whole| whole.counts.total());
        // With few operations, the last one may end long before the end of the phase.
        let usual_ns = point.length_ns / operations.max(1);
        let silent_ns = planned_ns.saturating_sub(point.length_ns);
        let is_told = operations > 0 && silent_ns > usual_ns.saturating_mul(SILENCE_MIN);
        is_told.then_some((silent_ns, planned_ns))
    };
    let Some((silent_ns, planned_ns)) = whole.filter_map(silent).max() else { return };
    if silent_ns as f64 / planned_ns.max(1) as f64 > 1.0 - LENGTH_SHARE_MIN {
        findings.invalid.push(format!(
            "{}: nothing was answered in the last {} of {} (at most {} is allowed): check the \
             state of the server",
            measurement.label(),
            show::ns(silent_ns as f64),
            show::ns(planned_ns as f64),
            show::percent(1.0 - LENGTH_SHARE_MIN)
        ));
    }
}
