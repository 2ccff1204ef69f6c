//! Numbers about faults that the plan caused: how long clients had no answers, and what was lost.

use model::{
    Cell, ErrorClass, EventKind, OperationResult, Point, Series, Silence, Trial, TrialEvent,
};
use stats::BackWithin;

use crate::trial_number::TrialNumber;

/// Suffix of the name of a time for which an operation was unavailable.
pub(crate) const UNAVAILABLE: &str = ".unavailable_ns";
/// Acknowledged writes that were lost, and how many keys were checked for that.
pub(crate) const LOST: &str = "writes_lost";
pub(crate) const READ_BACK: &str = "writes_read_back";
/// Writes without an answer.
pub(crate) const UNKNOWN: &str = "writes_unknown";
/// Time from the fault until the 99th percentile was within the limit again.
pub(crate) const P99_BACK: &str = "p99_back_ns";
/// Percentiles before the fault and of the worst interval after it.
const P99_BEFORE: &str = "p99_before_fault_ns";
const P99_WORST: &str = "p99_worst_ns";
/// Longest outage of one server.
const OUTAGE: &str = "outage_ns";
/// Time from the restoration of a server until it had all data.
const RESYNC: &str = "resync_ns";
/// Time for which two servers had the role of primary.
pub(crate) const TWO_PRIMARIES: &str = "two_primaries_ns";
/// What a state is called that lasts until the measurement ends.
pub(crate) const UNTIL_END: &str = "until the end";

/// The fault within a phase, if there was one: nanoseconds since the start of the trial.
pub(crate) fn fault_in(trial: &Trial, series: &Series) -> Option<u64> {
    let within = trial.events.iter().filter(|event| series.covers(event.at_ns));
    let faults = within.filter(|event| event.kind.is_fault());
    faults.map(|event| event.at_ns).min()
}

/// When the 99th percentile of a phase was within the limit after the fault; `None` without a
/// fault, or without percentiles on both sides of it.
pub(crate) fn back_within(trial: &Trial, series: &Series, limit_ns: u64) -> Option<BackWithin> {
    let at_ns = fault_in(trial, series)? - series.begun_ns;
    stats::back_within(&series.p99, limit_ns, at_ns)
}

/// Numbers of a phase with a fault; empty without one.
pub(crate) fn of_phase(
    trial: &Trial,
    (point, series): (&Point, &Series),
    limit_ns: Option<u64>,
) -> Vec<TrialNumber> {
    let Some(fault_ns) = fault_in(trial, series) else { return Vec::new() };
    let at_ns = fault_ns - series.begun_ns;
    let mut all = silent(point, at_ns);
    let own = trial.outages.iter().filter(|outage| outage.phase == point.phase);
    let longest = own.map(|outage| outage.length_ns).max();
    all.extend(longest.map(|ns| TrialNumber::by_clients(OUTAGE.into(), Some(ns as f64))));
    all.extend(percentiles(series, at_ns));
    let back = limit_ns.and_then(|limit_ns| back_within(trial, series, limit_ns));
    all.extend(
        back.map(|back| {
            TrialNumber::by_clients(P99_BACK.into(), back.after_ns.map(|ns| ns as f64))
        }),
    );
    all.extend(resync(trial).map(|ns| TrialNumber::by_clients(RESYNC.into(), Some(ns as f64))));
    all.extend(two_primaries(trial));
    all
}

/// The longest time for which each operation went unanswered after a fault, `fault_ns` after the
/// start of the point.
fn silent(point: &Point, fault_ns: u64) -> Vec<TrialNumber> {
    let names = point.operations.iter().map(|o| &o.operation).filter(|o| **o != point.phase);
    let longest = |name: &String| {
        let is_after = |s: &Silence| s.begun_ns + s.length_ns > fault_ns;
        let own = point.silences.iter().filter(|s| s.operation == *name && is_after(s));
        let longest_ns = own.map(|silence: &Silence| silence.length_ns).max().unwrap_or(0);
        TrialNumber::by_clients(format!("{name}{UNAVAILABLE}"), Some(longest_ns as f64))
    };
    names.map(longest).collect()
}

