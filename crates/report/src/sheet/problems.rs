//! Operations that did not end as expected, by how they ended.

use model::Counts;

use crate::section::{Block, Section, explained};
use crate::table::{Cell, Column};
use crate::view::{Row, View};

/// A way to end: its name, what that means where the name does not say it, and how many operations
/// ended so.
type Ending = (&'static str, &'static str, fn(&Counts) -> u64);

/// Every way but the expected one; those that were lost are among those that were missed.
const ENDINGS: [Ending; 5] = [
    ("missed", "not found", |c| c.miss),
    ("lost", "missed records of a cache that nobody had removed", |c| c.lost),
    ("errors", "", |c| c.error),
    ("wrong", "of another length or content than written", |c| c.wrong),
    ("stale", "older than it may be", |c| c.stale),
];

/// One line a row in which some operation did not end as expected.
pub(crate) fn section(view: &View) -> Section {
    let rows: Vec<&Row> = unexpected(view).collect();
    let met: Vec<&Ending> =
        ENDINGS.iter().filter(|(.., n)| rows.iter().any(|r| n(&r.counts) > 0)).collect();
    let mut columns: Vec<Column> = ["operation", "target", "load"].map(Column::words).into();
    columns.push(Column::number("of"));
    columns.extend(met.iter().map(|(name, ..)| Column::number(*name)));
    let lines = rows.iter().map(|row| cells(row, &met));
    let mut blocks = explained(columns, lines, &note(&met));
    // Errors alone need no words.
    blocks.retain(|block| !matches!(block, Block::Note { text } if text.is_empty()));
    Section { id: "problems", title: "Not as expected", blocks }
}

/// Rows in which some operation did not end as expected, whole phases of several operations left
/// out.
fn unexpected(view: &View) -> impl Iterator<Item = &Row> {
    let is_told = |r: &&Row| !has_parts(view, r) && ENDINGS.iter().any(|(.., n)| n(&r.counts) > 0);
    view.cells.iter().filter(is_told)
}

/// What the columns that are there mean.
fn note(met: &[&Ending]) -> String {
    let meant = met.iter().filter(|(_, meaning, _)| !meaning.is_empty());
    let said = meant.map(|(name, meaning, _)| format!("{name}: {meaning}"));
    said.collect::<Vec<_>>().join("; ")
}

/// A row by the columns; a way to end that no operation took has none.
fn cells(row: &Row, met: &[&Ending]) -> Vec<Cell> {
    let count = |n: u64| Cell::number(n.to_string(), n as f64);
    let mut cells = vec![
        format!("{} {}", row.workload, row.operation).into(),
        Cell::target(&row.target),
        row.load.to_string().into(),
        count(row.counts.total()),
    ];
    cells.extend(met.iter().map(|(.., n)| count(n(&row.counts))));
    cells
}

/// True for a whole phase whose operations have rows of their own.
pub(crate) fn has_parts(view: &View, row: &Row) -> bool {
    let parts = format!("{}.", row.operation);
    let same =
        |o: &&Row| (&o.workload, &o.load, &o.target) == (&row.workload, &row.load, &row.target);
    view.cells.iter().filter(same).any(|o| o.operation.starts_with(&parts))
}
