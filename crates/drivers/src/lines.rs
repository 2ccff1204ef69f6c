//! Incremental reading of the lines of a reply and of the lengths in them, for the protocols of
//! both Redis and memcached.

use load::wire::protocol::Malformed;

use crate::fault;

/// Longest line, bytes.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
/// Most digits of a length; this many fit into 64 bits.
pub(crate) const DIGITS_MAX: usize = 18;
/// Bytes kept of an error message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 200;

/// Finds the end of a line in the received bytes without scanning a byte twice.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Bytes of the current line already known to contain no line feed.
    searched: usize,
}

impl Lines {
    /// Resets the state after the current line was read by another path.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.searched = 0;
    }

    /// The first line of `bytes` without its line ending; `None` if it is incomplete.
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
            _ => Err(missing_carriage_return()),
        }
    }
}

/// The error for a line that ends with a line feed alone.
pub(crate) fn missing_carriage_return() -> Malformed {
    Malformed("a line ends without a carriage return".into())
}

/// Parses a length or a count in decimal digits.
pub(crate) fn length(digits: &[u8]) -> Result<u64, Malformed> {
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        let text = fault::printable(&digits[..digits.len().min(40)]);
        return Err(Malformed(format!("`{text}` is not a length (expected decimal digits)")));
    }
    Ok(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