/// The 99th percentile before the fault, and at its worst after it.
fn percentiles(series: &Series, fault_ns: u64) -> Vec<TrialNumber> {
    let split = series.p99.partition_point(|(until_ns, _)| *until_ns <= fault_ns);
    let (before, after) = series.p99.split_at(split);
    let mut before: Vec<u64> = before.iter().map(|(_, ns)| *ns).collect();
    before.sort_unstable();
    let median = before.get(before.len() / 2).copied();
    let worst = after.iter().map(|(_, ns)| *ns).max();
    let known = [(P99_BEFORE, median), (P99_WORST, worst)];
    let number = |(name, ns): (&str, Option<u64>)| {
        Some(TrialNumber::by_clients(name.into(), Some(ns? as f64)))
    };
    known.into_iter().filter_map(number).collect()
}

/// Time from the restoration of a server until it was a replica in sync.
fn resync(trial: &Trial) -> Option<u64> {
    let of = |kind| move |event: &&TrialEvent| event.kind == kind;
    let restored = trial.events.iter().find(of(EventKind::Restored))?;
    let attached = trial.events.iter().filter(of(EventKind::ReplicaAttached));
    let attached = attached
        .filter(|event| event.subject == restored.subject && event.at_ns > restored.at_ns)
        .map(|event| event.at_ns)
        .min()?;
    Some(attached - restored.at_ns)
}

/// Time from the promotion of another server, or from the moment at which the old primary goes on
/// if it hangs then, until the old primary became a replica. `None` if the old primary cannot have
/// served meanwhile.
fn two_primaries(trial: &Trial) -> Option<TrialNumber> {
    let lives = [EventKind::Hung, EventKind::Partitioned, EventKind::FailoverRequested];
    let fault = trial.events.iter().find(|event| lives.contains(&event.kind))?;
    let after = trial.events.iter().filter(|event| event.at_ns >= fault.at_ns);
    let first = |kind: EventKind, is_own: bool| {
        let mut own = after.clone().filter(move |event| event.kind == kind);
        own.find(|event| (event.subject == fault.subject) == is_own).map(|event| event.at_ns)
    };
    let promoted = first(EventKind::Promoted, false)?;
    let goes_on = match fault.kind {
        EventKind::Hung => first(EventKind::Restored, true)?,
        _ => 0,
    };
    let demoted = first(EventKind::Demoted, true);
    let both_ns = demoted.map(|at_ns| at_ns.saturating_sub(promoted.max(goes_on)));
    Some(TrialNumber::by_servers(TWO_PRIMARIES.into(), both_ns.map(|ns| ns as f64)))
}

/// What became of the writes of a trial with a fault; empty without one.
pub(crate) fn writes(trial: &Trial) -> Vec<TrialNumber> {
    if !trial.events.iter().any(|event| event.kind.is_fault()) {
        return Vec::new();
    }
    let mut all = vec![TrialNumber::by_clients(UNKNOWN.into(), Some(unknown(trial) as f64))];
    // Only writes that were read back count, and only if no later write that was kept hides their
    // loss; of all others it is unknown whether they survived.
    let read_back = trial.read_back.as_ref();
    let read_back = read_back.filter(|read| read.unread.is_none() && read.checked() > 0);
    if let Some(read_back) = read_back {
        let counts = [(READ_BACK, read_back.checked()), (LOST, read_back.lost())];
        all.extend(
            counts.map(|(name, count)| TrialNumber::by_clients(name.into(), Some(count as f64))),
        );
    }
    all
}

/// Writes that were sent and not answered: the store may have kept them.
fn unknown(trial: &Trial) -> u64 {
    let operations = trial.points.iter().flat_map(|point| &point.operations);
    let writes = operations.filter(|o| o.operation == "set");
    let of = |o: &OperationResult| {
        let classes = [ErrorClass::Closed, ErrorClass::Timeout];
        classes.iter().filter_map(|class| o.counts.errors_by_class.get(class)).sum::<u64>()
    };
    writes.map(of).sum()
}

/// True if the plan of a cell causes a fault.
pub(crate) fn has_fault(cell: &Cell) -> bool {
    cell.workload.actions().iter().any(|action| action.what.interrupts_service())
}
