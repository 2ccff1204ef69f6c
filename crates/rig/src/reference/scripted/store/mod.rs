//! The store of a scripted server: strings by key, kept until deleted. Times to live are accepted
//! and ignored.

mod memcached;
mod resp;

use crate::reference::replies::resp::Resp;
use crate::reference::scan::{Protocol, Request};
use std::borrow::Cow;
use std::collections::HashMap;

/// Values by key.
#[derive(Debug, Default)]
pub(super) struct Store {
    items: HashMap<Vec<u8>, Item>,
    /// Number of values ever stored; numbers the values (memcached's `cas unique`).
    kept: u64,
}

#[derive(Debug)]
struct Item {
    value: Vec<u8>,
    flags: u32,
    unique: u64,
}

/// Corruption of the first value in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Corruption {
    /// One byte is changed.
    Change,
    /// The last byte is dropped.
    Shorten,
}

/// A reply under construction.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Its bytes; empty if the client does not want a reply.
    pub(super) bytes: Vec<u8>,
    /// Whether to close the connection after it.
    pub(super) close: bool,
    /// Corruption still to be applied; `None` if none was requested or it is done.
    pub(super) corruption: Option<Corruption>,
}

impl Reply {
    fn say(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// The value to send, corrupted if requested; an empty one cannot be corrupted.
fn corrupted<'a>(corruption: &mut Option<Corruption>, value: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(last) = value.len().checked_sub(1) else { return value.into() };
    match corruption.take() {
        None => value.into(),
        Some(Corruption::Shorten) => value[..last].into(),
        Some(Corruption::Change) => {
            let mut changed = value.to_vec();
            // A letter stays a letter, so only a comparison detects the change.
            changed[last / 2] ^= 1;
            changed.into()
        }
    }
}

impl Store {
    /// Executes a request of at least one word. `resp3`: whether its connection uses RESP 3.
    pub(super) fn answer(
        &mut self,
        request: Request,
        resp3: &mut bool,
        corruption: Option<Corruption>,
    ) -> Reply {
        let mut reply = Reply { corruption, ..Reply::default() };
        match request.protocol {
            Protocol::Resp => {
                let Reply { bytes, close, corruption } = &mut reply;
                let mut resp = Resp { out: bytes, is_3: *resp3 };
                *close = self.resp(request, corruption, &mut resp).is_break();
                *resp3 = resp.is_3;
            }
            Protocol::Memcached => self.memcached(request, &mut reply),
        }
        reply
    }

    fn get(&self, key: &[u8]) -> Option<&Item> {
        self.items.get(key)
    }

    fn set(&mut self, key: &[u8], value: &[u8], flags: u32) {
        self.kept += 1;
        let item = Item { value: value.to_vec(), flags, unique: self.kept };
        self.items.insert(key.to_vec(), item);
    }

    /// Adds to a number; `None` if it is missing, not a number or would overflow.
    fn add(&mut self, key: &[u8], by: i64) -> Option<i64> {
        let item = self.items.get_mut(key)?;
        let number = integer(&item.value)?.checked_add(by)?;
        self.kept += 1;
        item.value = number.to_string().into_bytes();
        item.unique = self.kept;
        Some(number)
    }
}

/// Parses a decimal integer.
fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
