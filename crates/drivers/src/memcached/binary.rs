//! A blocking client for the binary protocol that sends the same requests as the PHP extension
//! memcached: it reads several keys with one `GETKQ` each and a final `NOOP`, and stores or deletes
//! them one after the other.
//!
//! A request is a header of 24 bytes, extras, key and value. The header has 0x80, the operation,
//! the key length (two bytes), the extras length (one byte), three zero bytes, the length of
//! extras, key and value (four bytes), a sequence number (four bytes) and eight zero bytes. A reply
//! is the same with 0x81, and with a status in place of the second and third zero byte. Source:
//! <https://github.com/memcached/memcached/wiki/BinaryProtocolRevamped>.

use std::time::Duration;

use model::{Endpoint, ErrorClass, Memcached};
use workloads::app_cache::Effort;
use workloads::store::{Found, StoreError};

use super::line::Line;
use super::text::Servers;
use crate::fault;

const HEADER_BYTES: usize = 24;
const REQUEST: u8 = 0x80;
const REPLY: u8 = 0x81;

const SET: u8 = 0x01;
const DELETE: u8 = 0x04;
const NOOP: u8 = 0x0a;
const GETKQ: u8 = 0x0d;

const DONE: u16 = 0;
const NOT_FOUND: u16 = 1;
const TOO_LARGE: u16 = 3;
const OUT_OF_MEMORY: u16 = 0x82;

pub(super) struct Binary {
    servers: Servers,
    out: Vec<u8>,
    requests: u32,
}

/// A parsed reply.
struct Reply<'a> {
    operation: u8,
    status: u16,
    key: &'a [u8],
    value: &'a [u8],
}

impl Binary {
    /// Connects to every server and waits for a `NOOP`. Rejects accounts, which only the text
    /// protocol supports.
    pub(super) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        if let Endpoint::Memcached(Memcached { user: Some(user), .. }) = endpoint {
            let message = format!(
                "user `{user}` cannot log in: this client does not support accounts (expected no \
                 user)"
            );
            return Err(StoreError::fatal(ErrorClass::Denied, message));
        }
        let servers = Servers::connect(endpoint, timeout)?;
        let mut client = Self { servers, out: Vec::new(), requests: 0 };
        client.request(NOOP, b"", b"", b"");
        for line in client.servers.all() {
            line.send(&client.out)?;
            if reply(line)?.operation != NOOP {
                return Err(malformed("a different operation"));
            }
        }
        client.servers.effort = Effort::default();
        Ok(client)
    }

    pub(super) fn effort(&self) -> Effort {
        self.servers.effort
    }

    /// Reads keys and returns their values in order, `None` for each missing one.
    pub(super) fn get_each(&mut self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let mut values = vec![None; keys.len()];
        for node in 0..self.servers.number() {
            let here: Vec<usize> =
                (0..keys.len()).filter(|i| self.servers.node(keys[*i]) == node).collect();
            if here.is_empty() {
                continue;
            }
            self.out.clear();
            for i in &here {
                self.request(GETKQ, b"", keys[*i], b"");
            }
            self.request(NOOP, b"", b"", b"");
            let line = self.servers.at(node, here.len() as u64 + 1);
            line.send(&self.out)?;
            loop {
                let reply = reply(line)?;
                if reply.operation == NOOP {
                    break;
                }
                let of_key = here.iter().find(|i| keys[**i] == reply.key);
                match (of_key, reply.status) {
                    (Some(i), DONE) => values[*i] = Some(reply.value.to_vec()),
                    _ => return Err(refused("GETKQ", &reply)),
                }
            }
        }
        Ok(values)
    }

    /// Stores a value for `ttl_s` seconds, or forever with 0; above 30 days it is a time since
    /// 1970.
    pub(super) fn set(&mut self, key: &[u8], ttl_s: u32, value: &[u8]) -> Result<(), StoreError> {
        let mut extras = [0; 8];
        extras[4..].copy_from_slice(&ttl_s.to_be_bytes());
        let reply = self.ask(SET, &extras, key, value)?;
        if reply.status == DONE { Ok(()) } else { Err(refused("SET", &reply)) }
    }

    pub(super) fn delete(&mut self, key: &[u8]) -> Result<Found, StoreError> {
        let reply = self.ask(DELETE, b"", key, b"")?;
        match reply.status {
            DONE => Ok(Found::Yes),
            NOT_FOUND => Ok(Found::No),
            _ => Err(refused("DELETE", &reply)),
        }
    }

    /// Sends one request and waits for its reply.
    fn ask(
        &mut self,
        operation: u8,
        extras: &[u8],
        key: &[u8],
        value: &[u8],
    ) -> Result<Reply<'_>, StoreError> {
        self.out.clear();
        self.request(operation, extras, key, value);
        let line = self.servers.at(self.servers.node(key), 1);
        line.send(&self.out)?;
        let reply = reply(line)?;
        if reply.operation == operation {
            Ok(reply)
        } else {
            Err(malformed("a different operation"))
        }
    }

    /// Appends a request.
    fn request(&mut self, operation: u8, extras: &[u8], key: &[u8], value: &[u8]) {
        self.requests = self.requests.wrapping_add(1);
        let body = (extras.len() + key.len() + value.len()) as u32;
        let mut header = [0; HEADER_BYTES];
        header[0] = REQUEST;
        header[1] = operation;
        header[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
        header[4] = extras.len() as u8;
        header[8..12].copy_from_slice(&body.to_be_bytes());
        header[12..16].copy_from_slice(&self.requests.to_be_bytes());
        for part in [&header[..], extras, key, value] {
            self.out.extend_from_slice(part);
        }
    }
}

fn reply(line: &mut Line) -> Result<Reply<'_>, StoreError> {
    /// Longest body; the server's own limit for a value is 1 GiB.
    const BODY_BYTES_MAX: usize = 1 << 30;
    let header: [u8; HEADER_BYTES] =
        line.exactly(HEADER_BYTES)?.try_into().map_err(|_| malformed("a short header"))?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let [.., a, b, c, d] = header[..12] else { return Err(malformed("a short header")) };
    let body = u32::from_be_bytes([a, b, c, d]) as usize;
    let (key, extras) = (usize::from(number(2)), usize::from(header[4]));
    if header[0] != REPLY || key + extras > body || body > BODY_BYTES_MAX {
        return Err(malformed(&format!("a header `{}`", fault::printable(&header[..8]))));
    }
    let rest = line.exactly(body)?;
    let (head, value) = rest.split_at(extras + key);
    Ok(Reply { operation: header[1], status: number(6), key: &head[extras..], value })
}

/// The error for a rejected request. The server has read the whole request, so the connection stays
/// usable.
fn refused(operation: &str, reply: &Reply<'_>) -> StoreError {
    let (class, hint) = match reply.status {
        OUT_OF_MEMORY => (ErrorClass::Full, ""),
        TOO_LARGE => {
            (ErrorClass::TooLarge, " (expected a value within its item size, 1 MiB by default)")
        }
        0x20 => (ErrorClass::Denied, ""),
        _ => (ErrorClass::Reply, ""),
    };
    let words = fault::printable(reply.value);
    let message = format!("the server answered `{words}` to {operation}{hint}");
    StoreError::soft(class, message)
}

fn malformed(problem: &str) -> StoreError {
    let message = format!("received {problem} as a reply (expected memcached's binary protocol)");
    StoreError::fatal(ErrorClass::Protocol, message)
}
