//! RESP2, the protocol of Redis (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! A request is an array of bulk strings: `*<n>\r\n` and n times `$<length>\r\n<bytes>\r\n`.
//! A reply begins with its type: `+` status, `-` error, `:` integer, `$` bulk (length -1: nil),
//! `*` array. [`parse`] reads one reply that is no array without copying; [`parse_tree`] reads
//! any reply for administration. Both are given the bytes received so far and may be called
//! again when there are more.

use std::ops::Range;

use stats::append_number;

/// Longest bulk and longest whole reply: more is an error, never memory.
pub(super) const BULK_BYTES_MAX: usize = 64 << 20;
/// Longest status, error or number line.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
/// Most elements of an array, and how deep arrays may lie in arrays.
const ELEMENTS_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 8;
/// A type, a number of at most 20 digits and the end of the line.
const HEAD_BYTES_MAX: usize = 23;

/// Bytes that are not of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) String);

/// One reply that is no array; borrows from the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    Status(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Bulk(&'a [u8]),
    Nil,
}

impl Reply<'_> {
    /// The type in words, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Reply::Status(_) => "a status",
            Reply::Error(_) => "an error",
            Reply::Integer(_) => "an integer",
            Reply::Bulk(_) => "a string",
            Reply::Nil => "nil",
        }
    }
}

/// A reply by its place in the buffer, so that the buffer stays free to grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Status(Range<usize>),
    Error(Range<usize>),
    Integer(i64),
    Bulk(Range<usize>),
    Nil,
    /// Elements of an array; -1, an old form of nil, is given as [`Shape::Nil`].
    Array(usize),
}

impl Shape {
    /// The reply itself; `None` for an array. `bytes` are those that were parsed.
    pub(super) fn reply<'a>(&self, bytes: &'a [u8]) -> Option<Reply<'a>> {
        Some(match self {
            Shape::Status(r) => Reply::Status(&bytes[r.clone()]),
            Shape::Error(r) => Reply::Error(&bytes[r.clone()]),
            Shape::Integer(n) => Reply::Integer(*n),
            Shape::Bulk(r) => Reply::Bulk(&bytes[r.clone()]),
            Shape::Nil => Reply::Nil,
            Shape::Array(_) => return None,
        })
    }
}

/// What the bytes so far hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A whole reply (of an array: its head) in the first `used` bytes.
    Whole { shape: Shape, used: usize },
    /// Not yet whole; it takes at least `total` bytes.
    More { total: usize },
}

/// Reads one reply, or the head of an array, from the start of `bytes`.
pub(super) fn parse(bytes: &[u8]) -> Result<Step, Malformed> {
    let Some(&kind) = bytes.first() else { return Ok(Step::More { total: 1 }) };
    if let Some((length, start)) = short_bulk(bytes) {
        return bulk(bytes, start, length);
    }
    if !matches!(kind, b'+' | b'-' | b':' | b'$' | b'*') {
        // Memcached answers ERROR to what it does not know.
        let doubt = if kind == b'E' {
            " (expected RESP2; is this memcached? its URL begins with memcached://)"
        } else {
            ""
        };
        return Err(Malformed(format!("a reply begins with byte {kind:#04x}{doubt}")));
    }
    let Some(end) = line_end(bytes)? else {
        return Ok(Step::More { total: bytes.len() + 1 });
    };
    let line = 1..end;
    let used = end + 2;
    let shape = match kind {
        b'+' => Shape::Status(line),
        b'-' => Shape::Error(line),
        b':' => Shape::Integer(integer(&bytes[line])?),
        b'*' => match length(&bytes[line], ELEMENTS_MAX)? {
            Some(n) => Shape::Array(n),
            None => Shape::Nil,
        },
        _ => match length(&bytes[line], BULK_BYTES_MAX)? {
            Some(n) => return bulk(bytes, used, n),
            None => Shape::Nil,
        },
    };
    Ok(Step::Whole { shape, used })
}

/// Length and start of a string shorter than a million bytes: lists of names are nothing else.
fn short_bulk(bytes: &[u8]) -> Option<(usize, usize)> {
    let [b'$', rest @ ..] = bytes else { return None };
    let digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
    let line = rest.get(..digits + 2).filter(|line| digits > 0 && line.ends_with(b"\r\n"))?;
    let add = |length: usize, digit: &u8| length * 10 + usize::from(digit - b'0');
    Some((line[..digits].iter().fold(0, add), 1 + digits + 2))
}

fn bulk(bytes: &[u8], start: usize, length: usize) -> Result<Step, Malformed> {
    let end = start + length;
    match bytes.get(end..end + 2) {
        None => Ok(Step::More { total: end + 2 }),
        Some(b"\r\n") => Ok(Step::Whole { shape: Shape::Bulk(start..end), used: end + 2 }),
        Some(_) => Err(Malformed(format!("a string of {length} bytes goes on"))),
    }
}

