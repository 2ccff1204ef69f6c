//! Tables of the sheet: columns with units, and cells with what the page sorts and colours by.

use serde::Serialize;
use std::borrow::Cow;

use crate::view::Value;

/// What stands where there is no value.
pub(crate) const NONE: &str = "–";

/// A table.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    /// From left to right.
    pub(crate) columns: Vec<Column>,
    /// True where lines that follow each other with the same first cell are a group.
    pub(crate) is_grouped: bool,
    /// From top to bottom.
    pub(crate) lines: Vec<Line>,
}

/// A column.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) title: Cow<'static, str>,
    /// Unit, or what stands behind its values; may be empty.
    pub(crate) about: Cow<'static, str>,
    /// True where it is set to the right.
    pub(crate) is_number: bool,
    /// True where a page may draw each value as a share of the largest of its group.
    pub(crate) has_meter: bool,
}

/// A line of a table.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Line {
    /// One a column.
    pub(crate) cells: Vec<Cell>,
    /// True for the line that is the answer, as that of the best target.
    pub(crate) is_strong: bool,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cell {
    /// What is read; may be empty.
    pub(crate) text: String,
    /// What belongs to it and may stand smaller beside or below it, as the ends of an interval.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) about: String,
    /// How it is seen.
    #[serde(skip_serializing_if = "Tone::is_plain")]
    pub(crate) tone: Tone,
    /// What it is sorted by; left out where that is its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sort: Option<f64>,
    /// Indices of footnotes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<usize>,
}

/// How a cell is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// A target's name.
    Target,
    /// The best of its line.
    Best,
    /// Not shown to be behind the best.
    Tied,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Not known for certain.
    Doubt,
}

impl Tone {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_plain(&self) -> bool {
        *self == Self::Plain
    }
}

impl Column {
    /// Of words.
    pub(crate) fn words(title: impl Into<Cow<'static, str>>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Of numbers.
    pub(crate) fn number(title: impl Into<Cow<'static, str>>) -> Self {
        Self { is_number: true, ..Self::words(title) }
    }

    /// The same with a unit, or with what stands behind its values.
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
    /// A text that is sorted by a number.
    pub(crate) fn number(text: String, sort: f64) -> Self {
        Self { sort: Some(sort), ..Self::from(text) }
    }

    /// A target's name.
    pub(crate) fn target(name: &str) -> Self {
        Self::from(name).toned(Tone::Target)
    }

    /// The same, seen in another way.
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// A value; a dash where there is none. Ends of an interval stand apart.
    pub(crate) fn value(value: Option<&Value>, print: impl Fn(&Value) -> String) -> Self {
        let Some(value) = value else { return Self::from(NONE) };
        let text = print(value);
        let (text, about) = match text.split_once(" [") {
            Some((text, ends)) => (text.to_string(), format!("[{ends}")),
            None => (text, String::new()),
        };
        Self { about, ..Self::number(text, value.center) }
    }

    /// Text and what belongs to it on one line.
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

    /// A line like the others.
    pub(crate) fn plain<C: Into<Cell>>(cells: impl IntoIterator<Item = C>) -> Self {
        Self { cells: cells.into_iter().map(Into::into).collect(), is_strong: false }
    }
}

impl Table {
    /// Columns and lines; columns in which no line has anything are left out.
    pub(crate) fn new(columns: Vec<Column>, lines: Vec<Line>) -> Self {
        let mut table = Self { columns, is_grouped: false, lines };
        table.leave_out(0, "");
        table
    }

    /// The same, whose first column says to which group a line belongs.
    pub(crate) fn grouped(self) -> Self {
        Self { is_grouped: true, ..self }
    }

    /// Leaves out the columns from `from` on in which every line has `nothing`.
    pub(crate) fn leave_out(&mut self, from: usize, nothing: &str) {
        for at in (from..self.columns.len()).rev() {
            if self.lines.iter().all(|line| line.cells[at].text == nothing) {
                self.take_out(at);
            }
        }
    }

    /// Leaves out a column, where it is there.
    pub(crate) fn remove(&mut self, title: &str) {
        if let Some(at) = self.columns.iter().position(|column| column.title == title) {
            self.take_out(at);
        }
    }

    fn take_out(&mut self, at: usize) {
        self.columns.remove(at);
        for line in &mut self.lines {
            line.cells.remove(at);
        }
    }
}
