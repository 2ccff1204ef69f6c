//! What the sheet is made of: sections of typed blocks.

use serde::Serialize;

use crate::table::{Cell, Column, Line, Table};

/// A section under its title; nothing where it has no blocks.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Section {
    /// Where the page is linked to; empty for the one table of a summary.
    pub(crate) id: &'static str,
    /// Heading.
    pub(crate) title: &'static str,
    /// Its parts in their order.
    pub(crate) blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Block {
    /// A title below that of the section.
    Title {
        /// Heading.
        text: String,
        /// Indices of footnotes that all below it carry.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notes: Vec<usize>,
    },
    /// A table with all of its columns.
    Table {
        /// The table.
        #[serde(flatten)]
        table: Table,
        /// The same with fewer columns, in falling width, for narrow terminals.
        #[serde(skip)]
        narrower: Vec<Table>,
    },
    /// A sentence of several that stand for themselves.
    Item {
        /// What is said.
        text: String,
    },
    /// What is beside it, in words.
    Note {
        /// What is said.
        text: String,
    },
    /// A part that each output shows in its own way, from the view's own data.
    Part {
        /// Which.
        part: Part,
    },
}

/// What an output shows in its own way. A terminal and Markdown leave charts and weights out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// The chart that answers: latency by rate of a search or a ramp, else the rates.
    Answer,
    /// All other charts.
    Charts,
    /// An order by the reader's own weights.
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

    /// The first of several forms is the whole one.
    pub(crate) fn forms(mut forms: Vec<Table>) -> Self {
        let narrower = forms.split_off(1.min(forms.len()));
        Self::Table { table: forms.pop().unwrap_or_default(), narrower }
    }
}

impl Section {
    /// One part under a title, where there is anything of it.
    pub(crate) fn part(
        id: &'static str,
        title: &'static str,
        (part, is_there): (Part, bool),
    ) -> Self {
        Self { id, title, blocks: is_there.then_some(Block::Part { part }).into_iter().collect() }
    }
}

/// A table whose columns are numbers from one on, and what they mean; nothing without lines.
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
