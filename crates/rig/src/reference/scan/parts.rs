//! Types and limits shared by the scanners of both protocols.

use std::ops::Range;

/// Maximum length of a line: a RESP head, inline RESP or memcached text.
pub(super) const LINE_BYTES_MAX: usize = 64 << 10;
/// Maximum length of a value, the limit of Redis (`proto-max-bulk-len`).
pub(super) const VALUE_BYTES_MAX: usize = 512 << 20;
/// Maximum number of words in a request.
pub(super) const WORDS_MAX: usize = 1 << 20;

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Arrays of bulk strings, or words on a line (inline commands).
    Resp,
    /// Memcached's text protocol with its meta commands.
    Memcached,
}

/// Byte ranges of one request's parts in the scanned bytes; reused, so scanning does not allocate.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(super) words: Vec<Range<usize>>,
    /// The data block of a storage command of memcached; empty otherwise.
    pub(super) data: Range<usize>,
}

impl Parts {
    /// Number of words; 0 for an empty request, which gets no reply.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// Word by index, 0 for the command; empty if missing.
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
    /// Number of words.
    pub(crate) fn len(self) -> usize {
        self.parts.len()
    }

    /// Word by index, 0 for the command; empty if missing.
    pub(crate) fn word(self, number: usize) -> &'a [u8] {
        self.parts.word(self.bytes, number)
    }

    /// The words from this index on.
    pub(crate) fn words(self, from: usize) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let ranges = self.parts.words.get(from..).unwrap_or_default();
        ranges.iter().map(move |range| &self.bytes[range.clone()])
    }

    /// Whether a word equals `name`, ignoring case.
    pub(crate) fn is(self, number: usize, name: &[u8]) -> bool {
        self.word(number).eq_ignore_ascii_case(name)
    }

    /// The key: the first argument.
    pub(crate) fn key(self) -> &'a [u8] {
        self.word(1)
    }

    /// The data block.
    pub(crate) fn data(self) -> &'a [u8] {
        &self.bytes[self.parts.data.clone()]
    }
}

/// Result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A complete request in the first `used` bytes.
    Complete { used: usize },
    /// An incomplete request; at least `missing` bytes are missing.
    Incomplete { missing: usize },
}

/// A malformed request; contains what was expected, for the error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedRequest(pub(crate) &'static str);

/// The line at the start of `bytes` without its terminator, and the offset of the next one; `None`
/// if the line is incomplete.
pub(super) fn line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, MalformedRequest> {
    let Some(end) = bytes.iter().take(LINE_BYTES_MAX).position(|b| *b == b'\n') else {
        let long = bytes.len() >= LINE_BYTES_MAX;
        return if long { Err(MalformedRequest("a line of at most 64 KiB")) } else { Ok(None) };
    };
    let line = &bytes[..end];
    Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1)))
}

/// Stores the words of a line, which is at the start of the scanned bytes.
pub(super) fn split(line: &[u8], parts: &mut Parts) {
    let mut at = 0;
    for word in line.split(|b| *b == b' ') {
        if !word.is_empty() {
            parts.words.push(at..at + word.len());
        }
        at += word.len() + 1;
    }
}

/// Parses one to nine decimal digits; `None` for anything else.
pub(crate) fn number(digits: &[u8]) -> Option<usize> {
    let add = |sum: usize, digit: &u8| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then(|| sum * 10 + usize::from(digit))
    };
    let few = (1..=9).contains(&digits.len());
    digits.iter().try_fold(0, add).filter(|_| few)
}
