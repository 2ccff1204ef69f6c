//! Commands as text: how they are split, and what stands for key, value and numbers.
//!
//! Within an argument `__key__` and `__data__` stand for the key and its value, and `__rand_int__`
//! for twelve digits of a number that is drawn anew each time it occurs, as for redis-benchmark and
//! memtier. What is made of a command's arguments is the product's.

pub(crate) mod arguments;

use load::wire::protocol::Shape;
use load::wire::template::Segment;

use crate::fault;

/// Stands for the name of the key.
const KEY: &[u8] = b"__key__";
/// Stands for the value.
const VALUE: &[u8] = b"__data__";
/// Stands for digits.
const DIGITS: &[u8] = b"__rand_int__";
/// How many digits.
const DIGITS_BYTES: usize = 12;

/// A piece of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes as they stand.
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

/// One argument, in pieces; an empty one has none.
pub type Part = Vec<Piece>;

/// What fills the holes of requests, as far as their spelling depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holes {
    /// Bytes that every key's name has; `None` where they vary.
    pub key_bytes: Option<usize>,
    /// Bytes that every value has; `None` where they vary.
    pub value_bytes: Option<usize>,
    /// `__rand_int__` is a number below this, at least 1; `None` leaves that word as it stands.
    pub below: Option<u64>,
}

/// A request and how its reply is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its bytes with holes.
    pub segments: Vec<Segment>,
    /// What its reply must be.
    pub shape: Shape,
    /// True when it carries the value of its key.
    pub writes: bool,
    /// True when a good reply is the whole value of its key, if somebody wrote it there by `SET`.
    pub reads_whole: bool,
}

/// Why a command of no words cannot be sent.
pub(crate) const EMPTY: &str =
    "an empty command (expected a name and its arguments, such as `GET __key__`)";

/// The error for an unknown operation; it lists those that there are.
pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let expected = known.collect::<Vec<_>>().join(", ");
    format!(
        "unknown operation `{name}` (expected {expected}, insert, rmw, or a command line such as \
         `GET __key__`)"
    )
}

/// Why a command may reach what other people keep on the server; `keys` says how keys must look.
pub(crate) fn foreign(words: &[Vec<u8>], number: usize, problem: &str, keys: &str) -> String {
    let word = words.get(number).map(|bytes| fault::words(bytes)).unwrap_or_default();
    format!(
        "argument {number}, `{word}`, {problem} (expected a command that touches only the keys it \
         names, {keys})"
    )
}

/// Bytes of an argument, all of its pieces together.
pub(crate) fn sum(number: usize, pieces: &[Piece], holes: &Holes) -> Result<usize, String> {
    let varies = |hole: &str, cure: &str| {
        format!(
            "argument {number} joins `{hole}` with something else, and its length varies \
             (expected {hole} by itself, or one length for all: {cure})"
        )
    };
    let bytes = pieces.iter().map(|piece| match piece {
        Piece::Literal(bytes) => Ok(bytes.len()),
        Piece::Digits { .. } => Ok(DIGITS_BYTES),
        Piece::Key => {
            holes.key_bytes.ok_or_else(|| varies("__key__", "names of keys of one length"))
        }
        Piece::Value => holes.value_bytes.ok_or_else(|| varies("__data__", "values of one length")),
    });
    bytes.sum()
}

/// An argument cut where its holes begin and end.
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

/// A piece as what it is in a request.
pub(crate) fn segment(piece: &Piece) -> Segment {
    match piece {
        Piece::Literal(bytes) => Segment::Literal(bytes.clone()),
        Piece::Key => Segment::Key,
        Piece::Value => Segment::Value,
        Piece::Digits { below } => Segment::Digits { below: *below },
    }
}

/// The decimal length of an argument, which is its only varying part or has none.
pub(crate) fn length(number: usize, part: &Part, holes: &Holes) -> Result<Segment, String> {
    Ok(match part.as_slice() {
        [Piece::Key] => Segment::KeyLength,
        [Piece::Value] => Segment::ValueLength,
        pieces => literal(sum(number, pieces, holes)?.to_string()),
    })
}

/// True when a word is one of these, whatever its case.
pub(crate) fn is_one_of(word: &[u8], words: &[&str]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}
