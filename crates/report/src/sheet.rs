//! Sections of a result: made once of the view, and shown by every output for people.

use crate::text::table::{Line, Paint, Table, named, paragraph, section};

/// A section under its title; nothing where it has no blocks.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) blocks: Vec<Block>,
}

/// A part of a section.
pub(crate) enum Block {
    /// A title below that of the section.
    Title(String),
    /// A table with all of its columns, and narrower forms of it in falling width.
    Table(Vec<Table>),
    /// A sentence of several that stand for themselves.
    Item(String),
    /// What is beside it, in words.
    Note(String),
}

impl Section {
    /// The section for a terminal of so many columns.
    pub(crate) fn text(&self, columns: usize, paint: Paint) -> String {
        let text = |block: &Block| match block {
            Block::Title(title) => format!("\n{}", paint.title(title, columns)),
            Block::Table(forms) => {
                let fits = forms.iter().find(|form| form.width() <= columns);
                fits.or(forms.last()).map_or_else(String::new, |form| form.fit(paint, columns))
            }
            Block::Item(text) => paragraph("  ", 4, text, columns),
            Block::Note(text) => paragraph("", 0, text, columns),
        };
        section(self.title, paint, &self.blocks.iter().map(text).collect::<String>())
    }
}

/// A table whose columns are numbers from one on, and what they mean; nothing without rows.
pub(crate) fn explained(
    header: Vec<&'static str>,
    numbers: usize,
    rows: impl Iterator<Item = Vec<String>>,
    note: &str,
) -> Vec<Block> {
    let lines: Vec<Line> = rows.map(|cells| Line::Cells(cells, false)).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let table =
        Table { right: (numbers..header.len()).collect(), header: named(header), gap: 2, lines };
    vec![Block::Table(vec![table]), Block::Note(note.into())]
}
