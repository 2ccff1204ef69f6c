//! The rules of what was measured. Each is written once, and applied to every phase of every cell,
//! whether its load was steady, a ladder or a search.

use model::{Counts, Point, Sample, StoreCounters, Trial, Workload};

use crate::measurement::{Measurement, measurements};
use crate::notes::Notes;
use crate::ramp::Ramp;
use crate::recorded::Recorded;
use crate::rules::{ERROR_SHARE_MAX, MISS_SHARE_MAX, WRONG_MAX};
use crate::show;
use crate::taken;
use crate::validity::{Findings, classes, things};

/// What a server that counts lifetimes in whole seconds may take off one.
const SECOND_NS: u64 = 1_000_000_000;

/// Applies every rule to everything that was measured.
pub(crate) fn check(
    recorded: &Recorded,
    ramps: &[Ramp<'_>],
    findings: &mut Findings,
    notes: &mut Notes,
) {
    let all = measurements(recorded, ramps);
    for cell in &recorded.header.plan.cells {
        told_by_samples(&cell.id, recorded, notes);
    }
    for measurement in &all {
        wrong(measurement, findings);
        missing(measurement, recorded, findings);
        failed(measurement, recorded, findings);
    }
    taken::check(&all, findings);
}

/// Wrong values, in the warm-up as well.
fn wrong(measurement: &Measurement<'_>, findings: &mut Findings) {
    let mut judge = |what: String, counts: &Counts| {
        if counts.wrong > WRONG_MAX {
            let plural = if counts.wrong == 1 { "" } else { "s" };
            findings.invalid.push(format!(
                "{what}: {} wrong value{plural} in {} operations (of another length or content \
                 than was written)",
                counts.wrong,
                counts.total()
            ));
        }
    };
    for (name, counts) in measurement.operations(|_| true) {
        judge(format!("`{}` {name}", measurement.cell.id), &counts);
    }
    let mut warmup = Counts::default();
    measurement.points.iter().for_each(|(_, point)| warmup.merge(&point.warmup));
    judge(format!("{}, warm-up", measurement.label()), &warmup);
}

/// What should exist and was not found.
fn missing(measurement: &Measurement<'_>, recorded: &Recorded, findings: &mut Findings) {
    // Controls of a pair's order are doubted where they find nothing.
    if measurement.planned.is_some_and(|planned| planned.control.is_some()) {
        return;
    }
    let workload = &measurement.cell.workload;
    let excused = match workload {
        Workload::Kv(kv) if kv.follows => match excused_pairs(measurement, recorded) {
            Some(excused) => excused,
            None => return,
        },
        _ => 0,
    };
    for (name, counts) in measurement.operations(|_| true) {
        let missing = match workload {
            // Where nobody writes, nothing may vanish; beside writes and cleans some layouts lose
            // records by their own races, which is a footnote.
            Workload::AppCache(_) if measurement.only_reads() => counts.lost,
            Workload::AppCache(_) => 0,
            Workload::Kv(kv) if kv.follows => counts.miss.saturating_sub(excused),
            other if other.misses_are_planned() => 0,
            _ => counts.miss,
        };
        let share = missing as f64 / counts.total().max(1) as f64;
        if share > MISS_SHARE_MAX {
            findings.invalid.push(format!(
                "`{}` {name}: {missing} of {} {} that should exist were not found ({}; at most {} \
                 may be missing){}",
                measurement.cell.id,
                counts.total(),
                things(workload),
                show::percent(share),
                show::percent(MISS_SHARE_MAX),
                expired(measurement)
            ));
        }
    }
}

/// Misses that evictions explain where a read follows the write of its own key, once that is
/// acknowledged; `None` where a lifetime may be over by then.
fn excused_pairs(measurement: &Measurement<'_>, recorded: &Recorded) -> Option<u64> {
    let slowest_ns = |(_, point): &(&Trial, &Point)| {
        let parts = point.operations.iter().filter(|o| o.operation != point.phase);
        parts.map(|o| o.service.max_ns()).sum::<u64>()
    };
    let slowest_ns = measurement.points.iter().map(slowest_ns).max().unwrap_or(0);
    let lifetime_ns = measurement.cell.workload.ttl_s().saturating_mul(SECOND_NS);
    if lifetime_ns > 0 && slowest_ns + SECOND_NS >= lifetime_ns {
        return None;
    }
    Some(counted(&measurement.cell.id, recorded, |store| store.evicted))
}

/// Names the lifetime of sessions as the cause where a trial outlived it.
fn expired(measurement: &Measurement<'_>) -> String {
    let workload = &measurement.cell.workload;
    let ttl_s = workload.ttl_s();
    let longest_ns = measurement.points.iter().map(|(t, _)| t.took_ns).max().unwrap_or(0);
    if ttl_s == 0 || u128::from(ttl_s) * 1_000_000_000 >= u128::from(longest_ns) {
        return String::new();
    }
    format!(
        ": they expired, since {} live {ttl_s} s and a trial took {} s; raise `ttl_s`",
        things(workload),
        longest_ns / 1_000_000_000
    )
}

/// Failures, where all that was offered had to be served: beyond its knee or the limits of a search
/// a store may fail, and by failures both are known.
fn failed(measurement: &Measurement<'_>, recorded: &Recorded, findings: &mut Findings) {
    let is_search = recorded.header.plan.search.is_some();
    if is_search || measurement.cell.load.is_ladder() {
        return;
    }
    for (name, counts) in measurement.operations(|trial| trial.failure.is_none()) {
        let share = counts.error as f64 / counts.total().max(1) as f64;
        if share > ERROR_SHARE_MAX {
            findings.invalid.push(format!(
                "`{}` {name}: {} of {} operations failed ({}; at most {} may): {}",
                measurement.cell.id,
                counts.error,
                counts.total(),
                show::percent(share),
                show::percent(ERROR_SHARE_MAX),
                classes(&counts)
            ));
        }
    }
}

/// Footnotes on what a cell's servers said of themselves while they were sampled.
fn told_by_samples(cell: &str, recorded: &Recorded, notes: &mut Notes) {
    let evicted = counted(cell, recorded, |store| store.evicted);
    if evicted > 0 {
        notes.add(format!(
            "`{cell}`: the server removed {evicted} keys because its memory was full: its rates \
             have that work in them (a larger limit of its memory avoids it)"
        ));
    }
    let refused = counted(cell, recorded, |store| store.refused);
    if refused > 0 {
        notes.add(format!(
            "`{cell}`: the server refused {refused} connections because it had too many (raise its \
             limit of them)"
        ));
    }
    let swapped = |s: &Sample| s.server.as_ref().map(|server| server.swapped_bytes);
    let most = samples(cell, recorded).flatten().filter_map(swapped).max();
    if let Some(most @ 1..) = most {
        notes.add(format!(
            "`{cell}`: up to {} of the server's memory were swapped out: it waited for the disk \
             (give it less data, or the machine more memory)",
            stats::format_bytes(most)
        ));
    }
}

/// What was sampled in each trial of a cell.
fn samples<'a>(cell: &str, recorded: &'a Recorded) -> impl Iterator<Item = &'a [Sample]> {
    recorded.latest(cell).into_iter().map(|trial| recorded.samples_of(trial))
}

/// By how much what a cell's servers count grew while they were sampled, in all trials.
fn counted(cell: &str, recorded: &Recorded, read: fn(&StoreCounters) -> Option<u64>) -> u64 {
    let grown = |samples: &[Sample]| {
        let mut told = samples.iter().filter_map(|s| read(s.store.as_ref()?));
        let first = told.next()?;
        Some(told.next_back()?.saturating_sub(first))
    };
    samples(cell, recorded).filter_map(grown).sum()
}