/// Index of the `\r\n` that ends the first line.
fn line_end(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    match window.iter().position(|&b| b == b'\n') {
        Some(at) if at >= 2 && window[at - 1] == b'\r' => Ok(Some(at - 1)),
        Some(_) => Err(Malformed("a line ends without a carriage return".into())),
        None if bytes.len() >= LINE_BYTES_MAX => {
            Err(Malformed(format!("a line is longer than {LINE_BYTES_MAX} bytes")))
        }
        None => Ok(None),
    }
}

fn integer(digits: &[u8]) -> Result<i64, Malformed> {
    let text = std::str::from_utf8(digits).ok().filter(|t| !t.starts_with('+'));
    text.and_then(|t| t.parse().ok()).ok_or_else(|| {
        Malformed(format!(
            "`{}` is no number",
            crate::fault::words(&digits[..digits.len().min(40)])
        ))
    })
}

/// A length of at most `max`; -1 stands for nil.
fn length(digits: &[u8], max: usize) -> Result<Option<usize>, Malformed> {
    match integer(digits)? {
        -1 => Ok(None),
        n => match usize::try_from(n) {
            Ok(n) if n <= max => Ok(Some(n)),
            _ => Err(Malformed(format!("a length of `{n}` (expected 0 to {max})"))),
        },
    }
}

/// Any reply, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A status or a string.
    Text(Vec<u8>),
    /// The server's words.
    Error(Vec<u8>),
    /// A number.
    Integer(i64),
    /// Nothing.
    Nil,
    /// An array.
    List(Vec<Tree>),
}

/// The words of a reply, or its number; empty for nothing and for an array.
pub(super) fn text(tree: Tree) -> String {
    match tree {
        Tree::Text(bytes) | Tree::Error(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Tree::Integer(n) => n.to_string(),
        Tree::Nil | Tree::List(_) => String::new(),
    }
}

/// How far a reply of any type has come. Each byte is looked at about once, however the reply is
/// cut into pieces.
#[derive(Debug)]
pub(super) struct Coming {
    /// Bytes of whole parts.
    at: usize,
    /// Parts that are still due.
    due: usize,
    /// Elements that arrays may still have.
    left: usize,
}

impl Coming {
    pub(super) fn new() -> Self {
        Self { at: 0, due: 1, left: ELEMENTS_MAX }
    }

    /// Whether the reply at the start of `bytes`, which have grown since the last call, is whole;
    /// else how many bytes it takes at least.
    pub(super) fn is_whole(&mut self, bytes: &[u8]) -> Result<Result<(), usize>, Malformed> {
        while self.due > 0 {
            match parse(&bytes[self.at..])? {
                Step::More { total } => return Ok(Err(self.at + total)),
                Step::Whole { shape, used } => {
                    self.at += used;
                    self.due -= 1;
                    if let Shape::Array(n) = shape {
                        let left = self.left.checked_sub(n).ok_or_else(too_long)?;
                        (self.left, self.due) = (left, self.due + n);
                    }
                }
            }
        }
        Ok(Ok(()))
    }
}

fn too_long() -> Malformed {
    Malformed("an array is too deep or too long".into())
}

/// Reads any reply from the start of `bytes`: the reply and its length, or `None` when the bytes
/// do not suffice.
pub(super) fn parse_tree(bytes: &[u8]) -> Result<Option<(Tree, usize)>, Malformed> {
    let mut left = ELEMENTS_MAX;
    branch(bytes, 0, &mut left)
}

fn branch(
    bytes: &[u8],
    depth: usize,
    left: &mut usize,
) -> Result<Option<(Tree, usize)>, Malformed> {
    let Step::Whole { shape, used } = parse(bytes)? else { return Ok(None) };
    let Shape::Array(n) = shape else {
        let tree = match shape.reply(bytes) {
            Some(Reply::Status(b) | Reply::Bulk(b)) => Tree::Text(b.to_vec()),
            Some(Reply::Error(b)) => Tree::Error(b.to_vec()),
            Some(Reply::Integer(n)) => Tree::Integer(n),
            Some(Reply::Nil) | None => Tree::Nil,
        };
        return Ok(Some((tree, used)));
    };
    if depth == DEPTH_MAX || n > *left {
        return Err(too_long());
    }
    *left -= n;
    let mut at = used;
    let mut list = Vec::new();
    for _ in 0..n {
        let Some((tree, used)) = branch(&bytes[at..], depth + 1, left)? else { return Ok(None) };
        list.push(tree);
        at += used;
    }
    Ok(Some((Tree::List(list), at)))
}

/// Appends one request.
pub(super) fn encode(out: &mut Vec<u8>, parts: &[&[u8]]) {
    begin(out, parts.len());
    for part in parts {
        append(out, &[part]);
    }
}

/// Appends the head of a request of `parts` parts, each of which [`append`] appends.
pub(super) fn begin(out: &mut Vec<u8>, parts: usize) {
    head(out, b'*', parts);
}

/// Appends one part of a request, whose pieces are put together.
pub(super) fn append(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    let bytes = pieces.iter().map(|piece| piece.len()).sum();
    out.reserve(HEAD_BYTES_MAX + bytes + 2);
    head(out, b'$', bytes);
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(b"\r\n");
}

fn head(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    append_number(out, number as u64);
    out.extend_from_slice(b"\r\n");
}
