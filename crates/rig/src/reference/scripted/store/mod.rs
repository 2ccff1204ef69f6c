//! What a scripted server keeps: strings by key, remembered until they are deleted. Times to live
//! are taken and not looked at.

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
    /// How many values were ever kept; each has its number (memcached's `cas unique`).
    kept: u64,
}

#[derive(Debug)]
struct Item {
    value: Vec<u8>,
    flags: u32,
    unique: u64,
}

/// How the first value of a reply is spoiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoil {
    /// One byte is changed.
    Change,
    /// The last byte is left out.
    Shorten,
}

/// A reply while it is made.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Its bytes; none where the client wants no reply.
    pub(super) bytes: Vec<u8>,
    /// The connection ends after it.
    pub(super) close: bool,
    /// What is still to be spoiled: `None` when nothing was, or when it is done.
    pub(super) spoil: Option<Spoil>,
}

impl Reply {
    fn say(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// A value as it is sent; an empty one cannot be spoiled.
fn spoiled<'a>(spoil: &mut Option<Spoil>, value: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(last) = value.len().checked_sub(1) else { return value.into() };
    match spoil.take() {
        None => value.into(),
        Some(Spoil::Shorten) => value[..last].into(),
        Some(Spoil::Change) => {
            let mut changed = value.to_vec();
            // A letter stays a letter, so that only a comparison finds it.
            changed[last / 2] ^= 1;
            changed.into()
        }
    }
}

impl Store {
    /// Carries out a request of at least one word. `resp3` is how its connection speaks.
    pub(super) fn answer(
        &mut self,
        request: Request,
        resp3: &mut bool,
        spoil: Option<Spoil>,
    ) -> Reply {
        let mut reply = Reply { spoil, ..Reply::default() };
        match request.protocol {
            Protocol::Resp => {
                let Reply { bytes, close, spoil } = &mut reply;
                let mut resp = Resp { out: bytes, is_3: *resp3 };
                *close = self.resp(request, spoil, &mut resp).is_break();
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

    /// Adds to a number; `None` where there is none or it would grow too large.
    fn add(&mut self, key: &[u8], by: i64) -> Option<i64> {
        let item = self.items.get_mut(key)?;
        let number = integer(&item.value)?.checked_add(by)?;
        self.kept += 1;
        item.value = number.to_string().into_bytes();
        item.unique = self.kept;
        Some(number)
    }
}

/// A whole number in decimal digits.
fn integer(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
