//! What each worker of a fleet contributed.

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::{View, WorkerView};

const NOTE: &str = "over all blocks, and of a search over all its hold runs; counts and histograms \
                    of the workers are added, and percentiles follow from the sum; own CPU and \
                    waited: share of the time of its threads on a CPU, and waiting for one, which \
                    counts as own where workers share CPUs; disturbed: share of the time that \
                    others used its CPUs or it was stopped; skew: bound on \
                    the difference between its start and the planned one. `--format json` has the \
                    result recomputed with each worker left out";
/// The same with a planned rate.
const PLAN_NOTE: &str = "of its plan: answered requests as a share of its part of the plan";

/// A line for each worker and phase.
pub(crate) fn section(view: &View) -> Section {
    let all = &view.happened.workers;
    let Some(first) = all.first() else {
        return Section { id: "workers", title: "Workers", blocks: Vec::new() };
    };
    let differs = |get: fn(&WorkerView) -> &str| all.iter().any(|one| get(one) != get(first));
    let has_targets = differs(|one| &one.target);
    let has_profiles = differs(|one| &one.workload);
    let has_loads = all.iter().any(|one| one.load != first.load);
    let has_phases = differs(|one| &one.phase);
    let has_plan = all.iter().any(|one| one.share_of_plan.is_some());
    let mut columns = vec![Column::words("worker")];
    columns.extend(has_targets.then(|| Column::words("target")));
    columns.extend(has_profiles.then(|| Column::words("profile")));
    columns.extend(has_loads.then(|| Column::words("load")));
    columns.extend(has_phases.then(|| Column::words("phase")));
    columns.extend(["clients", "rate", "p99"].map(Column::number));
    columns.extend(has_plan.then(|| Column::number("of its plan")));
    columns.extend(["own CPU", "waited", "disturbed", "skew"].map(Column::number));
    let line = |one: &WorkerView| {
        let mut cells: Vec<Cell> = vec![one.worker.as_str().into()];
        cells.extend(has_targets.then(|| Cell::target(&one.target)));
        cells.extend(has_profiles.then(|| one.workload.as_str().into()));
        cells.extend(has_loads.then(|| one.load.to_string().into()));
        cells.extend(has_phases.then(|| one.phase.as_str().into()));
        cells.push(Cell::number(one.clients.to_string(), f64::from(one.clients)));
        cells.push(Cell::number(show::rate(one.rate_per_s), one.rate_per_s));
        cells.push(Cell::time(one.response_ns_p99));
        let share = |share: f64| Cell::number(show::percent(share), share);
        cells.extend(has_plan.then(|| one.share_of_plan.map_or_else(|| NONE.into(), share)));
        let shares = [one.cpu_share, one.waited_share, one.disturbed_share];
        cells.extend(shares.map(share));
        let start_ns = one.start_skew_ns as f64;
        cells.push(Cell::number(format!("±{}", show::ns(start_ns)), start_ns));
        Line::plain(cells)
    };
    let table = Table::new(columns, all.iter().map(line).collect());
    let mut blocks = vec![Block::table(table), Block::note(NOTE)];
    blocks.extend(has_plan.then(|| Block::note(PLAN_NOTE)));
    Section { id: "workers", title: "Workers", blocks }
}
