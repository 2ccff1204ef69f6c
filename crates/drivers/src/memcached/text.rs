//! A blocking client for the text protocol with one request in flight at a time, like that of a PHP
//! worker.

use std::time::Duration;

use load::wire::route::Route;
use model::{Endpoint, ErrorClass};
use workloads::app_cache::Effort;
use workloads::store::{Found, StoreError};

use super::line::{Line, unexpected};
use super::requests::KEY_BYTES_MAX;
use crate::{fault, tls};

/// Connections to the servers of an endpoint, with counts of their requests.
pub(super) struct Servers {
    lines: Vec<Line>,
    route: Box<dyn Route>,
    pub(super) effort: Effort,
}

impl Servers {
    /// Connects to every server without sending anything, since the first byte selects the
    /// protocol.
    pub(super) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let Endpoint::Memcached(memcached) = endpoint else {
            return Err(StoreError::fatal(ErrorClass::Other, "not an endpoint of memcached"));
        };
        let tls = tls::of_target(memcached.tls.as_ref(), &memcached.servers[0])?;
        let connect = |address| Line::connect(memcached, address, tls.as_ref(), timeout);
        let lines = memcached.servers.iter().map(connect).collect::<Result<_, _>>()?;
        Ok(Self { lines, route: super::route(memcached)?, effort: Effort::default() })
    }

    /// Number of servers.
    pub(super) fn number(&self) -> usize {
        self.lines.len()
    }

    /// Number of the server of a key, from 0.
    pub(super) fn node(&self, key: &[u8]) -> usize {
        self.route.node(key)
    }

    /// The connection to a server; counts one more request with `commands` commands.
    pub(super) fn at(&mut self, node: usize, commands: u64) -> &mut Line {
        self.effort.round_trips += 1;
        self.effort.commands += commands;
        &mut self.lines[node]
    }

    /// The connections to all servers; counts one more request each.
    pub(super) fn all(&mut self) -> &mut [Line] {
        self.effort.round_trips += self.lines.len() as u64;
        self.effort.commands += self.lines.len() as u64;
        &mut self.lines
    }
}

/// A client for the text protocol. Keys are checked as in the PHP extension memcached, which sends
/// nothing for an empty key, one longer than 250 bytes, or one with spaces or control characters.
pub(super) struct Text {
    servers: Servers,
    out: Vec<u8>,
}

impl Text {
    /// Connects to every server and requests its version.
    pub(super) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let mut servers = Servers::connect(endpoint, timeout)?;
        for line in &mut servers.lines {
            line.send(b"version\r\n")?;
            let answer = line.line()?;
            if !answer.starts_with(b"VERSION ") {
                return Err(unexpected(answer));
            }
        }
        Ok(Self { servers, out: Vec::new() })
    }

    pub(super) fn effort(&self) -> Effort {
        self.servers.effort
    }

    /// Reads a value into `value`, replacing its content. Returns its flags, or `None` if it is
    /// missing.
    pub(super) fn get(
        &mut self,
        key: &str,
        value: &mut Vec<u8>,
    ) -> Result<Option<u32>, StoreError> {
        value.clear();
        check_key(key)?;
        let line = self.request(key, &[b"get ", key.as_bytes(), b"\r\n"])?;
        let answer = line.line()?;
        if answer == b"END" {
            return Ok(None);
        }
        let (flags, bytes) = value_line(answer, key).ok_or_else(|| unexpected(answer))?;
        value.extend_from_slice(line.exactly(bytes)?);
        // The lines after the value are part of the reply.
        let end = line.exactly(7)?;
        if end == b"\r\nEND\r\n" { Ok(Some(flags)) } else { Err(unexpected(end)) }
    }

    /// Stores a value for `ttl_s` seconds, or forever with 0; above 30 days it is a time since
    /// 1970.
    pub(super) fn set(
        &mut self,
        key: &str,
        flags: u32,
        ttl_s: u64,
        value: &[u8],
    ) -> Result<(), StoreError> {
        check_key(key)?;
        let head = set_line(key, flags, ttl_s, value);
        let line = self.request(key, &[head.as_bytes(), value, b"\r\n"])?;
        stored(line.line()?)
    }

    /// Stores a value for `ttl_s` seconds if the key does not exist; false if it does.
    pub(super) fn add(&mut self, key: &str, ttl_s: u64, value: &[u8]) -> Result<bool, StoreError> {
        check_key(key)?;
        let head = format!("add {key} 0 {ttl_s} {}\r\n", value.len());
        let line = self.request(key, &[head.as_bytes(), value, b"\r\n"])?;
        match line.line()? {
            b"STORED" => Ok(true),
            b"NOT_STORED" => Ok(false),
            answer => Err(refused(answer)),
        }
    }

    /// Like [`Text::set`] in a stream whose replies are read later, at the latest by
    /// [`Text::settle`].
    pub(super) fn stream_set(
        &mut self,
        key: &str,
        flags: u32,
        ttl_s: u64,
        value: &[u8],
    ) -> Result<(), StoreError> {
        check_key(key)?;
        let head = set_line(key, flags, ttl_s, value);
        let node = self.servers.node(key.as_bytes());
        self.servers.effort.commands += 1;
        self.servers.lines[node].stream(&[head.as_bytes(), value, b"\r\n"], stored)
    }

    /// Waits for the replies to all [`Text::stream_set`] requests.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        self.servers.lines.iter_mut().try_for_each(|line| line.settle(stored))
    }

    pub(super) fn delete(&mut self, key: &str) -> Result<Found, StoreError> {
        check_key(key)?;
        let line = self.request(key, &[b"delete ", key.as_bytes(), b"\r\n"])?;
        match line.line()? {
            b"DELETED" => Ok(Found::Yes),
            b"NOT_FOUND" => Ok(Found::No),
            answer => Err(refused(answer)),
        }
    }

    /// Used share of the servers' memory, in whole per cent, with one `stats` request each.
    pub(super) fn fill_percent(&mut self) -> Result<u64, StoreError> {
        let (mut used, mut size) = (0.0, 0.0);
        for line in self.servers.all() {
            let list = line.stats(b"stats \r\n")?;
            let number = |name: &str| {
                let found = list.iter().find(|(listed, _)| listed == name);
                found.and_then(|(_, value)| value.parse::<f64>().ok()).unwrap_or(0.0)
            };
            let size_here = number("limit_maxbytes");
            size += size_here;
            used += number("bytes").min(size_here);
        }
        if size > 0.0 { Ok((100.0 * (used / size)) as u64) } else { Ok(0) }
    }

    /// Removes all items from all servers, including foreign ones.
    pub(super) fn flush_all(&mut self) -> Result<(), StoreError> {
        for line in self.servers.all() {
            line.send(b"flush_all \r\n")?;
            let answer = line.line()?;
            if answer != b"OK" {
                return Err(unexpected(answer));
            }
        }
        Ok(())
    }

    /// Sends a request to the server of `key`.
    fn request(&mut self, key: &str, parts: &[&[u8]]) -> Result<&mut Line, StoreError> {
        self.out.clear();
        for part in parts {
            self.out.extend_from_slice(part);
        }
        let line = self.servers.at(self.servers.node(key.as_bytes()), 1);
        line.send(&self.out)?;
        Ok(line)
    }
}

