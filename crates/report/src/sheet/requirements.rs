//! Requirements, and results that do not meet them.

use crate::requirements::by_words;
use crate::section::{Block, Section};
use crate::table::{Cell, Column, Line, Table, Tone};
use crate::view::View;

/// A sentence per requirement, and a table of the results that do not meet it.
pub(crate) fn section(view: &View) -> Section {
    let mut blocks = Vec::new();
    let mut missed = Vec::new();
    for (words, rows) in by_words(view) {
        let count = rows.iter().filter(|(_, required)| !required.is_met).count();
        let all = rows.len();
        blocks.push(Block::item(match count {
            0 if all == 1 => format!("{words}: met"),
            0 => format!("{words}: met by all {all} results"),
            count => format!("{words}: missed by {count} of {all} results"),
        }));
        missed.extend(rows.into_iter().filter(|(_, required)| !required.is_met));
    }
    if !missed.is_empty() {
        let columns = ["requirement", "operation", "target", "load"].map(Column::words);
        let columns = columns.into_iter().chain([Column::number("measured")]).collect();
        let lines = missed.iter().map(|(row, required)| {
            Line::plain([
                Cell::from(required.words.as_str()).toned(Tone::Bad),
                format!("{} {}", row.workload, row.operation).into(),
                Cell::target(&row.target),
                row.load.to_string().into(),
                Cell::value(required.measured.as_ref(), |_| required.shown.clone()),
            ])
        });
        blocks.push(Block::table(Table::new(columns, lines.collect())));
    }
    Section { id: "requirements", title: "Requirements", blocks }
}
