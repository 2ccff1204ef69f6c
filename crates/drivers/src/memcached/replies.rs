//! Replies to text and meta commands for the event loop: counted and judged, never copied.
//!
//! A reply to a text command is one line, but for `get` and its kin, whose values come each as
//! `VALUE <key> <flags> <bytes> [<cas>]\r\n<value>\r\n` with `END\r\n` behind the last, and for
//! statistics, lines of `STAT` that `END\r\n` ends. A reply to a meta command is one line of a code
//! and flags; `VA <bytes> <flags>*\r\n` is followed by `<value>\r\n`.

use load::wire::protocol::{Body, Expect, Judged, Malformed, Parser, Plain, Shape, Step};
use workloads::kv::Values;

use super::judge::{Line, OK, done, line, named};
use crate::lines::{DIGITS_MAX, Lines};

/// Reads the replies of one connection to memcached, to text and meta commands alike.
///
/// The reply to [`Shape::Done`] must be `STORED`, `DELETED`, `TOUCHED`, `OK` or `HD`; that to
/// [`Shape::Value`] one value. `NOT_FOUND`, `NF`, `EN` and a list of no values are misses, whatever
/// the shape. Where a value has a known length, and so is that of the request's key, the name that
/// comes with it must end with the key's number. Lines of more than 64 KiB are malformed.
#[derive(Debug, Default)]
pub struct Replies {
    next: Next,
    /// How the reply is counted as far as it came.
    judged: Option<Judged>,
    lines: Lines,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Line,
    /// Bytes of a value.
    Value {
        body: Body,
        /// False when it came with another key's name.
        is_own: bool,
        listed: bool,
    },
    /// That many bytes of a value that nobody looks at.
    Skip { left: u64, listed: bool },
    /// The line end behind a value.
    End { listed: bool },
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
        if !matches!(self.next, Next::Line) || self.judged.is_some() {
            return None;
        }
        let whole = at_once(bytes, expect, values);
        if whole.is_some() {
            self.lines.forget();
        }
        whole
    }

    fn read(&mut self, bytes: &[u8], expect: &Expect, values: &Values) -> Result<Step, Malformed> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let (used, then) = match self.next {
                Next::Line => self.line(rest, expect)?,
                Next::Value { mut body, is_own, listed } => {
                    let used = body.take(rest, values);
                    self.next = Next::Value { body, is_own, listed };
                    let whole = body.left() == 0;
                    if whole {
                        self.came(if is_own { body.judged() } else { Plain::Wrong }.into());
                        self.next = Next::End { listed };
                    }
                    (used, if whole { Then::GoOn } else { Then::Wait })
                }
                Next::Skip { left, listed } => {
                    let used = usize::try_from(left).map_or(rest.len(), |n| n.min(rest.len()));
                    let left = left - used as u64;
                    self.next =
                        if left > 0 { Next::Skip { left, listed } } else { Next::End { listed } };
                    (used, if left > 0 { Then::Wait } else { Then::GoOn })
                }
                Next::End { listed } => self.end(rest, listed)?,
            };
            at += used;
            match then {
                Then::GoOn => {}
                Then::Wait => return Ok(Step::More { used: at }),
                Then::Whole => {
                    // A list of nothing says that nothing is there.
                    let judged = self.judged.take().unwrap_or(Judged::Miss);
                    return Ok(Step::Whole { used: at, judged });
                }
            }
        }
    }
}

