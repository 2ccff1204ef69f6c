//! One table of the whole run, to be seen at once: each case in a line, its targets side by side.

use super::ramps;
use crate::search::per_s;
use crate::section::{Block, Section};
use crate::show;
use crate::standings::{Group, Outcome, Standing, Standings, standings};
use crate::table::{Cell, Column, Line, NONE, Table, Tone};
use crate::view::{SearchView, Value, View};

/// Lines that are shown; of more, the last ones are left to the details.
const LINES_MAX: usize = 14;

/// What a line holds of the only target of a run.
const OF_ONE: [&str; 5] = ["rate", "p50", "p99", "p99.9", "CPU/op server"];

/// The table, and what it means.
pub(crate) fn section(view: &View) -> Section {
    let tables = standings(view);
    let mut blocks: Vec<Block> = of_searches(view).into_iter().collect();
    blocks.extend(ramps::shares(view));
    blocks.extend(of_results(view, &tables));
    Section { id: "", title: "", blocks }
}

/// The highest rate of each search.
fn of_searches(view: &View) -> Option<Block> {
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
    (!lines.is_empty()).then(|| Block::table(Table::new(columns, lines)))
}

/// A line for each profile, load and operation that is no part of another one.
fn of_results(view: &View, tables: &[Standings<'_>]) -> Vec<Block> {
    let cases: Vec<(&Standings<'_>, &Group<'_>)> = tables
        .iter()
        .flat_map(|table| table.whole().into_iter().map(move |group| (table, group)))
        .collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let targets = targets(view, &cases);
    let is_one = targets.len() == 1;
    let place = Place::of(&cases);
    let mut columns = place.columns();
    if is_one {
        columns.extend(OF_ONE.map(Column::number));
    } else {
        columns.extend(targets.iter().map(|name| Column::number((*name).to_string())));
    }
    let line = |(table, group): &(&Standings<'_>, &Group<'_>)| {
        let mut cells = place.cells(table, group);
        if is_one {
            cells.extend(group.standings.first().map(of_one).unwrap_or_default());
        } else {
            cells.extend(targets.iter().map(|name| of_target(group, name)));
        }
        Line::plain(cells)
    };
    let lines = cases.iter().take(LINES_MAX).map(line).collect();
    let table = Table::new(columns, lines);
    let mut note = meaning(&cases, is_one);
    if cases.len() > LINES_MAX {
        note += &format!("; {} more lines with --details", cases.len() - LINES_MAX);
    }
    vec![Block::table(table), Block::note(note)]
}

/// What stands in the lines.
fn meaning(cases: &[(&Standings<'_>, &Group<'_>)], is_one: bool) -> String {
    let is_planned = cases.iter().all(|(table, _)| table.load.is_planned());
    let times =
        if is_planned { "response times, from when a request was due" } else { "service times" };
    if is_one {
        return format!("operations per second; times are {times}");
    }
    let what = if is_planned { "p99 of response times" } else { "operations per second" };
    let marked = |outcome| cases.iter().any(|(_, group)| group.outcome == Some(outcome));
    let best =
        if cases.iter().any(|(_, group)| group.best().is_some()) { "; * the best" } else { "" };
    let tied = marked(Outcome::Equal) || marked(Outcome::Undecided);
    let tied = if tied { ", ~ not shown to be behind it" } else { "" };
    format!("{what}{best}{tied}")
}

/// Names of the targets, in the order of the plan.
fn targets<'a>(view: &'a View, cases: &[(&Standings<'_>, &Group<'_>)]) -> Vec<&'a str> {
    let rows = || cases.iter().flat_map(|(_, group)| &group.standings);
    let all = view.setup.targets.iter().map(|target| target.name.as_str());
    all.filter(|name| rows().any(|standing| standing.row.target == *name)).collect()
}

/// Which columns say what a line is about: those in which lines differ.
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

/// Rate, times and CPU of the only target.
fn of_one(standing: &Standing<'_>) -> Vec<Cell> {
    let mut cells = vec![standing.cell("rate_per_s", show::rate_value)];
    cells.extend(["p50", "p99", "p999"].map(|percentile| standing.time(percentile)));
    cells.push(standing.cell("server_cpu_ns_per_op", show::time));
    cells
}

/// The rate of one of several targets, under a plan its p99, with a mark where it is the best or
/// may be.
fn of_target(group: &Group<'_>, name: &str) -> Cell {
    let Some(standing) = group.standings.iter().find(|s| s.row.target == name) else {
        return NONE.into();
    };
    let figure = if standing.row.load.is_planned() {
        standing.time("p99")
    } else {
        standing.cell("rate_per_s", |value: &Value| show::rate(value.center))
    };
    let is_tied = group.tied().any(|tied| tied.row.target == name);
    match (standing.is_best(), is_tied) {
        (true, _) => figure.toned(Tone::Best),
        (false, true) => figure.toned(Tone::Tied),
        (false, false) => figure,
    }
}
