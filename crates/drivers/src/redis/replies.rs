//! Parses RESP2 and RESP3 replies for the event loop: classified and counted, never copied.
//!
//! An element starts with its type. One-line elements: `+` status, `-` error, `:` integer, `,`
//! double, `#` boolean, `(` big number, `_` nil. Strings: `$` bulk, `=` verbatim (with a
//! three-letter format and a colon first), `!` error, each `<length>\r\n<bytes>\r\n`. Aggregates:
//! `*` array, `~` set, `>` push, each of n elements; `%` map and `|` attribute, each of 2n. With
//! `?` as its length, a string consists of chunks `;<length>\r\n<bytes>\r\n` up to an empty one,
//! and `*`, `~` and `%` end with `.\r\n`. In RESP2, nil is `$-1` or `*-1`. A push does not answer a
//! request, and an attribute is not an element. Sources:
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/> and
//! <https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md>.

use load::wire::protocol::{Body, Expect, Judged, Malformed, Parser, Plain, Shape, Step};
use workloads::kv::Values;

use super::judge::{
    check_line, failed, invalid_line, nil, other, redirect, short_number, status, whole_string,
};
use crate::lines::{Lines, MESSAGE_BYTES_MAX, length, missing_carriage_return};

/// Maximum nesting depth of aggregates.
const DEPTH_MAX: usize = 32;
/// Most elements of one reply, including nested ones.
const ELEMENTS_MAX: u64 = 1 << 32;

/// Parses the replies of one connection to a server of the Redis protocol.
///
/// The reply to [`Shape::Done`] must be `+OK`, the reply to [`Shape::Value`] a string or nil, and
/// the reply to [`Shape::Any`] anything that neither is nor contains an error. Lines of more than
/// 64 KiB, more than 32 nested aggregates and more than 2^32 elements are malformed.
#[derive(Debug, Default)]
pub struct Replies {
    next: Next,
    /// Incomplete aggregates, outermost first.
    open: Vec<Open>,
    /// Elements announced so far in the current reply.
    elements: u64,
    /// Classification of the current reply, once known.
    judged: Option<Judged>,
    lines: Lines,
    /// The value received in chunks; `None` if it was not requested or its length is unknown.
    streamed: Option<Body>,
    /// Start of the message of an error string.
    words: Vec<u8>,
}

/// Kind of the next bytes.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    /// The first line of an element.
    #[default]
    Item,
    /// Bytes of the requested value.
    Value(Body),
    /// Remaining bytes of a string that is skipped.
    Skip(u64),
    /// Remaining bytes of an error message.
    Words(u64),
    /// The first line of a chunk.
    Pieces,
    /// Remaining bytes of a chunk.
    Piece(u64),
    /// The line ending after a string.
    End(Ended),
}

/// What a line ending terminates.
#[derive(Clone, Copy, Debug)]
enum Ended {
    Element,
    Words,
    Piece,
}

/// An aggregate whose elements are being read.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Elements still due; `None` until an end mark.
    left: Option<u64>,
    /// True for a push and an attribute, which are not elements themselves.
    out_of_band: bool,
}

/// Next action after some bytes were consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Continue,
    /// More bytes are needed.
    Wait,
    /// The reply is complete.
    Whole,
}

impl Parser for Replies {
    #[inline]
    fn at_once(
        &mut self,
        bytes: &[u8],
        expect: &Expect,
        values: &Values,
    ) -> Option<(usize, Plain)> {
        if !matches!(self.next, Next::Item) || !self.open.is_empty() {
            return None;
        }
        let whole = match bytes.first()? {
            b'$' => string_at_once(bytes, expect, values),
            b'+' if bytes.starts_with(b"+OK\r\n") => Some((5, status(b"OK", expect.shape))),
            b':' => short_number(&bytes[1..]).map(|(_, head)| (1 + head, other(expect.shape))),
            _ => None,
        };
        if whole.is_some() {
            self.lines.forget();
        }
        whole
    }

