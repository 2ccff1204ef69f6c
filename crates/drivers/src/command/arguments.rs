//! A command line split into arguments, as redis-cli does it (`sdssplitargs`).
//!
//! Blanks separate. Within `"…"` a backslash begins `\n`, `\r`, `\t`, `\b`, `\a` and `\xHH` (a byte
//! in hexadecimal) and stands before any other character for that one itself; within `'…'` only
//! `\'` is not what it says. A quotation mark may begin within a word, and ends it.

use std::iter::Peekable;
use std::slice::Iter;

type Bytes<'a> = Peekable<std::iter::Enumerate<Iter<'a, u8>>>;

/// Splits a command line. Errors: a quotation mark without a partner, or a closing one that is not
/// the end of its word.
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

/// One word, whose first byte is the next.
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
                "the quotation mark at character {} of `{text}` has no partner (expected a \
                 second `{}`)",
                place(at),
                char::from(*byte)
            ));
        };
        if bytes.peek().is_some_and(|(_, next)| !is_blank(**next)) {
            return Err(format!(
                "the quotation mark at character {} of `{text}` ends no word (expected a blank \
                 behind it)",
                place(end)
            ));
        }
    }
    Ok(word)
}

/// Appends what stands between quotation marks, of which the first was read; where the second
/// stands, `None` when there is none.
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

/// The byte that a backslash and what follows it stand for; `None` when nothing follows.
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

/// The byte that the next two digits name; `None` when they are none.
fn hexadecimal(bytes: &Bytes<'_>) -> Option<u8> {
    let mut ahead = bytes.clone();
    let mut digit = || char::from(*ahead.next()?.1).to_digit(16);
    let (high, low) = (digit()?, digit()?);
    u8::try_from(high * 16 + low).ok()
}
