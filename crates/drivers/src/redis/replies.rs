//! Replies of RESP2 and RESP3 for the event loop: counted and judged, never copied.
//!
//! An element begins with its type. Those of one line: `+` status, `-` error, `:` integer, `,`
//! double, `#` boolean, `(` big number, `_` nil. Strings: `$` bulk, `=` verbatim (a format of three
//! letters and a colon come first), `!` error, each `<length>\r\n<bytes>\r\n`. Aggregates: `*`
//! array, `~` set, `>` push, each of n elements; `%` map and `|` attribute, each of 2n. With `?`
//! for the a string comes in pieces `;<length>\r\n<bytes>\r\n` that an empty one ends, and
//! `*`, `~` and `%` end with `.\r\n`. In RESP2 nil is `$-1` or `*-1`. A push answers no request,
//! and an attribute is no element of its own. Sources:
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/> and
//! <https://github.com/redis/redis-specifications/blob/master/protocol/RESP3.md>.

use load::wire::protocol::{Body, Expect, Judged, Malformed, Parser, Plain, Shape, Step};
use workloads::kv::Values;

use super::judge::{
    check_line, elsewhere, failed, nil, no_line, other, short_number, status, whole_string,
};
use crate::lines::{Lines, WORDS_BYTES_MAX, length, no_return};

/// How deep aggregates may lie in aggregates.
const DEPTH_MAX: usize = 32;
/// Most elements of one reply, over all of its aggregates.
const ELEMENTS_MAX: u64 = 1 << 32;

/// Reads the replies of one connection to a server of the Redis protocol.
///
/// The reply to [`Shape::Done`] must be `+OK`; that to [`Shape::Value`] a string or nil; that to
/// [`Shape::Any`] anything that is no error and holds none. Lines of more than 64 KiB, more than 32
/// aggregates within each other and more than 2^32 elements are malformed.
#[derive(Debug, Default)]
pub struct Replies {
    next: Next,
    /// Aggregates that are not complete, the outermost first.
    open: Vec<Open>,
    /// Elements that the reply at hand announced so far.
    elements: u64,
    /// How the reply at hand is counted, once that is known.
    judged: Option<Judged>,
    lines: Lines,
    /// The value that comes in pieces; `None` where nobody asks for it or knows its length.
    streamed: Option<Body>,
    /// First words of an error that comes as a string.
    words: Vec<u8>,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    /// The first line of an element.
    #[default]
    Item,
    /// Bytes of the value that was asked for.
    Value(Body),
    /// That many bytes of a string that nobody looks at.
    Skip(u64),
    /// That many bytes of an error.
    Words(u64),
    /// The first line of a piece.
    Pieces,
    /// That many bytes of a piece.
    Piece(u64),
    /// The line end behind a string.
    End(Ended),
}

/// What a line end ends.
#[derive(Clone, Copy, Debug)]
enum Ended {
    Element,
    Words,
    Piece,
}

/// An aggregate whose elements are being read.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Elements to come; `None` until an end mark.
    left: Option<u64>,
    /// True for a push and an attribute, which are no elements themselves.
    aside: bool,
}

