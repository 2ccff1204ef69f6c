//! What the null server says.

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

/// Answers of one turn are at most this long, but for the last of them; the rest waits.
const OUT_BYTES_MAX: usize = 1 << 20;
/// What every value is made of.
const FILLING: u8 = b'x';

/// How a connection speaks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speech {
    /// `None` until its first request tells.
    protocol: Option<Protocol>,
    /// RESP 3, after `HELLO 3`.
    resp3: bool,
}

/// What became of the requests in some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// Bytes of requests that were answered.
    pub(super) used: usize,
    /// How many there were.
    pub(super) requests: u64,
    /// Bytes that are at least missing to the next one; 0 when it may be whole and was left for
    /// later, because the answers are long already.
    pub(super) missing: usize,
    /// The connection ends after these answers.
    pub(super) close: bool,
}

/// All answers, shared by all threads.
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

    /// Answers the requests in `input` one after another and appends the answers to `out`. `parts`
    /// is there to be used again.
    pub(super) fn all(
        &self,
        speech: &mut Speech,
        input: &[u8],
        parts: &mut Parts,
        out: &mut Vec<u8>,
    ) -> Batch {
        let mut batch = Batch { missing: 1, ..Batch::default() };
        let Some(protocol) = speech.protocol.or_else(|| scan::protocol(input)) else {
            return batch;
        };
        speech.protocol = Some(protocol);
        while batch.used < input.len() {
            if out.len() >= OUT_BYTES_MAX {
                batch.missing = 0;
                break;
            }
            let rest = &input[batch.used..];
            let used = match scan::request(protocol, rest, parts) {
                Ok(Found::Whole { used }) => used,
                Ok(Found::More { missing }) => {
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
                    let resp3 = &mut speech.resp3;
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
