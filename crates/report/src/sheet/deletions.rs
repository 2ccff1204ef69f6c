//! Deletion of expired sessions: rate and 99th percentile with and without it, and how much was
//! deleted.

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table};
use crate::view::{DeletionView, Value, View};

const NOTE: &str = "each block measures the same load with deletion, by one request in so many as \
                    the plan says, and then without; p99: of a page's calls, including the \
                    collections of its own request";

const COUNTED: &str = "collections, and expired sessions deleted in either phase: over all blocks";

/// Sentence on servers without a handler that deletes.
const ITSELF: &str = "expires sessions by itself, in both phases, which are the same load: the \
                      handler's collection does nothing; deleted is what the server reports";

/// Costs by target and load, then counts.
pub(crate) fn section(view: &View) -> Section {
    let all = &view.happened.deletions;
    let mut blocks = Vec::new();
    if !all.is_empty() {
        let forms = [costs, costs_alone].map(|cells| table(all, &COSTS, cells));
        blocks.push(Block::forms(forms.into()));
        blocks.push(Block::note(NOTE));
        blocks.push(Block::table(table(all, &COUNTS, counts)));
        blocks.push(Block::note(COUNTED));
    }
    let mut by_server: Vec<&str> = Vec::new();
    for one in all.iter().filter(|one| !one.by_handler) {
        if !by_server.contains(&one.target.as_str()) {
            by_server.push(&one.target);
        }
    }
    blocks.extend(by_server.iter().map(|target| Block::item(format!("{target} {ITSELF}"))));
    Section { id: "deletions", title: "Deletion of expired sessions", blocks }
}

fn table(
    all: &[DeletionView],
    numbers: &[&'static str],
    cells: fn(&DeletionView) -> Vec<Cell>,
) -> Table {
    let columns = ["profile", "target", "load"].map(Column::words).into_iter();
    let columns = columns.chain(numbers.iter().copied().map(Column::number)).collect();
    let place = |one: &DeletionView| {
        [one.workload.as_str().into(), Cell::target(&one.target), one.load.to_string().into()]
    };
    let line = |one| Line::plain(place(one).into_iter().chain(cells(one)));
    Table::new(columns, all.iter().map(line).collect())
}

/// Titles of [`costs`].
const COSTS: [&str; 6] =
    ["rate without", "with", "with / without", "p99 without", "p99 with", "p99 ratio"];

fn costs(one: &DeletionView) -> Vec<Cell> {
    costs_with(one, show::ratio_value)
}

/// The same without intervals.
fn costs_alone(one: &DeletionView) -> Vec<Cell> {
    costs_with(one, |value| show::ratio(value.center))
}

fn costs_with(one: &DeletionView, ratio: fn(&Value) -> String) -> Vec<Cell> {
    let DeletionView { without, with, .. } = one;
    let ratio = |value| Cell::value(value, ratio);
    vec![
        Cell::value(without.rate_per_s.as_ref(), |value| show::rate(value.center)),
        Cell::value(with.rate_per_s.as_ref(), |value| show::rate(value.center)),
        ratio(one.rate_ratio.as_ref()),
        Cell::value(without.service_ns_p99.as_ref(), show::time),
        Cell::value(with.service_ns_p99.as_ref(), show::time),
        ratio(one.p99_ratio.as_ref()),
    ]
}

/// Titles of [`counts`].
const COUNTS: [&str; 4] = ["collections", "longest", "deleted without", "deleted with"];

fn counts(one: &DeletionView) -> Vec<Cell> {
    let count = |n: u64| Cell::number(show::commas(n), n as f64);
    let deleted = |n: Option<u64>| n.map_or(Cell::from(NONE), count);
    let longest =
        one.longest_ns.map_or(Cell::from(NONE), |ns| Cell::number(show::ns(ns as f64), ns as f64));
    let collections = if one.by_handler { count(one.collections) } else { Cell::from(NONE) };
    vec![collections, longest, deleted(one.without.deleted), deleted(one.with.deleted)]
}
