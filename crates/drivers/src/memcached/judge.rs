//! Classification of memcached replies by their text; no I/O.

use load::wire::protocol::{Expect, Judged, Malformed, Plain, Shape};
use model::ErrorClass;

use crate::fault;
use crate::lines::{MESSAGE_BYTES_MAX, length};

pub(super) const OK: Plain = Plain::Ok { verified: false };

/// Meaning of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A complete reply, or the last line of one.
    Last(Judged),
    /// The end of a list, which may be empty.
    End,
    /// A line of a list.
    Listed,
    /// A value of `bytes` bytes follows. `name` is its key, if the reply contains it.
    Value { name: Option<&'a [u8]>, bytes: u64, listed: bool },
}

/// Parses a line without its line ending.
pub(super) fn line<'a>(line: &'a [u8], expect: &Expect) -> Result<Line<'a>, Malformed> {
    let (word, rest) = match line.iter().position(|byte| *byte == b' ') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, &line[line.len()..]),
    };
    let plain = match word {
        b"VALUE" => return value(rest),
        b"VA" => return meta_value(rest),
        b"END" => return Ok(Line::End),
        b"STAT" | b"ITEM" => return Ok(Line::Listed),
        b"STORED" | b"DELETED" | b"TOUCHED" | b"OK" => done(expect.shape),
        b"HD" => {
            check_name(flag(rest, b'k').filter(|_| !is_base64(rest)), expect, done(expect.shape))
        }
        b"NOT_FOUND" | b"NF" | b"EN" => Plain::Miss,
        b"NOT_STORED" | b"EXISTS" | b"NS" | b"EX" | b"VERSION" | b"RESET" | b"MN" | b"ME" => {
            other(expect.shape)
        }
        b"ERROR" | b"CLIENT_ERROR" | b"SERVER_ERROR" => return Ok(Line::Last(failed(line))),
        _ if !line.is_empty() && line.iter().all(u8::is_ascii_digit) => other(expect.shape),
        _ => {
            let text = fault::printable(&line[..line.len().min(40)]);
            return Err(Malformed(format!(
                "`{text}` is not a reply (expected memcached's protocol)"
            )));
        }
    };
    Ok(Line::Last(plain.into()))
}

/// `VALUE <key> <flags> <bytes> [<cas>]`.
fn value(rest: &[u8]) -> Result<Line<'_>, Malformed> {
    let mut words = rest.split(|byte| *byte == b' ');
    let name = words.next();
    let bytes = words.nth(1).ok_or_else(|| Malformed("a value without a length".into()))?;
    Ok(Line::Value { name, bytes: length(bytes)?, listed: true })
}

/// `VA <bytes> <flags>*`. The flag `k` returns the key, and `b` marks it as base64.
fn meta_value(rest: &[u8]) -> Result<Line<'_>, Malformed> {
    let (bytes, flags) = match rest.iter().position(|byte| *byte == b' ') {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &rest[rest.len()..]),
    };
    let name = if flags.is_empty() || is_base64(flags) { None } else { flag(flags, b'k') };
    Ok(Line::Value { name, bytes: length(bytes)?, listed: false })
}

/// The token after a flag's letter.
fn flag(flags: &[u8], letter: u8) -> Option<&[u8]> {
    flags.split(|byte| *byte == b' ').find_map(|flag| flag.strip_prefix(&[letter]))
}

fn is_base64(flags: &[u8]) -> bool {
    flags.split(|byte| *byte == b' ').any(|flag| flag == b"b")
}

pub(super) fn done(shape: Shape) -> Plain {
    if shape == Shape::Value { Plain::Wrong } else { OK }
}

/// A reply that is neither a value nor a confirmation.
fn other(shape: Shape) -> Plain {
    if shape == Shape::Any { OK } else { Plain::Wrong }
}

/// Returns `judged`, or `Wrong` if the reply names a different key than the requested one.
pub(super) fn check_name(name: Option<&[u8]>, expect: &Expect, judged: Plain) -> Plain {
    match name {
        Some(name) if expect.bytes.is_some() && !ends_with_number(name, expect.key) => Plain::Wrong,
        _ => judged,
    }
}

/// Key names end with their number ([`workloads::kv::KeyNames`]).
fn ends_with_number(name: &[u8], mut number: u64) -> bool {
    for digit in name.iter().rev() {
        if *digit != b'0' + (number % 10) as u8 {
            return false;
        }
        number /= 10;
        if number == 0 {
            return true;
        }
    }
    false
}

fn failed(line: &[u8]) -> Judged {
    let text = fault::printable_within(line, MESSAGE_BYTES_MAX);
    Judged::Error(error_class(&text), text)
}

/// The class of an error by its text; the protocol has no error codes.
pub(super) fn error_class(text: &str) -> ErrorClass {
    const FULL: &str = "SERVER_ERROR out of memory";
    const DENIED: [&str; 2] =
        ["CLIENT_ERROR unauthenticated", "CLIENT_ERROR authentication failure"];
    if text.starts_with(FULL) {
        ErrorClass::Full
    } else if text.starts_with("SERVER_ERROR object too large") {
        ErrorClass::TooLarge
    } else if DENIED.contains(&text) {
        ErrorClass::Denied
    } else if text.starts_with("ERROR Too many open connections") {
        ErrorClass::Refused
    } else {
        ErrorClass::Reply
    }
}
