//! A request as bytes with holes, filled in for each sending.

use std::ops::Range;

use workloads::kv::{Key, KeyNames, Random, Stream, Values};

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Bytes as they stand.
    Literal(Vec<u8>),
    /// The key's name.
    Key,
    /// The decimal length of the key's name.
    KeyLength,
    /// The value.
    Value,
    /// The decimal length of the value.
    ValueLength,
    /// Twelve decimal digits below the bound, drawn anew each time it occurs.
    Digits {
        /// The number drawn is smaller than this; at least 1.
        below: u64,
    },
    /// Twelve decimal digits below the bound, the same wherever the stream occurs in a request.
    Shared {
        /// What they are drawn from, together with the request's number.
        stream: u64,
        /// The number drawn is smaller than this; at least 1.
        below: u64,
    },
    /// Twelve decimal digits that count up with the request's number.
    Counted {
        /// Numbers by which two requests that follow each other differ.
        step: u64,
        /// Digits of request 0.
        first: u64,
        /// Counting begins anew here; at least 1.
        below: u64,
    },
}

/// A request as bytes with holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    segments: Vec<Segment>,
    /// The same, as it is sent.
    parts: Vec<Part>,
}

/// A piece of a request that is appended at once.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Bytes in which the name of key 0 stands at some places, to be written over by the key's.
    Named {
        bytes: Vec<u8>,
        /// Where names stand.
        names_at: Vec<Range<usize>>,
    },
    Other(Segment),
}

/// What fills the holes of one request.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// The key, drawn.
    pub key: Key,
    /// Number of the request, and the version of the value that it writes.
    pub n: u64,
    /// Numbers for [`Segment::Digits`].
    pub digits: Stream,
    /// Bytes of the value.
    pub value_bytes: usize,
    /// How keys are named.
    pub names: &'a KeyNames,
    /// What values consist of.
    pub values: &'a Values,
}

impl Template {
    /// Joins literals that stand beside each other, and takes lengths that never vary as literals.
    pub fn new(segments: Vec<Segment>, names: &KeyNames, value_bytes: Option<usize>) -> Self {
        let mut joined: Vec<Segment> = Vec::new();
        for segment in segments {
            let literal = match (&segment, names.fixed_bytes(), value_bytes) {
                (Segment::Literal(bytes), _, _) => Some(bytes.clone()),
                (Segment::KeyLength, Some(n), _) | (Segment::ValueLength, _, Some(n)) => {
                    Some(n.to_string().into_bytes())
                }
                _ => None,
            };
            match (literal, joined.last_mut()) {
                (Some(bytes), Some(Segment::Literal(before))) => before.extend(bytes),
                (Some(bytes), _) => joined.push(Segment::Literal(bytes)),
                (None, _) => joined.push(segment),
            }
        }
        Self { parts: parts(&joined, names), segments: joined }
    }

    /// Its parts, joined.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Appends the request.
    pub fn append(&self, out: &mut Vec<u8>, filling: &Filling<'_>) {
        let mut random = None;
        for part in &self.parts {
            match part {
                Part::Named { bytes, names_at } => {
                    let from = out.len();
                    out.extend_from_slice(bytes);
                    let appended = &mut out[from..];
                    for at in names_at {
                        filling.names.write_over_first(&mut appended[at.clone()], filling.key);
                    }
                }
                Part::Other(segment) => filling.append(out, segment, &mut random),
            }
        }
    }
}

impl Filling<'_> {
    // Not inlined: in a loop the compiler would hash for every hole beforehand, whether there is
    // one.
    #[inline(never)]
    fn append(&self, out: &mut Vec<u8>, segment: &Segment, random: &mut Option<Random>) {
        match segment {
            Segment::Literal(bytes) => out.extend_from_slice(bytes),
            Segment::Key => self.names.append(out, self.key),
            Segment::KeyLength => append_number(out, self.names.bytes(self.key) as u64),
            Segment::Value => self.values.append(out, self.key.0, self.n, self.value_bytes),
            Segment::ValueLength => append_number(out, self.value_bytes as u64),
            Segment::Digits { below } => {
                let random = random.get_or_insert_with(|| self.digits.at(self.n));
                append_digits(out, random.below(*below));
            }
            Segment::Shared { stream, below } => {
                append_digits(out, Stream::new(*stream, 2).at(self.n).below(*below));
            }
            Segment::Counted { step, first, below } => {
                append_digits(out, self.n.wrapping_mul(*step).wrapping_add(*first) % below);
            }
        }
    }
}

/// Literals and, where they are all of one length, names in one piece as far as they stand
/// together.
fn parts(segments: &[Segment], names: &KeyNames) -> Vec<Part> {
    let mut first = Vec::new();
    names.append(&mut first, Key(0));
    let mut parts = Vec::new();
    for segment in segments {
        let (more, is_name) = match segment {
            Segment::Literal(more) => (more, false),
            Segment::Key if names.fixed_bytes().is_some() => (&first, true),
            other => {
                parts.push(Part::Other(other.clone()));
                continue;
            }
        };
        if !matches!(parts.last(), Some(Part::Named { .. })) {
            parts.push(Part::Named { bytes: Vec::new(), names_at: Vec::new() });
        }
        if let Some(Part::Named { bytes, names_at }) = parts.last_mut() {
            names_at.extend(is_name.then(|| bytes.len()..bytes.len() + more.len()));
            bytes.extend(more);
        }
    }
    parts
}

/// Appends twelve decimal digits.
fn append_digits(out: &mut Vec<u8>, number: u64) {
    let mut digits = [b'0'; 12];
    workloads::kv::write_digits(&mut digits, number);
    out.extend_from_slice(&digits);
}

/// Appends a decimal number without leading zeros.
pub fn append_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
