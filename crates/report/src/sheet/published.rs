//! Tables that the source publishes, which this run did not measure.

use model::study::{PublishedCell, PublishedTable};

use crate::section::{Block, Section};
use crate::show;
use crate::table::{Cell, Column, Line, Table};
use crate::view::View;

/// A table of the source after the other, each with its notes.
pub(crate) fn section(view: &View) -> Section {
    let mut blocks = Vec::new();
    for published in &view.asked.published {
        let source = format!("published by {}, not measured here", published.source);
        blocks.push(Block::Title { text: published.title.clone(), notes: Vec::new() });
        blocks.push(Block::note(source));
        blocks.push(Block::table(table(published)));
        blocks.extend(published.notes.iter().cloned().map(Block::item));
    }
    Section { id: "published", title: "Tables of the source", blocks }
}

fn table(published: &PublishedTable) -> Table {
    let columns = published.columns.iter().enumerate();
    let columns = columns.map(|(i, name)| match i {
        0 => Column::words(name.clone()),
        _ => Column::number(name.clone()),
    });
    let line = |cells: &Vec<PublishedCell>| Line::plain(cells.iter().map(cell));
    Table::new(columns.collect(), published.rows.iter().map(line).collect())
}

fn cell(cell: &PublishedCell) -> Cell {
    match cell {
        PublishedCell::Text(text) => text.as_str().into(),
        PublishedCell::Number(number) => Cell::number(show::published(*number), *number),
    }
}
