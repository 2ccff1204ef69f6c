//! Splits a command line into arguments like redis-cli (`sdssplitargs`).
//!
//! Arguments are separated by whitespace. Inside `"…"`, `\n`, `\r`, `\t`, `\b`, `\a` and `\xHH` (a
//! byte in hexadecimal) are escapes, and a backslash before any other character stands for that
//! character. Inside `'…'` only `\'` is an escape. A quotation mark can start inside a word, and
//! its closing mark ends the word.

use std::iter::Peekable;
use std::slice::Iter;

type Bytes<'a> = Peekable<std::iter::Enumerate<Iter<'a, u8>>>;

/// Splits a command line. Errors: an unclosed quotation mark, or a closing one that is not at the
/// end of its word.
pub(crate) fn split(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut bytes = text.as_bytes().iter().enumerate().peekable();
    let mut arguments = Vec::new();
    loop {
        while bytes.next_if(|(_, byte)| is_blank(**byte)).is_some() {}
        if bytes.peek().is_none() {
            return Ok(arguments);
        }
        arguments.push(word(text, &mut bytes)?);
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r' | 0)
}

/// Reads one word from its first byte on.
fn word(text: &str, bytes: &mut Bytes<'_>) -> Result<Vec<u8>, String> {
    let mut word = Vec::new();
    while let Some((at, byte)) = bytes.next_if(|(_, byte)| !is_blank(**byte)) {
        if !matches!(byte, b'"' | b'\'') {
            word.push(*byte);
            continue;
        }
        let end = quoted(*byte, bytes, &mut word);
        let place = |at: usize| text[..at].chars().count() + 1;
        let Some(end) = end else {
            return Err(format!(
                "the quotation mark at character {} of `{text}` is not closed (expected a \
                 second `{}`)",
                place(at),
                char::from(*byte)
            ));
        };
        if bytes.peek().is_some_and(|(_, next)| !is_blank(**next)) {
            return Err(format!(
                "the quotation mark at character {} of `{text}` does not end a word (expected a \
                 space after it)",
                place(end)
            ));
        }
    }
    Ok(word)
}

/// Appends the text up to the closing quotation mark, after the opening one was read, and returns
/// the position of the closing one; `None` if it is missing.
fn quoted(mark: u8, bytes: &mut Bytes<'_>, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match bytes.next()? {
            (at, byte) if *byte == mark => return Some(at),
            (_, b'\\') if mark == b'"' => word.push(escaped(bytes)?),
            (_, b'\\') if bytes.peek().is_some_and(|(_, next)| **next == b'\'') => {
                bytes.next();
                word.push(b'\'');
            }
            (_, byte) => word.push(*byte),
        }
    }
}

/// The byte for an escape sequence after its backslash; `None` at the end of the line.
fn escaped(bytes: &mut Bytes<'_>) -> Option<u8> {
    let (_, letter) = bytes.next()?;
    Some(match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        b'x' => match hexadecimal(bytes) {
            Some(byte) => {
                bytes.nth(1);
                byte
            }
            None => b'x',
        },
        other => *other,
    })
}

/// The byte of the next two hexadecimal digits; `None` if they are not digits.
fn hexadecimal(bytes: &Bytes<'_>) -> Option<u8> {
    let mut ahead = bytes.clone();
    let mut digit = || char::from(*ahead.next()?.1).to_digit(16);
    let (high, low) = (digit()?, digit()?);
    u8::try_from(high * 16 + low).ok()
}
