//! A request as bytes with holes that are filled in for each sending.

use serde::{Deserialize, Serialize};
use stats::{SplitMix64, append_number};
use std::ops::Range;

use workloads::kv::{Key, KeyNames, Stream, Values, write_over_zeros};

/// The digits of 0, as a placeholder for a number.
const ZEROS: [u8; 12] = [b'0'; 12];

/// A part of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Segment {
    /// Constant bytes.
    Literal(Vec<u8>),
    /// The key's name.
    Key,
    /// The decimal length of the key's name.
    KeyLength,
    /// The value.
    Value,
    /// The decimal length of the value.
    ValueLength,
    /// Twelve decimal digits below the bound, drawn separately for each occurrence.
    Digits {
        /// The number drawn is smaller than this; at least 1.
        below: u64,
    },
    /// Twelve decimal digits below the bound, the same for all occurrences of the stream in a
    /// request.
    Shared {
        /// Random stream that they are drawn from, together with the request's number.
        stream: u64,
        /// The number drawn is smaller than this; at least 1.
        below: u64,
    },
    /// Twelve decimal digits that increase with the request's number.
    Counted {
        /// Difference between two consecutive requests.
        step: u64,
        /// Digits of request 0.
        first: u64,
        /// Counting restarts from 0 here; at least 1.
        below: u64,
    },
}

/// A request as bytes with holes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    segments: Vec<Segment>,
    /// The same request, prepared for appending.
    parts: Vec<Part>,
}

/// A piece of a request that is appended in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Bytes of fixed length. Holes contain the name of key 0 or the digits of 0, to be
    /// overwritten.
    Fixed {
        bytes: Vec<u8>,
        /// Position of each hole, and its content.
        holes: Vec<(Range<usize>, Segment)>,
    },
    Other(Segment),
}

/// The values for the holes of one request.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// The drawn key.
    pub key: Key,
    /// Number of the request, which is also the version of the value that it writes.
    pub n: u64,
    /// Random stream for [`Segment::Digits`].
    pub digits: Stream,
    /// Length of the value.
    pub value_bytes: usize,
    /// Names of keys.
    pub names: &'a KeyNames,
    /// Source of the value's content.
    pub values: &'a Values,
}

impl Template {
    /// Compiles a request: joins adjacent literals, and turns lengths that never vary into
    /// literals.
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

    /// Its segments after joining.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Appends the request.
    pub fn append(&self, out: &mut Vec<u8>, filling: &Filling<'_>) {
        let mut random = None;
        for part in &self.parts {
            match part {
                Part::Fixed { bytes, holes } => {
                    let from = out.len();
                    out.extend_from_slice(bytes);
                    let appended = &mut out[from..];
                    for (at, segment) in holes {
                        let hole = &mut appended[at.clone()];
                        match segment {
                            Segment::Key => filling.names.write_over_first(hole, filling.key),
                            other => {
                                write_over_zeros(hole, filling.number(other, &mut random));
                            }
                        }
                    }
                }
                Part::Other(segment) => filling.append(out, segment),
            }
        }
    }
}

impl Filling<'_> {
    /// The number that a segment is replaced by.
    // Not inlined: otherwise the compiler hoists the hashing out of the loop and does it even
    // without holes.
    #[inline(never)]
    fn number(&self, segment: &Segment, random: &mut Option<SplitMix64>) -> u64 {
        match segment {
            Segment::Digits { below } => {
                random.get_or_insert_with(|| self.digits.at(self.n)).below(*below)
            }
            Segment::Shared { stream, below } => Stream::new(*stream, 2).at(self.n).below(*below),
            Segment::Counted { step, first, below } => {
                self.n.wrapping_mul(*step).wrapping_add(*first) % below
            }
            Segment::KeyLength => self.names.bytes(self.key) as u64,
            Segment::ValueLength => self.value_bytes as u64,
            Segment::Literal(_) | Segment::Key | Segment::Value => 0,
        }
    }

    #[inline(never)]
    fn append(&self, out: &mut Vec<u8>, segment: &Segment) {
        match segment {
            Segment::Key => self.names.append(out, self.key),
            Segment::Value => self.values.append(out, self.key.0, self.n, self.value_bytes),
            other => append_number(out, self.number(other, &mut None)),
        }
    }
}

/// Groups adjacent segments of fixed length into one part each.
fn parts(segments: &[Segment], names: &KeyNames) -> Vec<Part> {
    let mut first = Vec::new();
    names.append(&mut first, Key(0));
    let mut parts = Vec::new();
    for segment in segments {
        let (more, is_hole) = match segment {
            Segment::Literal(more) => (&more[..], false),
            Segment::Key if names.fixed_bytes().is_some() => (&first[..], true),
            Segment::Digits { .. } | Segment::Shared { .. } | Segment::Counted { .. } => {
                (&ZEROS[..], true)
            }
            other => {
                parts.push(Part::Other(other.clone()));
                continue;
            }
        };
        if !matches!(parts.last(), Some(Part::Fixed { .. })) {
            parts.push(Part::Fixed { bytes: Vec::new(), holes: Vec::new() });
        }
        if let Some(Part::Fixed { bytes, holes }) = parts.last_mut() {
            let at = bytes.len()..bytes.len() + more.len();
            holes.extend(is_hole.then(|| (at, segment.clone())));
            bytes.extend(more);
        }
    }
    parts
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