/// How it goes on after some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
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
                    self.go_on(used, left, Next::Skip, Ended::Element)
                }
                Next::Words(left) => {
                    let (used, left) = taken(left, rest);
                    let room = WORDS_BYTES_MAX.saturating_sub(self.words.len());
                    self.words.extend_from_slice(&rest[..used.min(room)]);
                    self.go_on(used, left, Next::Words, Ended::Words)
                }
                Next::Pieces => self.pieces(rest)?,
                Next::Piece(left) => self.piece(left, rest, values),
                Next::End(ended) => self.end(ended, rest)?,
            };
            at += used;
            match then {
                Then::GoOn => {}
                Then::Wait => return Ok(Step::More { used: at }),
                Then::Whole => {
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
    /// Skips bulk strings that are at hand, all but the last of their aggregate; the bytes of them.
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

    /// The first line of an element, and all of it where it has one line only.
    fn item(&mut self, bytes: &[u8], expect: &Expect) -> Result<(usize, Then), Malformed> {
        let Some(&kind) = bytes.first() else { return Ok((0, Then::Wait)) };
        if !b"+-:$*_#,(!=%~>|.".contains(&kind) {
            return Err(Malformed(format!("a reply begins with byte {kind:#04x} (expected RESP)")));
        }
        let Some(line) = self.line(bytes)? else { return Ok((0, Then::Wait)) };
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
                self.streamed = self.begin_pieces(expect);
                self.next = Next::Pieces;
                Then::GoOn
            }
            b'$' => {
                self.string(length(line)?, expect);
                Then::GoOn
            }
            b'=' => return self.verbatim(length(line)?, used, bytes, expect),
            b'!' => {
                self.words.clear();
                self.next = Next::Words(length(line)?);
                Then::GoOn
            }
            b'*' | b'~' | b'%' if line == b"?" => self.aggregate(None, false, shape)?,
            b'*' | b'~' => self.aggregate(Some(length(line)?), false, shape)?,
            b'%' => self.aggregate(Some(length(line)? * 2), false, shape)?,
            b'>' => self.aggregate(Some(length(line)?), true, shape)?,
            b'|' => self.aggregate(Some(length(line)? * 2), true, shape)?,
            b'.' if line.is_empty() => self.end_mark()?,
            _ => return Err(no_line(kind, line)),
        };
        Ok((used, then))
    }

    /// The text between the type at the start of `bytes` and its line's end; `None` when that has
    /// not come yet.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        let line = self.lines.first(bytes)?;
        line.map(|line| line.get(1..).ok_or_else(no_return)).transpose()
    }

    /// An element of one line; judged where it is the reply itself.
    fn leaf(&mut self, judge: impl FnOnce() -> Judged) -> Result<Then, Malformed> {
        if self.open.is_empty() {
            self.judged = Some(judge());
        }
        self.element_done()
    }

    /// An error: the reply itself or, but for what was told aside, an element of it.
    fn error(&mut self, words: &[u8]) -> Result<Then, Malformed> {
        if self.open.is_empty() {
            self.judged = Some(elsewhere(words).unwrap_or_else(|| failed(words)));
        } else if !self.open.iter().any(|open| open.aside)
            && matches!(self.judged, Some(Judged::Ok { .. }))
        {
            self.judged = Some(failed(words));
        }
        self.element_done()
    }

    /// A string of that many bytes begins.
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

    /// A string whose first four bytes name its format and are no part of the value.
    fn verbatim(
        &mut self,
        bytes: u64,
        used: usize,
        all: &[u8],
        expect: &Expect,
    ) -> Result<(usize, Then), Malformed> {
        let Some(bytes) = bytes.checked_sub(4) else {
            return Err(Malformed(format!("a verbatim string of {bytes} bytes (expected 4)")));
        };
        let Some(format) = all.get(used..used + 4) else { return Ok((0, Then::Wait)) };
        if format[3] != b':' {
            return Err(Malformed("a verbatim string names no format".into()));
        }
        self.string(bytes, expect);
        Ok((used + 4, Then::GoOn))
    }

    /// An aggregate of that many elements begins; `None` for one that an end mark ends.
    fn aggregate(
        &mut self,
        elements: Option<u64>,
        aside: bool,
        shape: Shape,
    ) -> Result<Then, Malformed> {
        if self.open.is_empty() && !aside {
            self.judged = Some(other(shape).into());
        }
        if elements == Some(0) {
            return if aside { Ok(Then::GoOn) } else { self.element_done() };
        }
        if self.open.len() == DEPTH_MAX {
            let problem = format!("more than {DEPTH_MAX} aggregates lie within each other");
            return Err(Malformed(problem));
        }
        self.count(elements.unwrap_or(0))?;
        self.open.push(Open { left: elements, aside });
        Ok(Then::GoOn)
    }

    fn end_mark(&mut self) -> Result<Then, Malformed> {
        match self.open.last() {
            Some(Open { left: None, .. }) => {
                self.open.pop();
                self.element_done()
            }
            _ => Err(Malformed("an end mark where no aggregate is streamed".into())),
        }
    }

    /// Counts elements of the reply at hand.
    fn count(&mut self, elements: u64) -> Result<(), Malformed> {
        self.elements = self.elements.saturating_add(elements);
        if self.elements > ELEMENTS_MAX {
            return Err(Malformed(format!("a reply has more than {ELEMENTS_MAX} elements")));
        }
        Ok(())
    }

    /// An element is complete, and with it perhaps the aggregates that it is the last of.
    fn element_done(&mut self) -> Result<Then, Malformed> {
        self.next = Next::Item;
        loop {
            let Some(open) = self.open.last_mut() else { return Ok(Then::Whole) };
            let Some(left) = &mut open.left else {
                self.count(1)?;
                return Ok(Then::GoOn);
            };
            *left -= 1;
            if *left > 0 {
                return Ok(Then::GoOn);
            }
            let aside = open.aside;
            self.open.pop();
            if aside {
                if self.open.is_empty() {
                    self.elements = 0;
                }
                return Ok(Then::GoOn);
            }
        }
    }

    /// Bytes of the value that was asked for.
    fn value(&mut self, mut body: Body, bytes: &[u8], values: &Values) -> (usize, Then) {
        let used = body.take(bytes, values);
        if body.left() > 0 {
            self.next = Next::Value(body);
            return (used, Then::Wait);
        }
        self.judged = Some(body.judged().into());
        self.next = Next::End(Ended::Element);
        (used, Then::GoOn)
    }

    /// Some bytes of a string were taken, and that many are left of it.
    fn go_on(
        &mut self,
        used: usize,
        left: u64,
        next: fn(u64) -> Next,
        ended: Ended,
    ) -> (usize, Then) {
        if left > 0 {
            self.next = next(left);
            return (used, Then::Wait);
        }
        self.next = Next::End(ended);
        (used, Then::GoOn)
    }

    /// The line end behind a string.
    fn end(&mut self, ended: Ended, bytes: &[u8]) -> Result<(usize, Then), Malformed> {
        match bytes {
            [b'\r', b'\n', ..] => {}
            [] | [_] => return Ok((0, Then::Wait)),
            _ => return Err(Malformed("a string goes on behind its length".into())),
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
                Then::GoOn
            }
        };
        Ok((2, then))
    }

    /// A string in pieces begins: what compares it, where somebody asks for it and knows its
    /// length.
    fn begin_pieces(&mut self, expect: &Expect) -> Option<Body> {
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

    /// The first line of a piece.
    fn pieces(&mut self, bytes: &[u8]) -> Result<(usize, Then), Malformed> {
        match bytes.first() {
            None => return Ok((0, Then::Wait)),
            Some(b';') => {}
            Some(kind) => {
                let problem = format!("a piece begins with byte {kind:#04x} (expected `;`)");
                return Err(Malformed(problem));
            }
        }
        let Some(line) = self.line(bytes)? else { return Ok((0, Then::Wait)) };
        let used = line.len() + 3;
        let left = length(line)?;
        if left > 0 {
            self.next = Next::Piece(left);
            return Ok((used, Then::GoOn));
        }
        if let Some(body) = self.streamed.take()
            && self.judged != Some(Judged::Wrong)
        {
            let whole = body.left() == 0;
            self.judged = Some(if whole { body.judged() } else { Plain::Wrong }.into());
        }
        Ok((used, self.element_done()?))
    }

    /// Bytes of a piece.
    fn piece(&mut self, left: u64, bytes: &[u8], values: &Values) -> (usize, Then) {
        let (used, left) = taken(left, bytes);
        if let Some(body) = &mut self.streamed
            && body.take(&bytes[..used], values) < used
        {
            // More than the value has.
            self.judged = Some(Judged::Wrong);
        }
        self.go_on(used, left, Next::Piece, Ended::Piece)
    }
}

/// How many of `left` bytes are at hand, and how many are left then.
fn taken(left: u64, bytes: &[u8]) -> (usize, u64) {
    let used = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
    (used, left - used as u64)
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
