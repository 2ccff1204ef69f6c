//! Replies of the null server.

mod memcached;
mod ready;
mod resp;

use super::commands::Commands;
use super::memory::Memory;
use super::settings::NullSettings;
use crate::reference::replies::refuse;
use crate::reference::replies::resp::Resp;
use crate::reference::replies::text;
use crate::reference::scan::{self, Found, Parts, Protocol, Request};
use ready::Ready;

/// A turn ends once its replies reach this many bytes; further requests wait.
const OUT_BYTES_MAX: usize = 1 << 20;
/// Fill byte of all values.
const FILLING: u8 = b'x';

/// Protocol and version of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionProtocol {
    /// `None` until detected from its first request.
    protocol: Option<Protocol>,
    /// RESP 3, after `HELLO 3`.
    resp3: bool,
}

/// Result of answering the requests in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Bytes of requests that were answered.
    pub(super) used: usize,
    /// Number of requests answered.
    pub(super) requests: u64,
    /// Minimum number of missing bytes of the next request; 0 if it can be complete and was
    /// postponed because the replies are long already.
    pub(super) missing: usize,
    /// Whether to close the connection after these replies.
    pub(super) close: bool,
}

/// Reply tables and data shared by all threads.
#[derive(Debug)]
pub(super) struct Answers {
    resp: Commands<resp::Answer>,
    memcached: Commands<memcached::Answer>,
    ready: Ready,
}

impl Answers {
    pub(super) fn new(settings: &NullSettings) -> Self {
        let value = vec![FILLING; settings.value_bytes];
        let (mut bulk, mut text) = (Vec::new(), Vec::new());
        Resp { out: &mut bulk, is_3: false }.bulk(&value);
        text::value(&mut text, 0, &value, None);
        let memory = (settings.remember > 0).then(|| Memory::new(settings.remember));
        Self {
            resp: Commands::new(&resp::COMMANDS),
            memcached: Commands::new(&memcached::COMMANDS),
            ready: Ready { bulk, text, value, miss: settings.miss, memory },
        }
    }

    /// Answers the requests in `input` in order and appends the replies to `out`. `parts` is a
    /// reused buffer.
    pub(super) fn all(
        &self,
        connection_protocol: &mut ConnectionProtocol,
        input: &[u8],
        parts: &mut Parts,
        out: &mut Vec<u8>,
    ) -> Batch {
        let mut batch = Batch { missing: 1, ..Batch::default() };
        let Some(protocol) = connection_protocol.protocol.or_else(|| scan::protocol(input)) else {
            return batch;
        };
        connection_protocol.protocol = Some(protocol);
        while batch.used < input.len() {
            if out.len() >= OUT_BYTES_MAX {
                batch.missing = 0;
                break;
            }
            let rest = &input[batch.used..];
            let used = match scan::request(protocol, rest, parts) {
                Ok(Found::Complete { used }) => used,
                Ok(Found::Incomplete { missing }) => {
                    batch.missing = missing;
                    break;
                }
                Err(broken) => {
                    refuse(protocol, broken, out);
                    batch.close = true;
                    break;
                }
            };
            batch.used += used;
            if parts.len() == 0 {
                continue;
            }
            batch.requests += 1;
            let request = Request { protocol, bytes: rest, parts };
            let then = match protocol {
                Protocol::Resp => {
                    let resp3 = &mut connection_protocol.resp3;
                    resp::answer(&self.resp, &self.ready, resp3, request, out)
                }
                Protocol::Memcached => {
                    memcached::answer(&self.memcached, &self.ready, request, out)
                }
            };
            if then.is_break() {
                batch.close = true;
                break;
            }
        }
        batch
    }
}

#[cfg(test)]
mod tests;
