//! Numbers within requests: random ones, ones that are the same within a request, ones that count
//! up.

use load::wire::template::Segment;

/// What stands for a number drawn anew each time it occurs.
const ANEW: &[u8] = b"__rand_int__";
/// What stands for numbers that are the same wherever they occur in a request; from
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
/// Bytes of each, and digits of the number.
pub(super) const BYTES: usize = 12;

/// True when the word holds a number.
pub(super) fn occurs(word: &[u8]) -> bool {
    word.windows(BYTES).any(|part| part == ANEW || SHARED.contains(&part))
}

/// The word with one number in all places.
pub(super) fn filled(word: &[u8], number: u64) -> Vec<u8> {
    let digits = format!("{number:0BYTES$}");
    let all = SHARED.iter().chain([&ANEW]);
    all.fold(word.to_vec(), |word, hole| replaced(&word, hole, digits.as_bytes()))
}

/// Puts the numbers below `below` in their places, drawn by `seed` or counted up. Counting, each of
/// the kinds has a counter of its own, which goes on from one request to the next.
pub(super) fn place(
    segments: Vec<Segment>,
    below: u64,
    is_sequential: bool,
    seed: u64,
) -> Vec<Segment> {
    let mut placed: Vec<Segment> =
        segments.into_iter().flat_map(|s| cut(s, below, is_sequential, seed)).collect();
    if is_sequential {
        let anew = |s: &Segment| matches!(s, Segment::Digits { .. });
        let step = placed.iter().filter(|s| anew(s)).count() as u64;
        for (first, segment) in placed.iter_mut().filter(|s| anew(s)).enumerate() {
            *segment = Segment::Counted { step, first: first as u64, below };
        }
    }
    placed
}

/// Cuts a literal where shared numbers stand in it.
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

/// Where `wanted` first stands in `text`.
pub(super) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// A text with `by` wherever `what` stood.
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
