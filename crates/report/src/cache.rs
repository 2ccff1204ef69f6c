//! What only rows of an application cache have: effort of an operation, hits, and sizes of stores.

use model::{Counts, Fill, Filled, Plan, Workload};
use std::collections::BTreeMap;

use crate::notes::Notes;
use crate::rows::over_blocks;
use crate::series::Point;
use crate::view::Value;

/// Says of a run with fast fills which targets had one.
pub(crate) fn fills(plan: &Plan, notes: &mut Notes) {
    let (mut fast, mut by_saves): (Vec<&str>, Vec<&str>) = Default::default();
    for cell in &plan.cells {
        let Workload::AppCache(cache) = &cell.workload else { return };
        let side = if cache.fill == Fill::Fast { &mut fast } else { &mut by_saves };
        if !side.contains(&cell.target.as_str()) {
            side.push(&cell.target);
        }
    }
    if fast.is_empty() {
        return;
    }
    let saving = match by_saves.as_slice() {
        [] => String::new(),
        targets => format!("; by saves, one at a time: {}", targets.join(", ")),
    };
    notes.add(format!("filled many records at once: {}{saving}", fast.join(", ")));
}

/// Adds the metrics: geometric means over blocks like rates; what is 0 everywhere is left out.
pub(crate) fn metrics(points: &[Point<'_>], seed: u64, metrics: &mut BTreeMap<String, Value>) {
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
    let mut sizes = |name: &str, of: fn(&Filled) -> u64| {
        let sizes = points.iter().filter(|p| p.result.operation == p.phase.phase);
        let sizes = sizes.filter_map(|p| p.filled.map(|filled| of(&filled) as f64));
        let value = over_blocks(sizes, seed);
        metrics.extend(value.map(|(value, _)| (name.to_string(), value)));
    };
    sizes("store_bytes", |f| f.store_bytes);
    sizes("server_memory_bytes", |f| f.server_memory_bytes);
}
