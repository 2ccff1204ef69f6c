//! Parses replies to text and meta commands for the event loop: classified and counted, never
//! copied.
//!
//! A reply to a text command is one line, with two exceptions. `get` and similar commands return
//! each value as `VALUE <key> <flags> <bytes> [<cas>]\r\n<value>\r\n`, with a final `END\r\n`.
//! Statistics are `STAT` lines followed by `END\r\n`. A reply to a meta command is one line of a
//! code and flags; `VA <bytes> <flags>*\r\n` is followed by `<value>\r\n`.

use load::wire::protocol::{Body, Expect, Judged, Malformed, Parser, Plain, Shape, Step};
use workloads::kv::Values;

use super::judge::{Line, OK, check_name, done, line};
use crate::lines::{DIGITS_MAX, Lines};

/// Parses the replies of one connection to memcached, to both text and meta commands.
///
/// The reply to [`Shape::Done`] must be `STORED`, `DELETED`, `TOUCHED`, `OK` or `HD`, and the reply
/// to [`Shape::Value`] must be one value. `NOT_FOUND`, `NF`, `EN` and an empty list are misses for
/// every shape. If the lengths of the value and of the request's key are known, a key name in the
/// reply must end with the key's number. Lines of more than 64 KiB are malformed.
#[derive(Debug, Default)]
pub struct Replies {
    next: Next,
    /// Classification of the reply so far.
    judged: Option<Judged>,
    lines: Lines,
}

/// Kind of the next bytes.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Line,
    /// Bytes of a value.
    Value {
        body: Body,
        /// False if the reply names a different key.
        is_own: bool,
        listed: bool,
    },
    /// Remaining bytes of a value that is skipped.
    Skip { left: u64, listed: bool },
    /// The line ending after a value.
    End { listed: bool },
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
            let (used, action) = match self.next {
                Next::Line => self.line(rest, expect)?,
                Next::Value { mut body, is_own, listed } => {
                    let used = body.take(rest, values);
                    self.next = Next::Value { body, is_own, listed };
                    let whole = body.left() == 0;
                    if whole {
                        self.record(if is_own { body.judged() } else { Plain::Wrong }.into());
                        self.next = Next::End { listed };
                    }
                    (used, if whole { Action::Continue } else { Action::Wait })
                }
                Next::Skip { left, listed } => {
                    let used = usize::try_from(left).map_or(rest.len(), |n| n.min(rest.len()));
                    let left = left - used as u64;
                    self.next =
                        if left > 0 { Next::Skip { left, listed } } else { Next::End { listed } };
                    (used, if left > 0 { Action::Wait } else { Action::Continue })
                }
                Next::End { listed } => self.end(rest, listed)?,
            };
            at += used;
            match action {
                Action::Continue => {}
                Action::Wait => return Ok(Step::More { used: at }),
                Action::Whole => {
                    // An empty list is a miss.
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
            // The key must end with a space, not with the line.
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
    Some((start + length + end.len(), check_name(name, expect, body.judged())))
}

/// A short number and the bytes up to the end of the expected suffix; `None` for anything less
/// simple.
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
    /// Records a value or a line of a list; a second one is wrong if only one was requested.
    fn record(&mut self, judged: Judged) {
        self.judged = Some(if self.judged.is_some() { Judged::Wrong } else { judged });
    }

    fn line(&mut self, bytes: &[u8], expect: &Expect) -> Result<(usize, Action), Malformed> {
        let Some(text) = self.lines.first(bytes)? else { return Ok((0, Action::Wait)) };
        let used = text.len() + 2;
        let action = match line(text, expect)? {
            // After part of a list, only an error is valid; anything else answers a different
            // request.
            Line::Last(judged) => {
                let fits = self.judged.is_none() || matches!(judged, Judged::Error(..));
                self.judged = Some(if fits { judged } else { Judged::Wrong });
                Action::Whole
            }
            Line::End => Action::Whole,
            Line::Listed => {
                self.judged =
                    Some(if expect.shape == Shape::Any { OK } else { Plain::Wrong }.into());
                Action::Continue
            }
            Line::Value { name, bytes, listed } => {
                let is_own = check_name(name, expect, OK) == OK;
                self.value(bytes, is_own, listed, expect);
                Action::Continue
            }
        };
        Ok((used, action))
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

    fn end(&mut self, bytes: &[u8], listed: bool) -> Result<(usize, Action), Malformed> {
        match bytes {
            [b'\r', b'\n', ..] => {}
            [] | [_] => return Ok((0, Action::Wait)),
            _ => return Err(Malformed("a value continues beyond its length".into())),
        }
        self.next = Next::Line;
        Ok((2, if listed { Action::Continue } else { Action::Whole }))
    }
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
