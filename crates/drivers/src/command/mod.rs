//! Commands as text: splitting, and placeholders for key, value and numbers.
//!
//! In an argument, `__key__` and `__data__` are placeholders for the key and its value.
//! `__rand_int__` is a placeholder for twelve digits of a number drawn separately for each
//! occurrence, as in redis-benchmark and memtier. Each product encodes the arguments itself.

pub(crate) mod arguments;

use load::wire::protocol::Shape;
use load::wire::template::Segment;

use crate::fault;

/// Placeholder for the key's name.
const KEY: &[u8] = b"__key__";
/// Placeholder for the value.
const VALUE: &[u8] = b"__data__";
/// Placeholder for digits.
const DIGITS: &[u8] = b"__rand_int__";
/// Number of digits.
const DIGITS_BYTES: usize = 12;

/// A piece of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Literal bytes.
    Literal(Vec<u8>),
    /// The key's name.
    Key,
    /// The value.
    Value,
    /// Twelve decimal digits of a number below the bound.
    Digits {
        /// The number drawn is smaller than this; at least 1.
        below: u64,
    },
}

/// One argument in pieces; an empty argument has none.
pub type Part = Vec<Piece>;

/// Properties of the placeholders' contents that affect the encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placeholders {
    /// Length of every key name; `None` if it varies.
    pub key_bytes: Option<usize>,
    /// Length of every value; `None` if it varies.
    pub value_bytes: Option<usize>,
    /// `__rand_int__` is a number below this, at least 1; with `None` the word is literal.
    pub below: Option<u64>,
}

/// A request and its expected reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its bytes with placeholders.
    pub segments: Vec<Segment>,
    /// The expected shape of its reply.
    pub shape: Shape,
    /// True if it contains the value of its key.
    pub writes: bool,
    /// True if a successful reply is the whole value of its key, as written by `SET`.
    pub reads_whole: bool,
}

/// The error for an empty command.
pub(crate) const EMPTY: &str =
    "an empty command (expected a name and its arguments, such as `GET __key__`)";

/// The error for an unknown operation, with a list of the known ones.
pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let expected = known.collect::<Vec<_>>().join(", ");
    format!(
        "unknown operation `{name}` (expected {expected}, insert, rmw, or a command line such as \
         `GET __key__`)"
    )
}

/// The error for a command that can access foreign keys; `keys` describes the allowed form of keys.
pub(crate) fn foreign(words: &[Vec<u8>], number: usize, problem: &str, keys: &str) -> String {
    let word = words.get(number).map(|bytes| fault::printable(bytes)).unwrap_or_default();
    format!(
        "argument {number}, `{word}`, {problem} (expected a command that touches only the keys it \
         names, {keys})"
    )
}

/// Length of an argument in bytes, over all its pieces.
pub(crate) fn sum(number: usize, pieces: &[Piece], holes: &Placeholders) -> Result<usize, String> {
    let varies = |hole: &str, hint: &str| {
        format!(
            "argument {number} joins `{hole}` with something else, and its length varies \
             (expected {hole} alone, or one length for all: {hint})"
        )
    };
    let bytes = pieces.iter().map(|piece| match piece {
        Piece::Literal(bytes) => Ok(bytes.len()),
        Piece::Digits { .. } => Ok(DIGITS_BYTES),
        Piece::Key => holes.key_bytes.ok_or_else(|| varies("__key__", "key names of one length")),
        Piece::Value => holes.value_bytes.ok_or_else(|| varies("__data__", "values of one length")),
    });
    bytes.sum()
}

/// Splits an argument at its placeholders.
pub(crate) fn pieces(mut bytes: &[u8], below: Option<u64>) -> Part {
    let mut holes = vec![(KEY, Piece::Key), (VALUE, Piece::Value)];
    holes.extend(below.map(|below| (DIGITS, Piece::Digits { below })));
    let mut part = Part::new();
    let mut plain = Vec::new();
    while let Some((first, rest)) = bytes.split_first() {
        let hole = holes.iter().find(|(word, _)| bytes.starts_with(word));
        let Some((word, piece)) = hole else {
            plain.push(*first);
            bytes = rest;
            continue;
        };
        if !plain.is_empty() {
            part.push(Piece::Literal(std::mem::take(&mut plain)));
        }
        part.push(piece.clone());
        bytes = &bytes[word.len()..];
    }
    if !plain.is_empty() {
        part.push(Piece::Literal(plain));
    }
    part
}

pub(crate) fn literal(text: impl Into<String>) -> Segment {
    Segment::Literal(text.into().into_bytes())
}

/// Converts a piece into a segment of a request.
pub(crate) fn segment(piece: &Piece) -> Segment {
    match piece {
        Piece::Literal(bytes) => Segment::Literal(bytes.clone()),
        Piece::Key => Segment::Key,
        Piece::Value => Segment::Value,
        Piece::Digits { below } => Segment::Digits { below: *below },
    }
}

/// The decimal length of an argument. A piece of varying length must be its only piece.
pub(crate) fn length(number: usize, part: &Part, holes: &Placeholders) -> Result<Segment, String> {
    Ok(match part.as_slice() {
        [Piece::Key] => Segment::KeyLength,
        [Piece::Value] => Segment::ValueLength,
        pieces => literal(sum(number, pieces, holes)?.to_string()),
    })
}

/// True if a word is in the list, ignoring case.
pub(crate) fn is_one_of(word: &[u8], words: &[&str]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}