    fn read(&mut self, bytes: &[u8], expect: &Expect, values: &Values) -> Result<Step, Malformed> {
        let mut at = 0;
        loop {
            if matches!(self.next, Next::Item) {
                at += self.strings(&bytes[at..]);
            }
            let rest = &bytes[at..];
            let (used, then) = match self.next {
                Next::Item => self.item(rest, expect)?,
                Next::Value(body) => self.value(body, rest, values),
                Next::Skip(left) => {
                    let (used, left) = taken(left, rest);
                    self.continue_string(used, left, Next::Skip, Ended::Element)
                }
                Next::Words(left) => {
                    let (used, left) = taken(left, rest);
                    let room = MESSAGE_BYTES_MAX.saturating_sub(self.words.len());
                    self.words.extend_from_slice(&rest[..used.min(room)]);
                    self.continue_string(used, left, Next::Words, Ended::Words)
                }
                Next::Pieces => self.pieces(rest)?,
                Next::Piece(left) => self.piece(left, rest, values),
                Next::End(ended) => self.end(ended, rest)?,
            };
            at += used;
            match then {
                Action::Continue => {}
                Action::Wait => return Ok(Step::More { used: at }),
                Action::Whole => {
                    self.elements = 0;
                    let judged = self.judged.take().unwrap_or(Judged::Wrong);
                    return Ok(Step::Whole { used: at, judged });
                }
            }
        }
    }
}

#[inline]
fn string_at_once(bytes: &[u8], expect: &Expect, values: &Values) -> Option<(usize, Plain)> {
    let Some((value, used)) = whole_string(bytes) else {
        return bytes.starts_with(b"$-1\r\n").then(|| (5, nil(expect.shape)));
    };
    if expect.shape != Shape::Value {
        return Some((used, other(expect.shape)));
    }
    let mut body = Body::new(value.len(), expect);
    body.take(value, values);
    Some((used, body.judged()))
}

impl Replies {
    /// Skips complete bulk strings except the last one of their aggregate; returns the bytes
    /// skipped.
    fn strings(&mut self, bytes: &[u8]) -> usize {
        let Some(Open { left: Some(left), .. }) = self.open.last_mut() else { return 0 };
        let mut at = 0;
        while *left > 1
            && let Some((_, used)) = whole_string(&bytes[at..])
        {
            at += used;
            *left -= 1;
            self.lines.forget();
        }
        at
    }

    /// Parses the first line of an element, which is the whole element for one-line types.
    fn item(&mut self, bytes: &[u8], expect: &Expect) -> Result<(usize, Action), Malformed> {
        let Some(&kind) = bytes.first() else { return Ok((0, Action::Wait)) };
        if !b"+-:$*_#,(!=%~>|.".contains(&kind) {
            return Err(Malformed(format!("a reply starts with byte {kind:#04x} (expected RESP)")));
        }
        let Some(line) = self.line(bytes)? else { return Ok((0, Action::Wait)) };
        let used = line.len() + 3;
        let shape = expect.shape;
        let then = match kind {
            b'+' => self.leaf(|| status(line, shape).into())?,
            b'-' => self.error(line)?,
            b':' | b',' | b'#' | b'(' => {
                check_line(kind, line)?;
                self.leaf(|| other(shape).into())?
            }
            b'_' if line.is_empty() => self.leaf(|| nil(shape).into())?,
            b'$' | b'*' if line == b"-1" => self.leaf(|| nil(shape).into())?,
            b'$' if line == b"?" => {
                self.streamed = self.begin_chunks(expect);
                self.next = Next::Pieces;
                Action::Continue
            }
            b'$' => {
                self.string(length(line)?, expect);
                Action::Continue
            }
            b'=' => return self.verbatim(length(line)?, used, bytes, expect),
            b'!' => {
                self.words.clear();
                self.next = Next::Words(length(line)?);
                Action::Continue
            }
            b'*' | b'~' | b'%' if line == b"?" => self.aggregate(None, false, shape)?,
            b'*' | b'~' => self.aggregate(Some(length(line)?), false, shape)?,
            b'%' => self.aggregate(Some(length(line)? * 2), false, shape)?,
            b'>' => self.aggregate(Some(length(line)?), true, shape)?,
            b'|' => self.aggregate(Some(length(line)? * 2), true, shape)?,
            b'.' if line.is_empty() => self.end_mark()?,
            _ => return Err(invalid_line(kind, line)),
        };
        Ok((used, then))
    }

