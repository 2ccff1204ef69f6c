//! Operations with an unexpected outcome, by outcome.

use model::Counts;

use crate::hits;
use crate::section::{Block, Section, explained};
use crate::table::{Cell, Column};
use crate::view::{Row, View};

/// An outcome: its name, an explanation if the name needs one, and the number of operations.
type Ending = (&'static str, &'static str, fn(&Counts) -> u64);

/// All unexpected outcomes; lost records also count as missed.
const ENDINGS: [Ending; 6] = [
    ("missed", "not found", |c| c.miss),
    ("lost", "missed records of a cache that had not been removed", |c| c.lost),
    ("errors", "", |c| c.error),
    ("too large", "errors because the store accepts no record of that size", hits::too_large),
    ("wrong", "length or content differs from what was written", |c| c.wrong),
    ("stale", "older than allowed", |c| c.stale),
];

/// One line per row with unexpected outcomes.
pub(crate) fn section(view: &View) -> Section {
    let rows: Vec<&Row> = unexpected(view).collect();
    let occurring: Vec<&Ending> =
        ENDINGS.iter().filter(|(.., n)| rows.iter().any(|r| n(&r.counts) > 0)).collect();
    let mut columns: Vec<Column> = ["operation", "target", "load"].map(Column::words).into();
    columns.push(Column::number("of"));
    columns.extend(occurring.iter().map(|(name, ..)| Column::number(*name)));
    let lines = rows.iter().map(|row| cells(row, &occurring));
    let mut blocks = explained(columns, lines, &note(&occurring));
    // Errors need no explanation.
    blocks.retain(|block| !matches!(block, Block::Note { text } if text.is_empty()));
    Section { id: "problems", title: "Not as expected", blocks }
}

/// Rows with unexpected outcomes, except totals of phases with several operations.
fn unexpected(view: &View) -> impl Iterator<Item = &Row> {
    let is_unexpected =
        |r: &&Row| !has_parts(view, r) && ENDINGS.iter().any(|(.., n)| n(&r.counts) > 0);
    view.cells.iter().filter(is_unexpected)
}

/// Explanation of the shown columns.
fn note(occurring: &[&Ending]) -> String {
    let meant = occurring.iter().filter(|(_, meaning, _)| !meaning.is_empty());
    let texts = meant.map(|(name, meaning, _)| format!("{name}: {meaning}"));
    texts.collect::<Vec<_>>().join("; ")
}

/// Cells of a row; only outcomes that occur have a column.
fn cells(row: &Row, occurring: &[&Ending]) -> Vec<Cell> {
    let count = |n: u64| Cell::number(n.to_string(), n as f64);
    let mut cells = vec![
        format!("{} {}", row.workload, row.operation).into(),
        Cell::target(&row.target),
        row.load.to_string().into(),
        count(row.counts.total()),
    ];
    cells.extend(occurring.iter().map(|(.., n)| count(n(&row.counts))));
    cells
}

/// True for the total of a phase whose operations have their own rows.
pub(crate) fn has_parts(view: &View, row: &Row) -> bool {
    let parts = format!("{}.", row.operation);
    let same =
        |o: &&Row| (&o.workload, &o.load, &o.target) == (&row.workload, &row.load, &row.target);
    view.cells.iter().filter(same).any(|o| o.operation.starts_with(&parts))
}
