//! Operations that did not end as expected, by how they ended.

use model::Counts;

use crate::sheet::{Section, explained};
use crate::view::{Row, View};

/// A way to end, and how many operations did.
type Ending = (&'static str, fn(&Counts) -> u64);

/// Every way but the expected one; those that were lost are among those that were missed.
const ENDINGS: [Ending; 5] = [
    ("missed", |c| c.miss),
    ("lost", |c| c.lost),
    ("errors", |c| c.error),
    ("wrong", |c| c.wrong),
    ("stale", |c| c.stale),
];

/// What the columns of [`lines`] mean.
const NOTE: &str = "missed: not found; lost: of these, records of a cache that nobody \
                               had removed; wrong: of another length or content than written; \
                               stale: older than it may be";

/// One line a row in which some operation did not end as expected.
pub(crate) fn section(view: &View) -> Section {
    let (header, lines) = lines(view);
    Section { title: "Not as expected", blocks: explained(header, 3, lines.into_iter(), NOTE) }
}

/// Column names and lines; a way to end that no operation took has no column.
fn lines(view: &View) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let unexpected =
        |r: &&Row| !has_parts(view, r) && ENDINGS.iter().any(|(_, n)| n(&r.counts) > 0);
    let rows: Vec<&Row> = view.cells.iter().filter(unexpected).collect();
    let met: Vec<&Ending> =
        ENDINGS.iter().filter(|(_, n)| rows.iter().any(|r| n(&r.counts) > 0)).collect();
    let mut header = vec!["operation", "target", "load", "of"];
    header.extend(met.iter().map(|(name, _)| name));
    let line = |row: &&Row| {
        let mut cells = vec![
            format!("{} {}", row.workload, row.operation),
            row.target.clone(),
            row.load.to_string(),
            row.counts.total().to_string(),
        ];
        cells.extend(met.iter().map(|(_, n)| n(&row.counts).to_string()));
        cells
    };
    (header, rows.iter().map(line).collect())
}

/// True for a whole phase whose operations have rows of their own.
pub(crate) fn has_parts(view: &View, row: &Row) -> bool {
    let parts = format!("{}.", row.operation);
    let same =
        |o: &&Row| (&o.workload, &o.load, &o.target) == (&row.workload, &row.load, &row.target);
    view.cells.iter().filter(same).any(|o| o.operation.starts_with(&parts))
}
