//! Replies that both servers share: their encoding, and information about the server.

pub(super) mod resp;
pub(super) mod text;

use crate::reference::scan::{MalformedRequest, Protocol};

/// Appends the error reply to a malformed request, after which the connection is closed.
pub(super) fn refuse(
    protocol: Protocol,
    MalformedRequest(expected): MalformedRequest,
    out: &mut Vec<u8>,
) {
    let before = match protocol {
        Protocol::Resp => "-ERR Protocol error: expected ",
        Protocol::Memcached => "CLIENT_ERROR bad command line format: expected ",
    };
    for text in [before, expected, "\r\n"] {
        out.extend_from_slice(text.as_bytes());
    }
}
