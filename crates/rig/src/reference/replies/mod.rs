//! What both servers say alike: how replies are spelled, and what they tell about themselves.

pub(super) mod resp;
pub(super) mod text;

use crate::reference::scan::{Broken, Protocol};

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

/// The last words to a client whose bytes are no request.
pub(super) fn refuse(protocol: Protocol, Broken(expected): Broken, out: &mut Vec<u8>) {
    let before = match protocol {
        Protocol::Resp => "-ERR Protocol error: expected ",
        Protocol::Memcached => "CLIENT_ERROR bad command line format: expected ",
    };
    for text in [before, expected, "\r\n"] {
        out.extend_from_slice(text.as_bytes());
    }
}
