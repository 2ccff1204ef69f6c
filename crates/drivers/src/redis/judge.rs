//! Classification of Redis replies by type and text, and line syntax checks; no I/O.

use load::wire::protocol::{Judged, Malformed, Plain, Shape};

use super::errors::error_class;
use crate::fault;
use crate::lines::{DIGITS_MAX, MESSAGE_BYTES_MAX};

#[inline]
pub(super) fn status(words: &[u8], shape: Shape) -> Plain {
    match shape {
        Shape::Done if words != b"OK" => Plain::Wrong,
        Shape::Value => Plain::Wrong,
        Shape::Any | Shape::Done => Plain::Ok { verified: false },
    }
}

#[inline]
pub(super) fn nil(shape: Shape) -> Plain {
    if shape == Shape::Value { Plain::Miss } else { other(shape) }
}

/// A reply that is neither a value nor `OK`.
#[inline]
pub(super) fn other(shape: Shape) -> Plain {
    if shape == Shape::Any { Plain::Ok { verified: false } } else { Plain::Wrong }
}

pub(super) fn failed(words: &[u8]) -> Judged {
    let text = fault::printable_within(words, MESSAGE_BYTES_MAX);
    Judged::Error(error_class(&text), text)
}

/// `MOVED <slot> <host>:<port>` and `ASK …` with a valid slot and port. The host can be empty (the
/// server that sent it) and contain colons.
pub(super) fn redirect(words: &[u8]) -> Option<Judged> {
    let for_good = words.starts_with(b"MOVED ");
    if !for_good && !words.starts_with(b"ASK ") {
        return None;
    }
    let mut parts = std::str::from_utf8(words).ok()?.split(' ').skip(1);
    let slot: u16 = parts.next()?.parse().ok()?;
    let address = parts.next()?;
    let (_, port) = address.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let possible = slot < super::cluster::SLOTS && port > 0;
    possible.then(|| Judged::Redirected { address: address.into(), for_good })
}

/// Checks the syntax of a one-line element.
pub(super) fn check_line(kind: u8, line: &[u8]) -> Result<(), Malformed> {
    let unsigned = line.strip_prefix(b"-").or(line.strip_prefix(b"+")).unwrap_or(line);
    let good = match kind {
        b'#' => matches!(line, b"t" | b"f"),
        b',' => matches!(unsigned, b"inf" | b"nan") || unsigned.iter().any(u8::is_ascii_digit),
        _ => !unsigned.is_empty() && unsigned.iter().all(u8::is_ascii_digit),
    };
    if good { Ok(()) } else { Err(invalid_line(kind, line)) }
}

pub(super) fn invalid_line(kind: u8, line: &[u8]) -> Malformed {
    let text = fault::printable(&line[..line.len().min(40)]);
    Malformed(format!("`{}{text}` is not a RESP element", char::from(kind)))
}

/// A complete bulk string and its length in bytes including its first line; `None` if incomplete.
#[inline]
pub(super) fn whole_string(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let (length, head) = short_number(bytes.strip_prefix(b"$")?)?;
    let (value, behind) = bytes[1 + head..].split_at_checked(length)?;
    behind.starts_with(b"\r\n").then_some((value, 1 + head + length + 2))
}

/// A short number and the length of its line in bytes; `None` for anything less simple.
#[inline]
pub(super) fn short_number(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 && at < DIGITS_MAX {
            number = number * 10 + usize::from(digit);
            continue;
        }
        let ends = at > 0 && *byte == b'\r' && bytes.get(at + 1) == Some(&b'\n');
        return ends.then_some((number, at + 2));
    }
    None
}
