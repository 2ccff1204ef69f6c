//! `Zend_Cache_Backend_Libmemcached` of Zend Framework 1 (`Shardj/zf1-future`, 2024) on the PHP
//! extension memcached with `memcached.serializer=php`: the key is the ID, the value a serialized
//! list of the data, the save time and the lifetime in seconds, or null. It does not support tags.
//! Values are not compressed; the extension compresses them by default above 2,000 bytes if that
//! saves a quarter. A value that another program compressed is reported as not ours.

use std::time::Duration;

use model::{Endpoint, ErrorClass};
use workloads::app_cache::{Effort, Record};
use workloads::store::{Found, StoreError};

use super::text::Text;
use crate::cache::now_s;
use crate::php::Value;

/// Flags of a value serialized by PHP (`php_memcached_private.h` of the extension).
const SERIALIZED: u32 = 4;
/// The lowest flags of unsupported values: compressed, or serialized differently.
const UNSUPPORTED: u32 = 5;

pub(crate) struct ZendMemcached {
    text: Text,
    received: Vec<u8>,
    out: Vec<u8>,
}

impl ZendMemcached {
    /// Connects and waits for one reply.
    pub(crate) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let text = Text::connect(endpoint, timeout)?;
        Ok(Self { text, received: Vec::new(), out: Vec::new() })
    }

    /// Requests sent since the client was opened.
    pub(crate) fn effort(&self) -> Effort {
        self.text.effort()
    }

    /// Reads a record's data into `data`, replacing its content. An invalid key or a value that
    /// cannot be unserialized counts as not found.
    pub(crate) fn load(&mut self, id: &str, data: &mut Vec<u8>) -> Result<Found, StoreError> {
        data.clear();
        let flags = match self.text.get(id, &mut self.received) {
            Ok(flags) => flags,
            Err(e) if e.fatal => return Err(e),
            Err(_) => None,
        };
        match flags {
            Some(0) => {
                // A plain string of another program: PHP returns its first byte as the first entry.
                data.extend_from_slice(&self.received[..self.received.len().min(1)]);
            }
            Some(SERIALIZED) => {
                let value = Value::read(&self.received);
                let first = value.as_ref().and_then(|list| list.at(0)).and_then(Value::str);
                let Some(first) = first else { return Ok(Found::No) };
                data.extend_from_slice(first);
                return Ok(Found::Yes);
            }
            Some(UNSUPPORTED..) => {
                let message = format!(
                    "record `{id}` is compressed or serialized differently (expected \
                     `memcached.serializer=php` and no compression)"
                );
                return Err(StoreError::soft(ErrorClass::NotOurs, message));
            }
            Some(_) | None => {}
        }
        Ok(if data.is_empty() { Found::No } else { Found::Yes })
    }

    /// Stores a record without its tags.
    pub(crate) fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.write(record);
        self.text.set(record.id, SERIALIZED, record.lifetime_s.unwrap_or(0), &self.out)
    }

    /// Like [`ZendMemcached::save`] in a stream whose replies are read later.
    pub(crate) fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.write(record);
        self.text.stream_set(record.id, SERIALIZED, record.lifetime_s.unwrap_or(0), &self.out)
    }

    /// Waits until all filled records are stored.
    pub(crate) fn fill_end(&mut self) -> Result<(), StoreError> {
        self.text.settle()
    }

    fn write(&mut self, record: Record<'_>) {
        let lifetime = record.lifetime_s.map_or(Value::Null, |s| Value::Int(s.cast_signed()));
        let list = [Value::Str(record.value), Value::Int(now_s()), lifetime];
        self.out.clear();
        Value::list(list.into_iter()).write(&mut self.out);
    }

    /// Removes a record; an invalid key counts as not found.
    pub(crate) fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        match self.text.delete(id) {
            Err(e) if !e.fatal => Ok(Found::No),
            result => result,
        }
    }

    /// Used share of the servers' memory, in whole per cent.
    pub(crate) fn fill_percent(&mut self) -> Result<u64, StoreError> {
        self.text.fill_percent()
    }

    /// Removes everything from the servers with `flush_all`, including foreign items. Only for
    /// `CleanMode::All`, which is only available on private servers.
    pub(crate) fn remove_all(&mut self) -> Result<(), StoreError> {
        self.text.flush_all()
    }
}
