//! Metrics and notes specific to application caches: cost of an operation, hit ratio, store sizes
//! and memory limits.

use model::{AppCache, Counts, Emptied, Fact, Fill, MemoryUse, PageCache, Plan};
use stats::format_bytes;
use std::collections::BTreeMap;

use crate::blocks::over_blocks;
use crate::notes::Notes;
use crate::series::{InBlock, MeasuredPoint, is_serverless};
use crate::view::Value;

/// Notes which targets were filled in bulk and which by single saves.
pub(crate) fn fills(plan: &Plan, notes: &mut Notes) {
    let (mut fast, mut by_saves): (Vec<&str>, Vec<&str>) = Default::default();
    for (cell, cache) in plan.caches() {
        let side = if cache.fill == Fill::Fast { &mut fast } else { &mut by_saves };
        if !side.contains(&cell.target.as_str()) {
            side.push(&cell.target);
        }
    }
    let part = |how: &str, targets: &[&str]| format!("{how}: {}", targets.join(", "));
    let sides = [("many records at once", fast), ("by saves, one at a time", by_saves)];
    let sides = sides.iter().filter(|(_, targets)| !targets.is_empty());
    let sides: Vec<String> = sides.map(|(how, targets)| part(how, targets)).collect();
    if !sides.is_empty() {
        notes.add(format!("filled {}", sides.join("; ")));
    }
}

/// Notes lists, or parts of lists, from files that no client executed.
pub(crate) fn lists(plan: &Plan, notes: &mut Notes) {
    let Some(files) = plan.files() else { return };
    let executing = plan.caches().filter(|(_, cache)| cache.as_original);
    let Some(clients) = executing.map(|(cell, _)| cell.load.clients).min() else { return };
    if clients < files.lists {
        notes.add(format!(
            "of the {} lists in `{}`, {clients} clients executed the first {clients}",
            files.lists, files.directory
        ));
    }
    if files.ops < files.ops_of_longest {
        notes.add(format!(
            "the lists in `{}` have {} to {} operations; only the first {} of each were executed, \
             so that all clients did the same number",
            files.directory, files.ops, files.ops_of_longest, files.ops
        ));
    }
}

/// Adds the metrics as geometric means over blocks, like rates; omits those that are 0 everywhere.
pub(crate) fn metrics(points: &[InBlock<'_>], seed: u64, metrics: &mut BTreeMap<String, Value>) {
    let mut each = |name: &str, of: fn(&Counts) -> (u64, u64)| {
        let shares = points.iter().map(|p| of(&p.result.counts)).filter(|(_, of)| *of > 0);
        let value = over_blocks(shares.map(|(part, all)| part as f64 / all as f64), seed);
        metrics.extend(value.map(|(value, _)| (name.to_string(), value)));
    };
    each("round_trips_per_op", |c| (c.round_trips, c.total()));
    each("commands_per_op", |c| (c.commands, c.total()));
    each("files_per_op", |c| (c.files, c.total()));
    if points.iter().all(|p| p.result.operation == "read") {
        each("hit_ratio", |c| (c.ok, c.ok + c.miss));
    }
    let wholes = points.iter().filter(|p| p.result.operation == p.point.phase);
    let stale: Vec<f64> = wholes.filter_map(|p| p.trial.fact(Fact::STALE_MEMBERS)).collect();
    if !stale.is_empty() {
        let none = Value::alone(0.0);
        let some = over_blocks(stale.into_iter(), seed).map(|(value, _)| value);
        metrics.insert("stale_members".into(), some.unwrap_or(none));
    }
    for name in [Fact::STORE_BYTES, Fact::SERVER_MEMORY_BYTES] {
        let sizes = points.iter().filter(|p| p.result.operation == p.point.phase);
        let value = over_blocks(sizes.filter_map(|p| p.trial.fact(name)), seed);
        metrics.extend(value.map(|(value, _)| (name.to_string(), value)));
    }
}

/// Notes on how the page cache was emptied and how much of a memory limit was used.
pub(crate) fn memory_notes(
    phase: &MeasuredPoint<'_>,
    workload: &AppCache,
) -> impl Iterator<Item = String> {
    let cold = (workload.page_cache == PageCache::Cold).then(|| cold_note(phase, workload));
    let limited = workload.memory.map(|memory| limit_note(phase, memory.limit_bytes));
    [cold, limited].into_iter().flatten()
}

fn cold_note(phase: &MeasuredPoint<'_>, workload: &AppCache) -> String {
    let done = |how: Emptied| phase.trials.iter().any(|(t, _)| t.emptied == Some(how));
    let how = match (done(Emptied::Machine), done(Emptied::Files)) {
        (true, false) => "the page cache of the machine was emptied, with names and inodes",
        (false, true) => {
            "the data of the target's files were removed from the page cache; names and inodes \
             stayed, because only root can empty all of it"
        }
        (true, true) => {
            "the page cache was emptied, in some trials with names and inodes and in others without"
        }
        (false, false) => "the record does not state how the page cache was emptied",
    };
    format!(
        "profile {}: before each phase {how}; there was no warm-up, so rates are those of a cache \
         being filled; data in the servers' own memory stayed there",
        workload.profile
    )
}

fn limit_note(phase: &MeasuredPoint<'_>, limit_bytes: u64) -> String {
    let used: Vec<MemoryUse> = phase.trials.iter().filter_map(|(t, _)| t.memory).collect();
    let most = |of: fn(&MemoryUse) -> Option<u64>| match used.iter().filter_map(of).max() {
        Some(bytes) => format_bytes(bytes),
        None => "an unknown size".into(),
    };
    let kills: u64 = used.iter().map(|m| m.oom_kills).sum();
    let killed = match kills {
        0 => String::new(),
        n => format!("; the kernel killed {n} of its processes because memory ran out"),
    };
    let who = match (is_serverless(phase.products), phase.has_files()) {
        (true, _) => "clients and page cache",
        (false, true) => "servers, clients and page cache",
        (false, false) => "servers",
    };
    format!(
        "`{}`: {who} were limited to {} of memory from before the fill, without swap; they used at \
         most {}, of which up to {} was page cache at the end{killed}; a page is charged to the \
         process that touched it first, so pages that other processes had already loaded, such as \
         code of programs and libraries, count in a server's resident memory but not here",
        phase.cell.id,
        format_bytes(limit_bytes),
        most(|m| m.peak_bytes),
        most(|m| Some(m.page_cache_bytes)),
    )
}