    /// The rest of the first line of `bytes` after the type; `None` if incomplete.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        let line = self.lines.first(bytes)?;
        line.map(|line| line.get(1..).ok_or_else(missing_carriage_return)).transpose()
    }

    /// Handles a one-line element; classifies it if it is the reply itself.
    fn leaf(&mut self, judge: impl FnOnce() -> Judged) -> Result<Action, Malformed> {
        if self.open.is_empty() {
            self.judged = Some(judge());
        }
        self.element_done()
    }

    /// Handles an error: the reply itself or one of its elements, but not one in a push or
    /// attribute.
    fn error(&mut self, words: &[u8]) -> Result<Action, Malformed> {
        if self.open.is_empty() {
            self.judged = Some(redirect(words).unwrap_or_else(|| failed(words)));
        } else if !self.open.iter().any(|open| open.out_of_band)
            && matches!(self.judged, Some(Judged::Ok { .. }))
        {
            self.judged = Some(failed(words));
        }
        self.element_done()
    }

    /// Starts a string of `bytes` bytes.
    fn string(&mut self, bytes: u64, expect: &Expect) {
        self.next = Next::Skip(bytes);
        if !self.open.is_empty() {
            return;
        }
        match usize::try_from(bytes) {
            Ok(bytes) if expect.shape == Shape::Value => {
                self.next = Next::Value(Body::new(bytes, expect));
            }
            _ => self.judged = Some(other(expect.shape).into()),
        }
    }

    /// Starts a string whose first four bytes are its format and not part of the value.
    fn verbatim(
        &mut self,
        bytes: u64,
        used: usize,
        all: &[u8],
        expect: &Expect,
    ) -> Result<(usize, Action), Malformed> {
        let Some(bytes) = bytes.checked_sub(4) else {
            return Err(Malformed(format!("a verbatim string of {bytes} bytes (expected 4)")));
        };
        let Some(format) = all.get(used..used + 4) else { return Ok((0, Action::Wait)) };
        if format[3] != b':' {
            return Err(Malformed("a verbatim string has no format".into()));
        }
        self.string(bytes, expect);
        Ok((used + 4, Action::Continue))
    }

    /// Starts an aggregate of `elements` elements, or, for `None`, one that ends with an end mark.
    fn aggregate(
        &mut self,
        elements: Option<u64>,
        out_of_band: bool,
        shape: Shape,
    ) -> Result<Action, Malformed> {
        if self.open.is_empty() && !out_of_band {
            self.judged = Some(other(shape).into());
        }
        if elements == Some(0) {
            return if out_of_band { Ok(Action::Continue) } else { self.element_done() };
        }
        if self.open.len() == DEPTH_MAX {
            let problem = format!("more than {DEPTH_MAX} nested aggregates");
            return Err(Malformed(problem));
        }
        self.count(elements.unwrap_or(0))?;
        self.open.push(Open { left: elements, out_of_band });
        Ok(Action::Continue)
    }

    fn end_mark(&mut self) -> Result<Action, Malformed> {
        match self.open.last() {
            Some(Open { left: None, .. }) => {
                self.open.pop();
                self.element_done()
            }
            _ => Err(Malformed("an end mark outside a streamed aggregate".into())),
        }
    }

    /// Counts elements of the current reply.
    fn count(&mut self, elements: u64) -> Result<(), Malformed> {
        self.elements = self.elements.saturating_add(elements);
        if self.elements > ELEMENTS_MAX {
            return Err(Malformed(format!("a reply has more than {ELEMENTS_MAX} elements")));
        }
        Ok(())
    }

    /// Completes an element and any aggregates that end with it.
    fn element_done(&mut self) -> Result<Action, Malformed> {
        self.next = Next::Item;
        loop {
            let Some(open) = self.open.last_mut() else { return Ok(Action::Whole) };
            let Some(left) = &mut open.left else {
                self.count(1)?;
                return Ok(Action::Continue);
            };
            *left -= 1;
            if *left > 0 {
                return Ok(Action::Continue);
            }
            let out_of_band = open.out_of_band;
            self.open.pop();
            if out_of_band {
                if self.open.is_empty() {
                    self.elements = 0;
                }
                return Ok(Action::Continue);
            }
        }
    }

    /// Bytes of the requested value.
    fn value(&mut self, mut body: Body, bytes: &[u8], values: &Values) -> (usize, Action) {
        let used = body.take(bytes, values);
        if body.left() > 0 {
            self.next = Next::Value(body);
            return (used, Action::Wait);
        }
        self.judged = Some(body.judged().into());
        self.next = Next::End(Ended::Element);
        (used, Action::Continue)
    }

    /// Continues after consuming `used` bytes of a string, of which `left` remain.
    fn continue_string(
        &mut self,
        used: usize,
        left: u64,
        next: fn(u64) -> Next,
        ended: Ended,
    ) -> (usize, Action) {
        if left > 0 {
            self.next = next(left);
            return (used, Action::Wait);
        }
        self.next = Next::End(ended);
        (used, Action::Continue)
    }

    /// The line ending after a string.
    fn end(&mut self, ended: Ended, bytes: &[u8]) -> Result<(usize, Action), Malformed> {
        match bytes {
            [b'\r', b'\n', ..] => {}
            [] | [_] => return Ok((0, Action::Wait)),
            _ => return Err(Malformed("a string continues beyond its length".into())),
        }
        let then = match ended {
            Ended::Element => self.element_done()?,
            Ended::Words => {
                let words = std::mem::take(&mut self.words);
                let then = self.error(&words)?;
                self.words = words;
                then
            }
            Ended::Piece => {
                self.next = Next::Pieces;
                Action::Continue
            }
        };
        Ok((2, then))
    }

    /// Starts a string in chunks; returns its comparison if it was requested and its length is
    /// known.
    fn begin_chunks(&mut self, expect: &Expect) -> Option<Body> {
        if !self.open.is_empty() {
            return None;
        }
        self.judged = Some(match expect.shape {
            Shape::Value => Judged::Ok { verified: false },
            shape => other(shape).into(),
        });
        let bytes = expect.bytes.filter(|_| expect.shape == Shape::Value)?;
        Some(Body::new(bytes as usize, expect))
    }

    /// The first line of a chunk.
    fn pieces(&mut self, bytes: &[u8]) -> Result<(usize, Action), Malformed> {
        match bytes.first() {
            None => return Ok((0, Action::Wait)),
            Some(b';') => {}
            Some(kind) => {
                let problem = format!("a chunk starts with byte {kind:#04x} (expected `;`)");
                return Err(Malformed(problem));
            }
        }
        let Some(line) = self.line(bytes)? else { return Ok((0, Action::Wait)) };
        let used = line.len() + 3;
        let left = length(line)?;
        if left > 0 {
            self.next = Next::Piece(left);
            return Ok((used, Action::Continue));
        }
        if let Some(body) = self.streamed.take()
            && self.judged != Some(Judged::Wrong)
        {
            let whole = body.left() == 0;
            self.judged = Some(if whole { body.judged() } else { Plain::Wrong }.into());
        }
        Ok((used, self.element_done()?))
    }

    /// Consumes bytes of a chunk.
    fn piece(&mut self, left: u64, bytes: &[u8], values: &Values) -> (usize, Action) {
        let (used, left) = taken(left, bytes);
        if let Some(body) = &mut self.streamed
            && body.take(&bytes[..used], values) < used
        {
            // Longer than the value.
            self.judged = Some(Judged::Wrong);
        }
        self.continue_string(used, left, Next::Piece, Ended::Piece)
    }
}

/// Number of the `left` bytes that are available, and the number that remain after them.
fn taken(left: u64, bytes: &[u8]) -> (usize, u64) {
    let used = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    (used, left - used as u64)
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
