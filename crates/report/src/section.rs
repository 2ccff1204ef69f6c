//! Sections of the sheet, made of typed blocks.

use serde::Serialize;

use crate::table::{Cell, Column, Line, Table};

/// A titled section; not shown if it has no blocks.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    /// Anchor on the page; empty for the table of a summary.
    pub(crate) id: &'static str,
    /// Heading.
    pub(crate) title: &'static str,
    /// Its parts in order.
    pub(crate) blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Block {
    /// A subheading.
    Title {
        /// Heading.
        text: String,
        /// Indices of footnotes that apply to everything below it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<usize>,
    },
    /// A table with all of its columns.
    Table {
        /// The table.
        #[serde(flatten)]
        table: Table,
        /// Variants with fewer columns, by decreasing width, for narrow terminals.
        #[serde(skip)]
        narrower: Vec<Table>,
    },
    /// An item of a list of sentences.
    Item {
        /// The sentence.
        text: String,
    },
    /// An explanation of the neighbouring blocks.
    Note {
        /// The explanation.
        text: String,
    },
    /// A part that each output renders itself from the data of the view.
    Part {
        /// Kind of part.
        part: Part,
    },
}

/// A part that each output renders itself. Terminal and Markdown omit charts and weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// The chart with the answer: latency by rate for a search or a ramp, else the rates.
    Answer,
    /// All other charts.
    Charts,
    /// A ranking by the reader's own weights.
    Weights,
    /// [`View::claims`].
    Claims,
    /// [`crate::view::Setup::conditions`].
    Conditions,
    /// [`View::footnotes`].
    Notes,
}

impl Block {
    pub(crate) fn title(text: String) -> Self {
        Self::Title { text, notes: Vec::new() }
    }

    pub(crate) fn item(text: String) -> Self {
        Self::Item { text }
    }

    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self::Note { text: text.into() }
    }

    pub(crate) fn table(table: Table) -> Self {
        Self::Table { table, narrower: Vec::new() }
    }

    /// A table in several forms, the complete one first.
    pub(crate) fn forms(mut forms: Vec<Table>) -> Self {
        let narrower = forms.split_off(1.min(forms.len()));
        Self::Table { table: forms.pop().unwrap_or_default(), narrower }
    }
}

impl Section {
    /// A section with one part, or without blocks if the flag is false.
    pub(crate) fn part(
        id: &'static str,
        title: &'static str,
        (part, has_data): (Part, bool),
    ) -> Self {
        Self { id, title, blocks: has_data.then_some(Block::Part { part }).into_iter().collect() }
    }
}

/// A table followed by an explanatory note; nothing without lines.
pub(crate) fn explained(
    columns: Vec<Column>,
    lines: impl Iterator<Item = Vec<Cell>>,
    note: &str,
) -> Vec<Block> {
    let lines: Vec<Line> = lines.map(Line::plain).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    vec![Block::table(Table::new(columns, lines)), Block::note(note)]
}