#[inline]
fn at_once(bytes: &[u8], expect: &Expect, values: &Values) -> Option<(usize, Plain)> {
    let (name, length, start, end) = match bytes {
        [b'V', b'A', b'L', b'U', b'E', b' ', rest @ ..] => {
            // The first byte that ends a word must be a blank, and not the end of the line.
            let space = rest.iter().take(256).position(|byte| *byte <= b' ')?;
            let _ = rest[space..].strip_prefix(b" ")?;
            let (_, flags) = short_number(&rest[space + 1..], b" ")?;
            let (length, digits) = short_number(&rest[space + 1 + flags..], b"\r\n")?;
            let start = 6 + space + 1 + flags + digits;
            (Some(&rest[..space]), length, start, &b"\r\nEND\r\n"[..])
        }
        [b'V', b'A', b' ', rest @ ..] => {
            let (length, digits) = short_number(rest, b"\r\n")?;
            (None, length, 3 + digits, &b"\r\n"[..])
        }
        _ if bytes.starts_with(b"STORED\r\n") => return Some((8, done(expect.shape))),
        _ if bytes.starts_with(b"HD\r\n") => return Some((4, done(expect.shape))),
        _ if bytes.starts_with(b"END\r\n") => return Some((5, Plain::Miss)),
        _ if bytes.starts_with(b"EN\r\n") => return Some((4, Plain::Miss)),
        _ => return None,
    };
    let (value, behind) = bytes[start..].split_at_checked(length)?;
    if expect.shape != Shape::Value || !behind.starts_with(end) {
        return None;
    }
    let mut body = Body::new(length, expect);
    body.take(value, values);
    Some((start + length + end.len(), named(name, expect, body.judged())))
}

/// A number of a few digits and the bytes up to the end of what must follow; `None` for all that is
/// not so simple.
fn short_number(bytes: &[u8], behind: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0;
    for (at, byte) in bytes.iter().take(DIGITS_MAX + 1).enumerate() {
        if byte.is_ascii_digit() && at < DIGITS_MAX {
            number = number * 10 + usize::from(byte - b'0');
        } else {
            let follows = at > 0 && bytes[at..].starts_with(behind);
            return follows.then_some((number, at + behind.len()));
        }
    }
    None
}

impl Replies {
    /// A value or a line of a list came: the second of what one was asked for is wrong.
    fn came(&mut self, judged: Judged) {
        self.judged = Some(if self.judged.is_some() { Judged::Wrong } else { judged });
    }

    fn line(&mut self, bytes: &[u8], expect: &Expect) -> Result<(usize, Then), Malformed> {
        let Some(text) = self.lines.first(bytes)? else { return Ok((0, Then::Wait)) };
        let used = text.len() + 2;
        let then = match line(text, expect)? {
            // Behind a part of a list it can only be an error, or the answer to something else.
            Line::Last(judged) => {
                let fits = self.judged.is_none() || matches!(judged, Judged::Error(..));
                self.judged = Some(if fits { judged } else { Judged::Wrong });
                Then::Whole
            }
            Line::End => Then::Whole,
            Line::Listed => {
                self.judged =
                    Some(if expect.shape == Shape::Any { OK } else { Plain::Wrong }.into());
                Then::GoOn
            }
            Line::Value { name, bytes, listed } => {
                let is_own = named(name, expect, OK) == OK;
                self.value(bytes, is_own, listed, expect);
                Then::GoOn
            }
        };
        Ok((used, then))
    }

    fn value(&mut self, bytes: u64, is_own: bool, listed: bool, expect: &Expect) {
        self.next = Next::Skip { left: bytes, listed };
        match (expect.shape, usize::try_from(bytes)) {
            (Shape::Value, Ok(bytes)) => {
                self.next = Next::Value { body: Body::new(bytes, expect), is_own, listed };
            }
            (Shape::Any, _) => self.judged = Some(OK.into()),
            _ => self.judged = Some(Judged::Wrong),
        }
    }

    fn end(&mut self, bytes: &[u8], listed: bool) -> Result<(usize, Then), Malformed> {
        match bytes {
            [b'\r', b'\n', ..] => {}
            [] | [_] => return Ok((0, Then::Wait)),
            _ => return Err(Malformed("a value goes on behind its length".into())),
        }
        self.next = Next::Line;
        Ok((2, if listed { Then::GoOn } else { Then::Whole }))
    }
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
