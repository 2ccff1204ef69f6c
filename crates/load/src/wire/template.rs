//! A request as bytes with holes, filled in for each sending.

use stats::{SplitMix64, append_number};
use std::ops::Range;

use workloads::kv::{Key, KeyNames, Stream, Values, write_over_zeros};

/// The digits of 0, as they stand where a number is drawn.
const ZEROS: [u8; 12] = [b'0'; 12];

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
    /// Bytes of one length: holes hold the name of key 0 or the digits of 0, to be written over.
    Fixed {
        bytes: Vec<u8>,
        /// Where the holes are, and what fills each.
        holes: Vec<(Range<usize>, Segment)>,
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
    /// The number whose digits a segment stands for.
    // Not inlined: in a loop the compiler would hash for every hole beforehand, whether there is
    // one.
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

/// What has one length in every request in one piece, as far as it stands together.
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
