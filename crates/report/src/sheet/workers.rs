//! What each worker of a fleet contributed.

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::{View, WorkerView};

const NOTE: &str = "over all blocks; counts and histograms of the workers are added, and \
                    percentiles follow from the sum; start: bound on the difference between its \
                    start and the planned one; without: all other workers together";

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
    let has_plan = all.iter().any(|one| one.share_of_plan.is_some());
    let mut columns = vec![Column::words("worker")];
    columns.extend(has_targets.then(|| Column::words("target")));
    columns.extend(has_profiles.then(|| Column::words("profile")));
    columns.extend(has_loads.then(|| Column::words("load")));
    columns.push(Column::words("phase"));
    columns.extend(["clients", "rate", "p99"].map(Column::number));
    columns.extend(has_plan.then(|| Column::number("of its plan")));
    columns.extend(["CPU", "waited", "start", "rate without", "p99 without"].map(Column::number));
    let line = |one: &WorkerView| {
        let mut cells: Vec<Cell> = vec![one.worker.as_str().into()];
        cells.extend(has_targets.then(|| Cell::target(&one.target)));
        cells.extend(has_profiles.then(|| one.workload.as_str().into()));
        cells.extend(has_loads.then(|| one.load.to_string().into()));
        cells.push(one.phase.as_str().into());
        cells.push(Cell::number(one.clients.to_string(), f64::from(one.clients)));
        cells.push(Cell::number(show::rate(one.rate_per_s), one.rate_per_s));
        cells.push(Cell::time(one.response_ns_p99));
        let share = |share: f64| Cell::number(show::percent(share), share);
        cells.extend(has_plan.then(|| one.share_of_plan.map_or_else(|| NONE.into(), share)));
        cells.extend([share(one.cpu_share), share(one.waited_share)]);
        let start_ns = one.start_skew_ns as f64;
        cells.push(Cell::number(format!("±{}", show::ns(start_ns)), start_ns));
        let rate = |rate: f64| Cell::number(show::rate(rate), rate);
        cells.push(one.rate_per_s_without.map_or_else(|| NONE.into(), rate));
        cells.push(Cell::time(one.response_ns_p99_without));
        Line::plain(cells)
    };
    let table = Table::new(columns, all.iter().map(line).collect());
    let blocks = vec![Block::table(table), Block::note(NOTE)];
    Section { id: "workers", title: "Workers", blocks }
}
