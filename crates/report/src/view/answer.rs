//! The answer of a run to its question.

use serde::Serialize;

/// The answer, as a summary and place by place.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// A few sentences about the whole run.
    pub summary: Vec<Sentence>,
    /// A sentence for each profile and load, and for each ramp and search; empty if the summary
    /// already covers them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Sentence>,
}

/// A sentence without its full stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// Profile and load that it is about; empty if it is about the whole run.
    pub place: String,
    /// In reading order.
    pub pieces: Vec<Piece>,
}

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The text, with surrounding spaces.
    pub text: String,
    /// Style of the text.
    pub style: PieceStyle,
}

/// Style of a part of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceStyle {
    /// Ordinary text.
    Plain,
    /// Name of a target.
    Target,
    /// Numbers.
    Figure,
    /// A statement of uncertainty.
    Doubt,
}

impl Piece {
    pub(crate) fn new(style: PieceStyle, text: impl Into<String>) -> Self {
        Self { text: text.into(), style }
    }
}

impl Sentence {
    /// The sentence as plain text, after its place if it has one.
    pub fn text(&self) -> String {
        let words: String = self.pieces.iter().map(|piece| piece.text.as_str()).collect();
        if self.place.is_empty() { words } else { format!("{}: {words}", self.place) }
    }
}
