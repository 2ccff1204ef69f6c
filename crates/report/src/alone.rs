//! Result of the only target measured at a profile and load, which has nothing to compare with.

use model::{Counts, Load, Plan};
use stats::compare::FEWEST_BLOCKS;

use crate::facts;
use crate::show::{self, commas};
use crate::standings::is_part;
use crate::view::{FactView, Row};

/// The only target measured at a profile and load; controls do not count.
#[derive(Debug)]
pub(crate) struct SoleTarget {
    /// Profile of the study.
    pub(crate) workload: String,
    /// Load of its cell.
    pub(crate) load: Load,
    /// Name of the target.
    pub(crate) target: String,
    /// Its result in one sentence that starts with its name and has no full stop.
    pub(crate) sentence: String,
}

/// A sentence for each profile and load at which only one target, not counting controls, has a
/// rate.
pub(crate) fn alone(plan: &Plan, cells: &[Row], facts: &[FactView]) -> Vec<SoleTarget> {
    let is_control = |row: &Row| {
        plan.targets.iter().any(|target| target.name == row.target && target.control_of.is_some())
    };
    let mut places: Vec<Vec<&Row>> = Vec::new();
    for row in cells.iter().filter(|row| row.metrics.contains_key("rate_per_s")) {
        if row.blocks == 0 || is_control(row) {
            continue;
        }
        match places.iter_mut().find(|rows| same_place(rows[0], row)) {
            Some(rows) => rows.push(row),
            None => places.push(vec![row]),
        }
    }
    places.retain(|rows| rows.iter().all(|row| row.target == rows[0].target));
    places.iter().map(|rows| view(rows, facts)).collect()
}

fn same_place(a: &Row, b: &Row) -> bool {
    a.workload == b.workload && a.load == b.load
}

/// Summary of rows that all have the same target. Parts of a phase appear only in the tables.
fn view(rows: &[&Row], facts: &[FactView]) -> SoleTarget {
    let whole = rows.iter().filter(|row| !is_part(&row.operation));
    let whole: Vec<&Row> = whole.copied().collect();
    let shown = if whole.is_empty() { rows.to_vec() } else { whole };
    let Row { workload, load, target, .. } = shown[0];
    let own =
        facts.iter().filter(|f| (&f.target, &f.workload, &f.load) == (target, workload, load));
    let asked = own.filter(|fact| facts::is_requested(&fact.name));
    let mut clauses: Vec<String> =
        asked.map(|fact| format!("{}: {}", fact.label, fact.shown)).collect();
    let joint = if clauses.is_empty() { " " } else { ": " };
    clauses.extend([rates(&shown), endings(&shown)]);
    SoleTarget {
        workload: workload.clone(),
        load: load.clone(),
        target: target.clone(),
        sentence: format!("{target}{joint}{}", clauses.join("; ")),
    }
}

/// `reached 12.3 k/s [11.9, 12.8] at write (p99 1.20 ms) and … over 3 blocks`.
fn rates(rows: &[&Row]) -> String {
    let load = &rows[0].load;
    let one = |row: &&Row| {
        let rate = row.metrics.get("rate_per_s").map_or_else(String::new, show::rate_value);
        let of = of_requested(load);
        let at = if rows.len() > 1 { format!(" at {}", row.operation) } else { String::new() };
        let p99 = row.metrics.get(&format!("{}_ns_p99", load.times()));
        let p99 = p99.map_or_else(String::new, |time| format!(" (p99 {})", show::time(time)));
        format!("{rate}{of}{at}{p99}")
    };
    let verb = if load.is_planned() { "answered" } else { "reached" };
    let blocks = rows.iter().map(|row| row.blocks).min().unwrap_or(0);
    let over = match blocks {
        1 => " in one block, too few for an interval".into(),
        few if (few as usize) < FEWEST_BLOCKS => {
            format!(" over {few} blocks, too few for an interval")
        }
        many => format!(" over {many} blocks"),
    };
    format!("{verb} {}{over}", show::listed(&rows.iter().map(one).collect::<Vec<_>>()))
}

/// ` of the 2,000/s requested`; empty for a closed load.
fn of_requested(load: &Load) -> String {
    let planned = load.steady_per_s();
    planned.map_or_else(String::new, |rate| format!(" of the {}/s requested", commas(rate)))
}

/// Failures and other unexpected outcomes: `no operation failed`, `7 of 900 operations failed (7
/// timed out)`.
fn endings(rows: &[&Row]) -> String {
    let mut all = Counts::default();
    for row in rows {
        all.merge(&row.counts);
    }
    let of = format!("of {} operations", commas(all.total()));
    let classes = all.errors_by_class.iter().map(|(class, n)| format!("{} {class}", commas(*n)));
    let mut parts = vec![match all.error {
        0 => "no operation failed".into(),
        failed => {
            let classes: Vec<String> = classes.collect();
            format!("{} {of} failed ({})", commas(failed), classes.join(", "))
        }
    }];
    let others = [(all.wrong, "wrong values"), (all.stale, "stale values"), (all.miss, "misses")];
    let others = others.iter().filter(|(count, _)| *count > 0);
    parts.extend(others.map(|(count, what)| format!("{what}: {}", commas(*count))));
    parts.join(", ")
}
