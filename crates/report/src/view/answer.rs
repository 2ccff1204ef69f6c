//! What a run says to what was asked.

use serde::Serialize;

/// The answer, in short and place by place.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// A few sentences about the whole run.
    pub summary: Vec<Sentence>,
    /// A sentence for each profile and load, and for each ramp and search; empty where the summary
    /// says as much.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Sentence>,
}

/// A sentence without its full stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sentence {
    /// Profile and load that it is about; empty where it is about the whole run.
    pub place: String,
    /// In the order of reading.
    pub pieces: Vec<Piece>,
}

/// Some words of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The words, with the spaces around them.
    pub text: String,
    /// What they are.
    pub style: PieceStyle,
}

/// What some words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceStyle {
    /// Words.
    Plain,
    /// Name of a target.
    Target,
    /// Numbers.
    Figure,
    /// That something is not known.
    Doubt,
}

impl Piece {
    pub(crate) fn new(style: PieceStyle, text: impl Into<String>) -> Self {
        Self { text: text.into(), style }
    }
}

impl Sentence {
    /// The words alone, behind those of the place.
    pub fn text(&self) -> String {
        let words: String = self.pieces.iter().map(|piece| piece.text.as_str()).collect();
        if self.place.is_empty() { words } else { format!("{}: {words}", self.place) }
    }
}
