//! Requests of memcached's text protocol: words on a line and, in storage commands, a data block
//! whose length is one of the words
//! (<https://github.com/memcached/memcached/blob/master/doc/protocol.txt>).

use super::parts::{self, Found, MalformedRequest, Parts, VALUE_BYTES_MAX};

/// Index of the word with the data length in a storage command; `None` for other commands.
fn length_word(command: &[u8]) -> Option<usize> {
    match command {
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => Some(4),
        b"ms" => Some(2),
        _ => None,
    }
}

pub(super) fn request(bytes: &[u8], parts: &mut Parts) -> Result<Found, MalformedRequest> {
    let Some((line, start)) = parts::line(bytes)? else {
        return Ok(Found::Incomplete { missing: 1 });
    };
    parts::split(line, parts);
    let Some(word) = length_word(parts.word(bytes, 0)) else {
        return Ok(Found::Complete { used: start });
    };
    let length = parts::number(parts.word(bytes, word)).filter(|n| *n <= VALUE_BYTES_MAX);
    let Some(length) = length else { return Err(MalformedRequest("a length of at most 512 MiB")) };
    let end = start + length;
    if bytes.len() < end + 2 {
        return Ok(Found::Incomplete { missing: end + 2 - bytes.len() });
    }
    if bytes[end..end + 2] != *b"\r\n" {
        return Err(MalformedRequest("CR LF after the data"));
    }
    parts.data = start..end;
    Ok(Found::Complete { used: end + 2 })
}
