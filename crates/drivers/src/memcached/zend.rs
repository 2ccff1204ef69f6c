//! `Zend_Cache_Backend_Libmemcached` of Zend Framework 1 (`Shardj/zf1-future`, 2024) on the PHP
//! extension memcached with `memcached.serializer=php`: the key is the id, the value a
//! serialized list of the data, the time of saving and the lifetime in seconds, or null. It knows
//! no tags. Values are not compressed, which the extension does by default above 2,000 bytes where
//! it saves a quarter; one that was compressed by others is told as not ours.

use std::time::Duration;

use model::{Endpoint, ErrorClass};
use workloads::app_cache::{Effort, Record};
use workloads::store::{Found, StoreError};

use super::text::Text;
use crate::cache::now_s;
use crate::php::Value;

/// Flags of what PHP serialized (`php_memcached_private.h` of the extension).
const SERIALIZED: u32 = 4;
/// The lowest flags of what this does not read: serialized otherwise, or compressed.
const OTHERWISE: u32 = 5;

pub(crate) struct ZendMemcached {
    text: Text,
    received: Vec<u8>,
    out: Vec<u8>,
}

impl ZendMemcached {
    /// Connects, and asks for one answer.
    pub(crate) fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Self, StoreError> {
        let text = Text::connect(endpoint, timeout)?;
        Ok(Self { text, received: Vec::new(), out: Vec::new() })
    }

    /// What was asked since the client was opened.
    pub(crate) fn effort(&self) -> Effort {
        self.text.effort()
    }

    /// Reads a record's data into `data`, whose earlier content is replaced. Not found is also
    /// what memcached takes for no key, and what cannot be unserialized.
    pub(crate) fn load(&mut self, id: &str, data: &mut Vec<u8>) -> Result<Found, StoreError> {
        data.clear();
        let flags = match self.text.get(id, &mut self.received) {
            Ok(flags) => flags,
            Err(e) if e.fatal => return Err(e),
            Err(_) => None,
        };
        match flags {
            Some(0) => {
                // A plain text of others: what PHP takes for its first entry is its first byte.
                data.extend_from_slice(&self.received[..self.received.len().min(1)]);
            }
            Some(SERIALIZED) => {
                let value = Value::read(&self.received);
                let first = value.as_ref().and_then(|list| list.at(0)).and_then(Value::str);
                let Some(first) = first else { return Ok(Found::No) };
                data.extend_from_slice(first);
                return Ok(Found::Yes);
            }
            Some(OTHERWISE..) => {
                let message = format!(
                    "record `{id}` was compressed or serialized by other means (expected \
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

    /// As [`ZendMemcached::save`], among many whose answers come later.
    pub(crate) fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.write(record);
        self.text.stream_set(record.id, SERIALIZED, record.lifetime_s.unwrap_or(0), &self.out)
    }

    /// Waits until all is stored that was filled.
    pub(crate) fn fill_end(&mut self) -> Result<(), StoreError> {
        self.text.settle()
    }

    fn write(&mut self, record: Record<'_>) {
        let lifetime = record.lifetime_s.map_or(Value::Null, |s| Value::Int(s.cast_signed()));
        let list = [Value::Str(record.value), Value::Int(now_s()), lifetime];
        self.out.clear();
        Value::list(list.into_iter()).write(&mut self.out);
    }

    /// Removes a record; one that memcached takes for no key was not there.
    pub(crate) fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        match self.text.delete(id) {
            Err(e) if !e.fatal => Ok(Found::No),
            result => result,
        }
    }

    /// Share of the servers' memory that is used, in whole per cent.
    pub(crate) fn fill_percent(&mut self) -> Result<u64, StoreError> {
        self.text.fill_percent()
    }

    /// Removes everything of the servers by `flush_all`, also what others wrote: only for
    /// `CleanMode::All`, which is offered to private servers alone.
    pub(crate) fn remove_all(&mut self) -> Result<(), StoreError> {
        self.text.flush_all()
    }
}
