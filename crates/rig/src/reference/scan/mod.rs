//! Finds requests in received bytes without copying them.
//!
//! A request is its words (a command and its arguments) and, in memcached's storage commands, a
//! block of data. Both scanners take the bytes received so far and are called again from the same
//! start when more arrive. They skip values by length without reading them.

mod memcached;
mod parts;
mod resp;

pub(super) use parts::{Found, MalformedRequest, Parts, Protocol, Request, number};

use parts::LINE_BYTES_MAX;

/// Commands of memcached's text protocol. Lower case, which memcached requires, distinguishes them
/// from inline commands of RESP.
const MEMCACHED: &str = "get gets gat gats set add replace append prepend cas delete incr decr \
    touch mg ms md ma mn version stats flush_all verbosity quit";

/// Detects a connection's protocol from its first bytes; `None` if more are needed.
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
    let is_memcached = MEMCACHED.split(' ').any(|known| known.as_bytes() == word);
    Some(if is_memcached { Protocol::Memcached } else { Protocol::Resp })
}

/// Scans the request at the start of `bytes`.
#[inline]
pub(super) fn request(
    protocol: Protocol,
    bytes: &[u8],
    parts: &mut Parts,
) -> Result<Found, MalformedRequest> {
    parts.clear();
    match protocol {
        Protocol::Resp => resp::request(bytes, parts),
        Protocol::Memcached => memcached::request(bytes, parts),
    }
}

#[cfg(test)]
mod tests;
