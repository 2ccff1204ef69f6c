//! RESP2, the protocol of Redis (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).
//!
//! A request is an array of bulk strings: `*<n>\r\n` and n times `$<length>\r\n<bytes>\r\n`. A
//! reply starts with its type: `+` status, `-` error, `:` integer, `$` bulk (length -1: nil), `*`
//! array. [`parse`] parses one reply other than an array without copying; [`parse_tree`] parses any
//! reply, for administration. Both take the bytes received so far and can be called again when
//! there are more.

use std::ops::Range;

use stats::append_number;

/// Longest bulk string and longest whole reply; anything longer is an error before memory is
/// allocated.
pub(super) const BULK_BYTES_MAX: usize = 64 << 20;
/// Longest status, error or number line.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of elements in a reply, and maximum nesting depth.
const ELEMENTS_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 8;
/// A type, a number of at most 20 digits and the line ending.
const HEAD_BYTES_MAX: usize = 23;

/// Bytes that violate the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) String);

/// One reply other than an array; borrows from the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    Status(&'a [u8]),
    Error(&'a [u8]),
    Integer(i64),
    Bulk(&'a [u8]),
    Nil,
}

impl Reply<'_> {
    /// The type's name, for errors.
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

/// A reply as positions in the buffer, so that the buffer can still grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Status(Range<usize>),
    Error(Range<usize>),
    Integer(i64),
    Bulk(Range<usize>),
    Nil,
    /// Number of elements of an array; -1, an old form of nil, becomes [`Shape::Nil`].
    Array(usize),
}

impl Shape {
    /// The reply itself; `None` for an array. `bytes` must be the parsed ones.
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

/// Result of parsing the bytes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A complete reply (for an array, its header) in the first `used` bytes.
    Whole { shape: Shape, used: usize },
    /// Incomplete; at least `total` bytes are needed.
    More { total: usize },
}

/// Parses one reply, or the header of an array, from the start of `bytes`.
pub(super) fn parse(bytes: &[u8]) -> Result<Step, Malformed> {
    let Some(&kind) = bytes.first() else { return Ok(Step::More { total: 1 }) };
    if let Some((length, start)) = short_bulk(bytes) {
        return bulk(bytes, start, length);
    }
    if !matches!(kind, b'+' | b'-' | b':' | b'$' | b'*') {
        // memcached answers unknown commands with ERROR.
        let hint = if kind == b'E' {
            " (expected RESP2; is this memcached? its URL starts with memcached://)"
        } else {
            ""
        };
        return Err(Malformed(format!("a reply starts with byte {kind:#04x}{hint}")));
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

/// Length and start of a string shorter than a million bytes: a fast path for lists of names.
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
        Some(_) => Err(Malformed(format!("a string continues beyond its {length} bytes"))),
    }
}

/// Index of the `\r\n` at the end of the first line.
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
            "`{}` is not a number",
            crate::fault::printable(&digits[..digits.len().min(40)])
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

/// Any reply, as an owned copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A status or a string.
    Text(Vec<u8>),
    /// An error message of the server.
    Error(Vec<u8>),
    /// A number.
    Integer(i64),
    /// Nil.
    Nil,
    /// An array.
    List(Vec<Tree>),
}

/// The text of a reply, or its number as text; empty for nil and for an array.
pub(super) fn text(tree: Tree) -> String {
    match tree {
        Tree::Text(bytes) | Tree::Error(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Tree::Integer(n) => n.to_string(),
        Tree::Nil | Tree::List(_) => String::new(),
    }
}

/// Progress of receiving a reply of any type. Each byte is scanned about once, however the reply is
/// split.
#[derive(Debug)]
pub(super) struct PendingReply {
    /// Bytes of complete parts.
    at: usize,
    /// Parts still due.
    due: usize,
    /// Elements that arrays can still have.
    left: usize,
}

impl PendingReply {
    pub(super) fn new() -> Self {
        Self { at: 0, due: 1, left: ELEMENTS_MAX }
    }

    /// Checks whether the reply at the start of `bytes`, which have grown since the last call, is
    /// complete; otherwise returns the minimum number of bytes it needs.
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

/// Parses any reply from the start of `bytes`: the reply and its length, or `None` if it is
/// incomplete.
pub(super) fn parse_tree(bytes: &[u8]) -> Result<Option<(Tree, usize)>, Malformed> {
    let mut left = ELEMENTS_MAX;
    parse_branch(bytes, 0, &mut left)
}

fn parse_branch(
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
        let Some((tree, used)) = parse_branch(&bytes[at..], depth + 1, left)? else {
            return Ok(None);
        };
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

/// Appends the header of a request with `parts` parts; append each of them with [`append`].
pub(super) fn begin(out: &mut Vec<u8>, parts: usize) {
    head(out, b'*', parts);
}

/// Appends one part of a request; its pieces are concatenated.
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
