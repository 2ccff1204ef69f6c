//! What both servers say alike: how replies are spelled, and what they tell about themselves.

pub(super) mod resp;
pub(super) mod text;

use crate::reference::scan::{Broken, Protocol};

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
