//! The lines of a reply as they come, and the lengths in them; for the protocols of Redis and
//! memcached alike.

use load::wire::protocol::Malformed;

use crate::fault;

/// Longest line.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
/// Digits of the longest length; so many fit in 64 bits.
pub(crate) const DIGITS_MAX: usize = 18;
/// Bytes kept of the words of an error.
pub(crate) const WORDS_BYTES_MAX: usize = 200;

/// Looks for the end of a line in what has come, no byte twice.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Bytes of the line at hand that are known to hold no line feed.
    searched: usize,
}

impl Lines {
    /// The line at hand was read by another path.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.searched = 0;
    }

    /// The first line of `bytes` without its end; `None` when that has not come yet.
    #[inline]
    pub(crate) fn first<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
        let unknown = window.get(self.searched..).unwrap_or_default();
        let Some(found) = unknown.iter().position(|byte| *byte == b'\n') else {
            if bytes.len() >= LINE_BYTES_MAX {
                return Err(Malformed(format!("a line is longer than {LINE_BYTES_MAX} bytes")));
            }
            self.searched = window.len();
            return Ok(None);
        };
        let end = self.searched + found;
        self.searched = 0;
        match window[..end].split_last() {
            Some((b'\r', text)) => Ok(Some(text)),
            _ => Err(no_return()),
        }
    }
}

/// A line that a line feed alone ends.
pub(crate) fn no_return() -> Malformed {
    Malformed("a line ends without a carriage return".into())
}

/// A length or a count, in decimal digits.
pub(crate) fn length(digits: &[u8]) -> Result<u64, Malformed> {
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        let text = fault::words(&digits[..digits.len().min(40)]);
        return Err(Malformed(format!("`{text}` is no length (expected decimal digits)")));
    }
    Ok(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
