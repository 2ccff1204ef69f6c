//! What answers of both protocols are made of.

use crate::reference::null::memory::Memory;

/// Parts of answers that are ready, and what is remembered.
#[derive(Debug)]
pub(super) struct Ready {
    /// The value as a bulk string of RESP.
    pub(super) bulk: Vec<u8>,
    /// The value as it follows the key in memcached's text protocol: ` 0 <length>`, and the rest of
    /// the answer.
    pub(super) text: Vec<u8>,
    /// The value as it follows the flags in a meta answer.
    pub(super) value: Vec<u8>,
    pub(super) miss: bool,
    pub(super) memory: Option<Memory>,
}

/// Appends a number in decimal digits.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: usize) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