/// The line before a value to store.
fn set_line(key: &str, flags: u32, ttl_s: u64, value: &[u8]) -> String {
    format!("set {key} {flags} {ttl_s} {}\r\n", value.len())
}

fn stored(answer: &[u8]) -> Result<(), StoreError> {
    if answer == b"STORED" { Ok(()) } else { Err(refused(answer)) }
}

/// Flags and length of `VALUE <key> <flags> <bytes>`.
fn value_line(line: &[u8], key: &str) -> Option<(u32, usize)> {
    let rest = std::str::from_utf8(line).ok()?.strip_prefix("VALUE ")?;
    let (flags, bytes) = rest.strip_prefix(key)?.strip_prefix(' ')?.split_once(' ')?;
    Some((flags.parse().ok()?, bytes.parse().ok()?))
}

fn check_key(key: &str) -> Result<(), StoreError> {
    let foreign = |byte: u8| byte.is_ascii_control() || byte == b' ';
    if !key.is_empty() && key.len() <= KEY_BYTES_MAX && !key.bytes().any(foreign) {
        return Ok(());
    }
    let message = format!(
        "`{}` is not a memcached key (expected 1 to {KEY_BYTES_MAX} bytes without spaces)",
        fault::printable(key.as_bytes())
    );
    Err(StoreError::soft(ErrorClass::Other, message))
}

/// The error for a rejected value. The server has read the whole value, so the connection stays
/// usable.
fn refused(answer: &[u8]) -> StoreError {
    let mut error = unexpected(answer);
    error.fatal = !answer.starts_with(b"SERVER_ERROR ");
    if answer.ends_with(b"too large for cache") {
        error.message += " (expected a value within the server's item size, 1 MiB by default)";
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_keys_are_rejected() {
        for key in ["", "a b", "a\nb", "a\0", "\x7f", &"x".repeat(251)] {
            assert_eq!(check_key(key).unwrap_err().class, ErrorClass::Other, "{key:?}");
        }
        for key in ["a", "ü", "a'\"b", &"x".repeat(250)] {
            check_key(key).unwrap();
        }
    }

    #[test]
    fn a_value_line_must_match_its_key() {
        assert_eq!(value_line(b"VALUE a 4 17", "a"), Some((4, 17)));
        for line in ["VALUE b 4 17", "VALUE aa 4 17", "VALUE a 4", "VALUE a x 1", "END"] {
            assert_eq!(value_line(line.as_bytes(), "a"), None, "{line}");
        }
    }

    #[test]
    fn a_rejected_value_keeps_the_connection() {
        let large = refused(b"SERVER_ERROR object too large for cache");
        assert!(!large.fatal && large.message.contains("1 MiB"), "{large}");
        assert_eq!(refused(b"SERVER_ERROR out of memory storing object").class, ErrorClass::Full);
        assert!(refused(b"CLIENT_ERROR bad data chunk").fatal);
    }
}
