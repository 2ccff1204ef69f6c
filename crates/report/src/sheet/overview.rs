//! One table of the whole run for the first screen: a line per case, with its targets side by side.

use super::planned::Planned;
use super::{failover, ramps};
use crate::hits;
use crate::search::per_s;
use crate::section::{Block, Section};
use crate::show;
use crate::standings::{Group, Outcome, Standing, Standings, standings};
use crate::table::{Cell, Column, Line, NONE, Table, Tone};
use crate::view::{SearchView, Value, View};

/// Maximum number of lines; further ones are in the details.
const LINES_MAX: usize = 14;

/// Maximum number of lines with one line per target.
const EACH_MAX: usize = 6;

/// How to use the answer of a search.
const PLAN_WITH: &str = "plan with the lower end of the interval: at the rate itself, half of all \
                         runs miss the limit slightly";

/// Columns of a target's line.
const OF_EACH: [&str; 5] = ["rate", "p50", "p99", "p99.9", "CPU/op server"];

/// The table with its note.
pub(crate) fn section(view: &View) -> Section {
    let tables = standings(view);
    let mut blocks = of_searches(view);
    blocks.extend(ramps::shares(view));
    blocks.extend(failover::overview(view));
    if view.happened.failovers.is_empty() {
        blocks.extend(of_results(view, &tables));
    }
    Section { id: "", title: "", blocks }
}

/// The table of searches: the highest rate of each.
fn of_searches(view: &View) -> Vec<Block> {
    if view.searches.is_empty() {
        return Vec::new();
    }
    let cells = |search: &SearchView| {
        let answer = search.answer;
        let ends = answer.as_ref().and_then(show::bounds);
        let words = |(lo, hi)| format!("{} to {}", per_s(lo), per_s(hi));
        Line::plain([
            Cell::target(&search.target),
            Cell::value(answer.as_ref(), |value| per_s(value.center)),
            ends.map_or_else(|| NONE.into(), words).into(),
            search.peak_per_s.map_or_else(|| NONE.into(), per_s).into(),
            search.limits.join(" and ").into(),
        ])
    };
    let [sustains, peak] = ["sustains", "peak"].map(Column::number);
    let [target, interval, limits] = ["target", "95 % interval", "limits"].map(Column::words);
    let lines: Vec<Line> = view.searches.iter().map(cells).collect();
    let columns = vec![target, sustains, interval, peak, limits];
    let mut blocks = vec![Block::table(Table::new(columns, lines))];
    if view.searches.iter().any(|search| search.answer.is_some()) {
        blocks.push(Block::note(PLAN_WITH));
    }
    blocks
}

