//! Tables of the sheet: columns with units, and cells with sort keys and tones for the page.

use serde::Serialize;
use std::borrow::Cow;

use crate::view::{Time, Value};

/// Placeholder for a missing value.
pub(crate) const NONE: &str = "–";

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    /// From left to right.
    pub(crate) columns: Vec<Column>,
    /// True if consecutive lines with the same first cell form a group.
    pub(crate) is_grouped: bool,
    /// From top to bottom.
    pub(crate) lines: Vec<Line>,
}

/// A column.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) title: Cow<'static, str>,
    /// Unit or suffix of its values; can be empty.
    pub(crate) about: Cow<'static, str>,
    /// True if it is right-aligned.
    pub(crate) is_number: bool,
    /// True if a page can draw each value as a share of the largest in its group.
    pub(crate) has_meter: bool,
}

/// A line of a table.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Line {
    /// One per column.
    pub(crate) cells: Vec<Cell>,
    /// True for the line with the answer, such as that of the best target.
    pub(crate) is_strong: bool,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cell {
    /// Main text; can be empty.
    pub(crate) text: String,
    /// Additional text, such as the ends of an interval; can be printed smaller.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) about: String,
    /// Emphasis.
    #[serde(skip_serializing_if = "Tone::is_plain")]
    pub(crate) tone: Tone,
    /// Sort key; omitted if cells are sorted by their text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sort: Option<f64>,
    /// Indices of footnotes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<usize>,
}

/// Emphasis of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tone {
    /// No emphasis.
    #[default]
    Plain,
    /// A target's name.
    Target,
    /// The best of its line.
    Best,
    /// Not significantly slower than the best.
    Tied,
    /// A good result.
    Good,
    /// A bad result.
    Bad,
    /// An uncertain result.
    Doubt,
}

impl Tone {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

impl Column {
    /// A left-aligned column.
    pub(crate) fn words(title: impl Into<Cow<'static, str>>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// A right-aligned column.
    pub(crate) fn number(title: impl Into<Cow<'static, str>>) -> Self {
        Self { is_number: true, ..Self::words(title) }
    }

    /// The column with a unit or suffix of its values.
    pub(crate) fn about(self, about: &'static str) -> Self {
        Self { about: about.into(), ..self }
    }
}

impl<S: Into<String>> From<S> for Cell {
    fn from(text: S) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl Cell {
    /// A cell with a numeric sort key.
    pub(crate) fn number(text: String, sort: f64) -> Self {
        Self { sort: Some(sort), ..Self::from(text) }
    }

    /// A latency, sorted by its number even if that is a bound; [`NONE`] without one.
    pub(crate) fn time(time: Option<Time>) -> Self {
        time.map_or_else(
            || NONE.into(),
            |time| {
                let (Time::Of(ns) | Time::Bound { at_least: ns }) = time;
                Self::number(time.to_string(), ns as f64)
            },
        )
    }

    /// A target's name.
    pub(crate) fn target(name: &str) -> Self {
        Self::from(name).toned(Tone::Target)
    }

    /// The cell with another emphasis.
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// A value with the ends of its interval as additional text; a dash if there is none.
    pub(crate) fn value(value: Option<&Value>, print: impl Fn(&Value) -> String) -> Self {
        let Some(value) = value else { return Self::from(NONE) };
        let text = print(value);
        let (text, about) = match text.split_once(" [") {
            Some((text, ends)) => (text.to_string(), format!("[{ends}")),
            None => (text, String::new()),
        };
        Self { about, ..Self::number(text, value.center) }
    }

    /// Main and additional text on one line.
    pub(crate) fn whole(&self) -> String {
        match (self.text.as_str(), self.about.as_str()) {
            (text, "") => text.into(),
            ("", about) => about.into(),
            (text, about) => format!("{text} {about}"),
        }
    }
}

impl Line {
    /// The footnotes of all cells.
    pub(crate) fn notes(&self) -> Vec<usize> {
        self.cells.iter().flat_map(|cell| cell.notes.iter().copied()).collect()
    }

    /// A line without emphasis.
    pub(crate) fn plain<C: Into<Cell>>(cells: impl IntoIterator<Item = C>) -> Self {
        Self { cells: cells.into_iter().map(Into::into).collect(), is_strong: false }
    }
}

impl Table {
    /// A table without its empty columns.
    pub(crate) fn new(columns: Vec<Column>, lines: Vec<Line>) -> Self {
        let mut table = Self { columns, is_grouped: false, lines };
        table.remove_empty(0, "");
        table
    }

    /// The table with lines grouped by the first column.
    pub(crate) fn grouped(self) -> Self {
        Self { is_grouped: true, ..self }
    }

    /// Removes columns from index `from` on in which every cell is `empty`.
    pub(crate) fn remove_empty(&mut self, from: usize, empty: &str) {
        for at in (from..self.columns.len()).rev() {
            if self.lines.iter().all(|line| line.cells[at].text == empty) {
                self.remove_at(at);
            }
        }
    }

    /// Removes a column, if it exists.
    pub(crate) fn remove(&mut self, title: &str) {
        if let Some(at) = self.columns.iter().position(|column| column.title == title) {
            self.remove_at(at);
        }
    }

    fn remove_at(&mut self, at: usize) {
        self.columns.remove(at);
        for line in &mut self.lines {
            line.cells.remove(at);
        }
    }
}
