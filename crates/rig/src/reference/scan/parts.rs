//! What scanners of both protocols find, and their limits.

use std::ops::Range;

/// Longest line: of a head, of inline RESP, of memcached's text.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
/// Longest value, the limit of Redis (`proto-max-bulk-len`).
pub(super) const VALUE_BYTES_MAX: usize = 512 << 20;
/// Most words of a request.
pub(super) const WORDS_MAX: usize = 1 << 20;

/// What a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Arrays of bulk strings, or words on a line (inline commands).
    Resp,
    /// Memcached's text protocol with its meta commands.
    Memcached,
}

/// The places of one request in the scanned bytes; kept and filled again, so that scanning
/// allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(super) words: Vec<Range<usize>>,
    /// The data block of a storage command of memcached; empty otherwise.
    pub(super) data: Range<usize>,
}

impl Parts {
    /// How many words; 0 for an empty request, which is not answered.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// A word by its number, the command being 0; empty where there is none.
    pub(super) fn word<'a>(&self, bytes: &'a [u8], number: usize) -> &'a [u8] {
        self.words.get(number).map_or(&[], |range| &bytes[range.clone()])
    }

    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.data = 0..0;
    }
}

/// One request with its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) bytes: &'a [u8],
    pub(crate) parts: &'a Parts,
}

impl<'a> Request<'a> {
    /// How many words.
    pub(crate) fn len(self) -> usize {
        self.parts.len()
    }

    /// A word by its number, the command being 0; empty where there is none.
    pub(crate) fn word(self, number: usize) -> &'a [u8] {
        self.parts.word(self.bytes, number)
    }

    /// The words from this number on.
    pub(crate) fn words(self, from: usize) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let ranges = self.parts.words.get(from..).unwrap_or_default();
        ranges.iter().map(move |range| &self.bytes[range.clone()])
    }

    /// Whether a word is this one, in any case.
    pub(crate) fn is(self, number: usize, name: &[u8]) -> bool {
        self.word(number).eq_ignore_ascii_case(name)
    }

    /// The key that a reply would be about.
    pub(crate) fn key(self) -> &'a [u8] {
        self.word(1)
    }

    /// The data block.
    pub(crate) fn data(self) -> &'a [u8] {
        &self.bytes[self.parts.data.clone()]
    }
}

/// What the bytes so far hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A whole request in the first `used` bytes.
    Whole { used: usize },
    /// Not yet whole; at least so many bytes are missing.
    More { missing: usize },
}

/// Bytes that are of no request: what was expected instead, in the server's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) &'static str);

/// The line at the start of `bytes` without its end, and where the next one begins; `None` while it
/// is not whole.
pub(super) fn line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Broken> {
    let Some(end) = bytes.iter().take(LINE_BYTES_MAX).position(|b| *b == b'\n') else {
        let long = bytes.len() >= LINE_BYTES_MAX;
        return if long { Err(Broken("a line of at most 64 KiB")) } else { Ok(None) };
    };
    let line = &bytes[..end];
    Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1)))
}

/// Notes the words of a line, which stands at the start of the scanned bytes.
pub(super) fn split(line: &[u8], parts: &mut Parts) {
    let mut at = 0;
    for word in line.split(|b| *b == b' ') {
        if !word.is_empty() {
            parts.words.push(at..at + word.len());
        }
        at += word.len() + 1;
    }
}

/// A number of decimal digits alone; `None` for anything else or more than nine of them.
pub(crate) fn number(digits: &[u8]) -> Option<usize> {
    let add = |sum: usize, digit: &u8| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then(|| sum * 10 + usize::from(digit))
    };
    let few = (1..=9).contains(&digits.len());
    digits.iter().try_fold(0, add).filter(|_| few)
}