/// The table of results: a line per profile, load and operation, without parts of operations.
fn of_results(view: &View, tables: &[Standings<'_>]) -> Vec<Block> {
    let cases: Vec<(&Standings<'_>, &Group<'_>)> = tables
        .iter()
        .flat_map(|table| table.whole().into_iter().map(move |group| (table, group)))
        .collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let targets = targets(view, &cases);
    let (table, mut note) = if cases.len() * targets.len() <= EACH_MAX || targets.len() == 1 {
        each(&cases, targets.len() == 1)
    } else {
        side_by_side(&cases, &targets)
    };
    if cases.len() > LINES_MAX {
        note += &format!("; {} with --details", show::more_lines(cases.len() - LINES_MAX));
    }
    let mut caveats: Vec<String> = Vec::new();
    for (_, text) in hits::caveats(view) {
        if !caveats.contains(&text) {
            caveats.push(text);
        }
    }
    let caveats = caveats.into_iter().map(Block::item);
    [Block::table(table), Block::note(note)].into_iter().chain(caveats).collect()
}

/// Meaning of `≥`.
const NEVER_SHORTER: &str = "; ≥: operations failed, and count as slower than all others";

/// True if operations of a target failed, so that a percentile can be one of them.
fn has_failures(group: &Group<'_>) -> bool {
    group.standings.iter().any(|standing| standing.row.counts.error > 0)
}

/// A profile and load with one of its operations.
type Case<'a> = (&'a Standings<'a>, &'a Group<'a>);

/// A line per target with its rate, times and CPU time.
fn each(cases: &[Case<'_>], is_one: bool) -> (Table, String) {
    let place = Place::of(cases);
    let mut columns = place.columns();
    columns.extend((!is_one).then(|| Column::words("target")));
    columns.push(Column::number(OF_EACH[0]).about(cases[0].0.ends_name()));
    columns.extend(OF_EACH[1..].iter().map(|name| Column::number(*name)));
    let line = |case: &Case<'_>, standing: &Standing<'_>| {
        let mut cells = place.cells(case.0, case.1);
        cells.extend((!is_one).then(|| Cell::target(&standing.row.target)));
        cells.extend(of_one(case.1, standing));
        Line { cells, is_strong: standing.is_best() }
    };
    let shown = cases.iter().take(LINES_MAX);
    let lines = shown.flat_map(|case| case.1.standings.iter().map(move |s| line(case, s)));
    let marks = if is_one { String::new() } else { marks(cases) };
    let failed =
        if cases.iter().any(|(_, group)| has_failures(group)) { NEVER_SHORTER } else { "" };
    let note = format!("operations per second{marks}; times are {}{failed}", times(cases));
    (Table::new(columns, lines.collect()), note)
}

/// A line per case with a figure per target.
fn side_by_side(cases: &[Case<'_>], targets: &[&str]) -> (Table, String) {
    let place = Place::of(cases);
    let mut columns = place.columns();
    columns.extend(targets.iter().map(|name| Column::number((*name).to_string())));
    let line = |(table, group): &Case<'_>| {
        let mut cells = place.cells(table, group);
        cells.extend(targets.iter().map(|name| of_target(group, name)));
        Line::plain(cells)
    };
    let lines = cases.iter().take(LINES_MAX).map(line).collect();
    (Table::new(columns, lines), meaning(cases))
}

fn planned(cases: &[Case<'_>]) -> Planned {
    Planned::of(cases.iter().map(|(table, _)| table.load))
}

/// Kind of the times of all cases.
fn times(cases: &[Case<'_>]) -> &'static str {
    match planned(cases) {
        Planned::None if cases.iter().all(|(table, _)| table.load.reconnects) => {
            "response times, from when a connection was opened"
        }
        planned => planned.times(),
    }
}

/// Explanation of the figures.
fn meaning(cases: &[Case<'_>]) -> String {
    let what = match planned(cases) {
        Planned::All => "p99 of response times",
        Planned::Some => "operations per second; at a planned rate, p99 of response times",
        Planned::None => "operations per second",
    };
    format!("{what}{}", marks(cases))
}

/// Explanation of the marks at targets.
fn marks(cases: &[Case<'_>]) -> String {
    let marked = |outcome| cases.iter().any(|(_, group)| group.outcome == Some(outcome));
    let best =
        if cases.iter().any(|(_, group)| group.best().is_some()) { "; * the best" } else { "" };
    let tied = marked(Outcome::Equal) || marked(Outcome::Undecided);
    let tied = if tied { ", ~ not shown to be behind it" } else { "" };
    format!("{best}{tied}")
}

/// Names of the targets, in the order of the plan.
fn targets<'a>(view: &'a View, cases: &[(&Standings<'_>, &Group<'_>)]) -> Vec<&'a str> {
    let rows = || cases.iter().flat_map(|(_, group)| &group.standings);
    let all = view.setup.targets.iter().map(|target| target.name.as_str());
    all.filter(|name| rows().any(|standing| standing.row.target == *name)).collect()
}

/// Columns that identify a line: those in which lines differ.
struct Place {
    workload: bool,
    load: bool,
    operation: bool,
}

impl Place {
    fn of(cases: &[(&Standings<'_>, &Group<'_>)]) -> Self {
        let (table, group) = cases[0];
        Self {
            workload: cases.iter().any(|(other, _)| other.workload != table.workload),
            load: cases.iter().any(|(other, _)| other.load != table.load),
            operation: cases.len() == 1
                || cases.iter().any(|(_, other)| other.operation != group.operation),
        }
    }

    fn columns(&self) -> Vec<Column> {
        let all = [(self.workload, "profile"), (self.load, "load"), (self.operation, "operation")];
        let there = all.into_iter().filter(|(is_there, _)| *is_there);
        there.map(|(_, name)| Column::words(name)).collect()
    }

    fn cells(&self, table: &Standings<'_>, group: &Group<'_>) -> Vec<Cell> {
        let all = [
            (self.workload, table.workload.to_string()),
            (self.load, table.load.to_string()),
            (self.operation, group.operation.to_string()),
        ];
        all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, cell)| cell.into()).collect()
    }
}

/// Rate, times and CPU time of one target, with a mark if it may be as fast as the best.
fn of_one(group: &Group<'_>, standing: &Standing<'_>) -> Vec<Cell> {
    let rate = standing.cell("rate_per_s", show::rate_value);
    let is_tied = !standing.is_best() && group.is_tied(&standing.row.target);
    let mut cells = vec![if is_tied { rate.toned(Tone::Tied) } else { rate }];
    cells.extend(["p50", "p99", "p999"].map(|percentile| standing.time(percentile)));
    cells.push(standing.cell("server_cpu_ns_per_op", show::time));
    cells
}

/// The rate of one of several targets, or its p99 at a planned rate, with a mark if it is or may be
/// the best.
fn of_target(group: &Group<'_>, name: &str) -> Cell {
    let Some(standing) = group.standings.iter().find(|s| s.row.target == name) else {
        return NONE.into();
    };
    let figure = if standing.row.load.is_planned() {
        standing.time("p99")
    } else {
        standing.cell("rate_per_s", |value: &Value| show::rate(value.center))
    };
    match (standing.is_best(), group.is_tied(name)) {
        (true, _) => figure.toned(Tone::Best),
        (false, true) => figure.toned(Tone::Tied),
        (false, false) => figure,
    }
}
