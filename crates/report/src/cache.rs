//! What only rows of an application cache have: effort of an operation, hits, sizes of stores, and
//! what was allowed to be in memory.

use model::{AppCache, Counts, Emptied, Fact, Fill, MemoryUse, PageCache, Plan};
use stats::format_bytes;
use std::collections::BTreeMap;

use crate::blocks::over_blocks;
use crate::notes::Notes;
use crate::series::{InBlock, MeasuredPoint, is_serverless};
use crate::view::Value;

/// Says which targets were filled fast, and which by saves.
pub(crate) fn fills(plan: &Plan, notes: &mut Notes) {
    let (mut fast, mut by_saves): (Vec<&str>, Vec<&str>) = Default::default();
    for (cell, cache) in plan.caches() {
        let side = if cache.fill == Fill::Fast { &mut fast } else { &mut by_saves };
        if !side.contains(&cell.target.as_str()) {
            side.push(&cell.target);
        }
    }
    let told = |how: &str, targets: &[&str]| format!("{how}: {}", targets.join(", "));
    let sides = [("many records at once", fast), ("by saves, one at a time", by_saves)];
    let sides = sides.iter().filter(|(_, targets)| !targets.is_empty());
    let sides: Vec<String> = sides.map(|(how, targets)| told(how, targets)).collect();
    if !sides.is_empty() {
        notes.add(format!("filled {}", sides.join("; ")));
    }
}

/// Says what of the lists that were read from files no client followed.
pub(crate) fn lists(plan: &Plan, notes: &mut Notes) {
    let Some(files) = plan.files() else { return };
    let following = plan.caches().filter(|(_, cache)| cache.as_original);
    let Some(clients) = following.map(|(cell, _)| cell.load.clients).min() else { return };
    if clients < files.lists {
        notes.add(format!(
            "of the {} lists in `{}`, {clients} clients followed the first {clients}",
            files.lists, files.directory
        ));
    }
    if files.ops < files.ops_of_longest {
        notes.add(format!(
            "the lists in `{}` have {} to {} operations; of each the first {} were followed, so \
             that all clients did as many",
            files.directory, files.ops, files.ops_of_longest, files.ops
        ));
    }
}

/// Adds the metrics: geometric means over blocks like rates; what is 0 everywhere is left out.
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

/// What was done to the page cache, and what was taken of a memory limit.
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
            "the data of the target's files were taken out of the page cache; names and inodes \
             stayed there, since only root may empty all of it"
        }
        (true, true) => {
            "the page cache was emptied, in some trials with names and inodes and in others without"
        }
        (false, false) => "the record does not tell how the page cache was emptied",
    };
    format!(
        "profile {}: before each phase {how}; nothing was warmed up, so a rate is that of a cache \
         that fills; what servers keep in their own memory stayed there",
        workload.profile
    )
}

fn limit_note(phase: &MeasuredPoint<'_>, limit_bytes: u64) -> String {
    let taken: Vec<MemoryUse> = phase.trials.iter().filter_map(|(t, _)| t.memory).collect();
    let most = |of: fn(&MemoryUse) -> Option<u64>| match taken.iter().filter_map(of).max() {
        Some(bytes) => format_bytes(bytes),
        None => "an unknown size".into(),
    };
    let kills: u64 = taken.iter().map(|m| m.oom_kills).sum();
    let killed = match kills {
        0 => String::new(),
        n => format!("; the kernel killed {n} of its processes for want of memory"),
    };
    let who = match (is_serverless(phase.products), phase.has_files()) {
        (true, _) => "clients and page cache",
        (false, true) => "servers, clients and page cache",
        (false, false) => "servers",
    };
    format!(
        "`{}`: {who} had at most {} of memory, from before the fill on, and no swap; they took {} \
         at most, and {} of it was page cache at the end{killed}; pages count for whom touched \
         them first, so what others had in memory before, as the code of programs and libraries, \
         is part of a server's resident memory but not of this",
        phase.cell.id,
        format_bytes(limit_bytes),
        most(|m| m.peak_bytes),
        most(|m| Some(m.page_cache_bytes)),
    )
}
