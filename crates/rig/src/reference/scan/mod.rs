//! Finds requests in the bytes that were read, and copies none of them.
//!
//! A request is its words (a command and its arguments) and, in memcached's storage commands, a
//! block of data. Both scanners are given the bytes received so far and are called again from the
//! same start when there are more; values are skipped by their length and never looked at.

mod memcached;
mod resp;

use std::ops::Range;

/// Longest line: of a head, of inline RESP, of memcached's text.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Longest value, the limit of Redis (`proto-max-bulk-len`).
const VALUE_BYTES_MAX: usize = 512 << 20;
/// Most words of a request.
const WORDS_MAX: usize = 1 << 20;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Arrays of bulk strings, or words on a line (inline commands).
    Resp,
    /// Memcached's text protocol with its meta commands.
    Memcached,
}

/// Words with which a request of memcached's text protocol can begin. They are told from inline
/// commands of RESP by their being in lower case, as memcached wants them.
const MEMCACHED: [&[u8]; 24] = [
    b"get",
    b"gets",
    b"gat",
    b"gats",
    b"set",
    b"add",
    b"replace",
    b"append",
    b"prepend",
    b"cas",
    b"delete",
    b"incr",
    b"decr",
    b"touch",
    b"mg",
    b"ms",
    b"md",
    b"ma",
    b"mn",
    b"version",
    b"stats",
    b"flush_all",
    b"verbosity",
    b"quit",
];

/// The places of one request in the scanned bytes; kept and filled again, so that scanning
/// allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Parts {
    words: Vec<Range<usize>>,
    /// The data block of a storage command of memcached; empty otherwise.
    data: Range<usize>,
}

impl Parts {
    /// How many words; 0 for an empty request, which is not answered.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// A word by its number, the command being 0; empty where there is none.
    pub(super) fn word<'a>(&self, bytes: &'a [u8], number: usize) -> &'a [u8] {
        self.words.get(number).map_or(&[], |range| &bytes[range.clone()])
    }

    /// The words from this number on.
    pub(super) fn words<'a>(
        &'a self,
        bytes: &'a [u8],
        from: usize,
    ) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let ranges = self.words.get(from..).unwrap_or_default();
        ranges.iter().map(|range| &bytes[range.clone()])
    }

    /// The data block.
    pub(super) fn data<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.data.clone()]
    }

    fn clear(&mut self) {
        self.words.clear();
        self.data = 0..0;
    }
}

/// What the bytes so far hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A whole request in the first `used` bytes.
    Whole { used: usize },
    /// Not yet whole; at least so many bytes are missing.
    More { missing: usize },
}

/// Bytes that are of no request: what was expected instead, in the server's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken(pub(super) &'static str);

/// What a connection speaks, by its first bytes; `None` until they tell.
pub(super) fn protocol(bytes: &[u8]) -> Option<Protocol> {
    let first = *bytes.first()?;
    if first == b'*' || !first.is_ascii() {
        return Some(Protocol::Resp);
    }
    let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
        return (bytes.len() > LINE_BYTES_MAX).then_some(Protocol::Resp);
    };
    let mut words = bytes[..end].split(u8::is_ascii_whitespace);
    let word = words.next().unwrap_or_default();
    Some(if MEMCACHED.contains(&word) { Protocol::Memcached } else { Protocol::Resp })
}

/// Looks for the next request at the start of `bytes`.
#[inline]
pub(super) fn request(
    protocol: Protocol,
    bytes: &[u8],
    parts: &mut Parts,
) -> Result<Found, Broken> {
    parts.clear();
    match protocol {
        Protocol::Resp => resp::request(bytes, parts),
        Protocol::Memcached => memcached::request(bytes, parts),
    }
}

/// The line at the start of `bytes` without its end, and where the next one begins; `None` while it
/// is not whole.
fn line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Broken> {
    let Some(end) = bytes.iter().take(LINE_BYTES_MAX).position(|b| *b == b'\n') else {
        let long = bytes.len() >= LINE_BYTES_MAX;
        return if long { Err(Broken("a line of at most 64 KiB")) } else { Ok(None) };
    };
    let line = &bytes[..end];
    Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1)))
}

/// Notes the words of a line, which stands at the start of the scanned bytes.
fn split(line: &[u8], parts: &mut Parts) {
    let mut at = 0;
    for word in line.split(|b| *b == b' ') {
        if !word.is_empty() {
            parts.words.push(at..at + word.len());
        }
        at += word.len() + 1;
    }
}

/// A number of decimal digits alone; `None` for anything else or more than nine of them.
pub(super) fn number(digits: &[u8]) -> Option<usize> {
    let add = |sum: usize, digit: &u8| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then(|| sum * 10 + usize::from(digit))
    };
    let few = (1..=9).contains(&digits.len());
    digits.iter().try_fold(0, add).filter(|_| few)
}

#[cfg(test)]
mod tests;
