//! Footnotes on a phase or a cell that are not part of the rules.

use model::{ErrorClass, Fact, Generation, Header, Sample, Workload};

use crate::cache;
use crate::notes::Notes;
use crate::null;
use crate::outages;
use crate::recorded::Recorded;
use crate::series::{MeasuredPoint, is_serverless, restores_cleaned};

/// Records that a clean removed are restored before the next call, so that the next clean finds
/// records to remove.
const RESTORES_CLEANED: &str = "\
    records that a clean removed are saved again before the client's next call, untimed: rates and \
    times are those of the calls, but CPU time contains that work, and so does what other clients \
    waited for";

/// The footnotes common to all rows of a phase.
pub(crate) fn of_phase(
    phase: &MeasuredPoint<'_>,
    recorded: &Recorded,
    notes: &mut Notes,
) -> Vec<usize> {
    let workload = &phase.cell.workload;
    let mut carried = Vec::new();
    if restores_cleaned(workload, phase.planned) {
        carried.push(notes.add(RESTORES_CLEANED));
    }
    if let Workload::AppCache(cache) = workload {
        carried.extend(cache::memory_notes(phase, cache).map(|text| notes.add(text)));
    }
    if workload.generation() == Generation::Inside {
        carried.push(notes.add(format!(
            "profile {}: values are drawn inside the timed span, as the 2019 script did; rates \
             and times contain that work, which is the same for every target",
            workload.profile()
        )));
    }
    carried.extend(disk(phase, recorded).map(|text| notes.add(text)));
    carried.extend(few_cpus(phase, recorded).map(|text| notes.add(text)));
    if is_serverless(phase.products) {
        carried.push(notes.add(
            "without a server process the CPU time of the store's work, also that of the file \
             system, is counted with the generator's",
        ));
    }
    carried.extend(pinning(&recorded.header, notes));
    carried.extend(outages::notes(phase, notes));
    carried.extend(ended_early(phase).map(|text| notes.add(text)));
    carried
}

/// That a phase did not go as planned, with the first reason: it ended early, or the store could
/// not save.
fn ended_early(phase: &MeasuredPoint<'_>) -> Option<String> {
    let ends = phase.trials.iter().filter_map(|(_, point)| point.failure.as_ref());
    let (first, count) = (ends.clone().next()?, ends.count());
    let MeasuredPoint { cell, name, trials, .. } = phase;
    let (id, blocks, class, why) = (&cell.id, trials.len(), first.class, first.reason());
    let what = if first.class == ErrorClass::Full { "not as planned" } else { "ended early" };
    Some(format!("`{id}` {name}: {what} in {count} of {blocks} blocks: {class}: {why}"))
}

/// That the kernel throttled the target's disk, and what went through the throttle in a trial.
fn disk(phase: &MeasuredPoint<'_>, recorded: &Recorded) -> Option<String> {
    let target = recorded.header.plan.target(&phase.cell.target)?;
    let limit = target.disk_limit?;
    let most = |name: &str| {
        let counts = phase.trials.iter().filter_map(|(trial, _)| trial.fact(name));
        counts.fold(0.0, f64::max) as u64
    };
    let bytes = |name| stats::format_bytes(most(name));
    Some(format!(
        "the disk of {} was throttled by the kernel to {limit}, reads and writes each: not a real \
         disk. At most {} in {} reads and {} in {} writes of a trial went through the throttle; \
         what the page cache answers and, with control groups of version 1, what the kernel \
         writes back later does not",
        target.name,
        bytes(Fact::DISK_READ_BYTES),
        most(Fact::DISK_READS),
        bytes(Fact::DISK_WRITTEN_BYTES),
        most(Fact::DISK_WRITES),
    ))
}

/// That servers have more I/O threads than CPUs.
fn few_cpus(phase: &MeasuredPoint<'_>, recorded: &Recorded) -> Option<String> {
    let target = recorded.header.plan.target(&phase.cell.target)?;
    let threads = target.io_threads();
    let servers = target.shards().unwrap_or(1) * (1 + target.replicas());
    let given = phase.cell.workload.server_cpus().map(|cpus| cpus as u32);
    let limits = given.into_iter().chain(target.tier.cpus);
    let cpus = limits.chain(null::server_cpus(&recorded.header)).min()?;
    let s = if cpus == 1 { "" } else { "s" };
    let of = if servers == 1 { String::new() } else { format!(" of each of {servers} servers") };
    (threads > 1 && threads * servers > cpus).then(|| {
        format!(
            "{}: {threads} I/O threads{of} share {cpus} CPU{s}, where they wait for each other by \
             spinning: its figures show this machine, not the server",
            target.name
        )
    })
}

/// Warnings about CPU pinning.
pub(crate) fn pinning(header: &Header, notes: &mut Notes) -> Vec<usize> {
    let facts = header.conditions.facts.iter().filter(|c| c.group == "pinning");
    let warned = facts.filter_map(|fact| Some((fact, fact.warning.as_ref()?)));
    warned
        .map(|(fact, warning)| notes.add(format!("{}: {}; {warning}", fact.name, fact.value)))
        .collect()
}

/// Footnotes on the sampled statistics of a cell's servers.
pub(crate) fn told_by_samples(cell: &str, recorded: &Recorded, notes: &mut Notes) {
    let plans = &recorded.header.plan.cells;
    let workload = plans.iter().find(|own| own.id == cell).map(|own| &own.workload);
    let evicted = recorded.counted(cell, |store| store.evicted);
    if evicted > 0 && !workload.is_some_and(Workload::needs_all_data) {
        notes.add(format!(
            "`{cell}`: the server removed {evicted} keys because its memory was full: its rates \
             have that work in them (a larger limit of its memory avoids it)"
        ));
    }
    let refused = recorded.counted(cell, |store| store.refused);
    if refused > 0 {
        notes.add(format!(
            "`{cell}`: the server refused {refused} connections because it had too many (raise its \
             limit of them)"
        ));
    }
    if workload.and_then(Workload::memory).is_some_and(|memory| memory.swap_bytes > 0) {
        return;
    }
    let swapped = |s: &Sample| s.server.as_ref().map(|server| server.swapped_bytes);
    let samples = recorded.latest(cell).into_iter().flat_map(|trial| recorded.samples_of(trial));
    if let Some(most @ 1..) = samples.filter_map(swapped).max() {
        notes.add(format!(
            "`{cell}`: up to {} of the server's memory were swapped out: it waited for the disk \
             (give it less data, or the machine more memory)",
            stats::format_bytes(most)
        ));
    }
}
