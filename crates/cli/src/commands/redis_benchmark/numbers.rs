//! Number placeholders in requests: independent random numbers, random numbers shared within a
//! request, and sequential numbers.

use load::wire::template::Segment;

/// Placeholder of a number that is drawn separately for each occurrence.
const INDEPENDENT: &[u8] = b"__rand_int__";
/// Placeholders of numbers that are the same for all occurrences in a request; from
/// valkey-benchmark.
const SHARED: [&[u8]; 9] = [
    b"__rand_1st__",
    b"__rand_2nd__",
    b"__rand_3rd__",
    b"__rand_4th__",
    b"__rand_5th__",
    b"__rand_6th__",
    b"__rand_7th__",
    b"__rand_8th__",
    b"__rand_9th__",
];
/// Length of a placeholder in bytes, and digits of the number.
pub(super) const BYTES: usize = 12;

/// True if the argument contains a number placeholder.
pub(super) fn has_placeholder(word: &[u8]) -> bool {
    word.windows(BYTES).any(|part| part == INDEPENDENT || SHARED.contains(&part))
}

/// The argument with `number` in all placeholders.
pub(super) fn filled(word: &[u8], number: u64) -> Vec<u8> {
    let digits = format!("{number:0BYTES$}");
    let all = SHARED.iter().chain([&INDEPENDENT]);
    all.fold(word.to_vec(), |word, hole| replaced(&word, hole, digits.as_bytes()))
}

/// Replaces the placeholders by numbers below `below`, drawn with `seed` or sequential. Sequential
/// numbers use a separate counter per kind, which continues from request to request.
pub(super) fn place(
    segments: Vec<Segment>,
    below: u64,
    is_sequential: bool,
    seed: u64,
) -> Vec<Segment> {
    let mut placed: Vec<Segment> =
        segments.into_iter().flat_map(|s| cut(s, below, is_sequential, seed)).collect();
    if is_sequential {
        let is_digits = |s: &Segment| matches!(s, Segment::Digits { .. });
        let step = placed.iter().filter(|s| is_digits(s)).count() as u64;
        for (first, segment) in placed.iter_mut().filter(|s| is_digits(s)).enumerate() {
            *segment = Segment::Counted { step, first: first as u64, below };
        }
    }
    placed
}

/// Splits a literal at its shared placeholders.
fn cut(segment: Segment, below: u64, is_sequential: bool, seed: u64) -> Vec<Segment> {
    let Segment::Literal(bytes) = segment else { return vec![segment] };
    let mut parts = Vec::new();
    let mut rest = bytes.as_slice();
    let next = |rest: &[u8]| {
        rest.windows(BYTES).enumerate().find_map(|(at, part)| {
            SHARED.iter().position(|shared| *shared == part).map(|which| (at, which))
        })
    };
    while let Some((at, which)) = next(rest) {
        parts.push(Segment::Literal(rest[..at].to_vec()));
        let stream = seed.wrapping_add(which as u64);
        parts.push(if is_sequential {
            Segment::Counted { step: 1, first: 0, below }
        } else {
            Segment::Shared { stream, below }
        });
        rest = &rest[at + BYTES..];
    }
    parts.push(Segment::Literal(rest.to_vec()));
    parts
}

/// Position of the first `wanted` in `text`.
pub(super) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The text with each `what` replaced by `by`.
pub(super) fn replaced(text: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, what) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(by);
        rest = &rest[at + what.len()..];
    }
    out.extend_from_slice(rest);
    out
}
