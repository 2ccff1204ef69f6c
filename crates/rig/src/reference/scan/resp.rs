//! RESP requests: `*<n>\r\n` and n times `$<length>\r\n<bytes>\r\n`, or words on a line
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec/>).

use super::parts::{self, Found, MalformedRequest, Parts, VALUE_BYTES_MAX, WORDS_MAX};

/// A number and the offset of the line after it; `None` if the line is incomplete.
#[inline]
fn head(bytes: &[u8], mut at: usize) -> Result<Option<(usize, usize)>, MalformedRequest> {
    let first = at;
    let mut number: usize = 0;
    while let Some(byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 && at < first + 9 {
            number = number * 10 + usize::from(digit);
            at += 1;
            continue;
        }
        if *byte != b'\r' || at == first {
            return Err(MalformedRequest("a length"));
        }
        return match bytes.get(at + 1) {
            None => Ok(None),
            Some(b'\n') => Ok(Some((number, at + 2))),
            Some(_) => Err(MalformedRequest("a line that ends in CR LF")),
        };
    }
    Ok(None)
}

#[inline]
pub(super) fn request(bytes: &[u8], parts: &mut Parts) -> Result<Found, MalformedRequest> {
    match bytes.first() {
        None => return Ok(Found::Incomplete { missing: 1 }),
        Some(b'*') => {}
        Some(first) if !first.is_ascii() => {
            return Err(MalformedRequest("RESP or memcached's text"));
        }
        Some(_) => return inline(bytes, parts),
    }
    let Some((count, mut at)) = head(bytes, 1)? else {
        return Ok(Found::Incomplete { missing: 1 });
    };
    if count > WORDS_MAX {
        return Err(MalformedRequest("at most 1048576 words"));
    }
    for _ in 0..count {
        match bytes.get(at) {
            None => return Ok(Found::Incomplete { missing: 4 }),
            Some(b'$') => {}
            Some(_) => return Err(MalformedRequest("'$'")),
        }
        let Some((length, start)) = head(bytes, at + 1)? else {
            return Ok(Found::Incomplete { missing: 3 });
        };
        if length > VALUE_BYTES_MAX {
            return Err(MalformedRequest("a string of at most 512 MiB"));
        }
        let end = start + length;
        if bytes.len() < end + 2 {
            return Ok(Found::Incomplete { missing: end + 2 - bytes.len() });
        }
        if bytes[end..end + 2] != *b"\r\n" {
            return Err(MalformedRequest("CR LF after a string"));
        }
        parts.words.push(start..end);
        at = end + 2;
    }
    Ok(Found::Complete { used: at })
}

/// An inline command: words on a line.
fn inline(bytes: &[u8], parts: &mut Parts) -> Result<Found, MalformedRequest> {
    let Some((line, used)) = parts::line(bytes)? else {
        return Ok(Found::Incomplete { missing: 1 });
    };
    parts::split(line, parts);
    Ok(Found::Complete { used })
}
