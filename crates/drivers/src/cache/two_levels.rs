//! `Zend_Cache_Backend_TwoLevels` of Zend Framework 1 (`Shardj/zf1-future`, 2024) as used by
//! Magento: memcached in front of a store with tags, without `auto_refresh_fast_cache`.
//!
//! Both levels store the same bytes, a serialized array of `data`, `lifetime` in seconds or null,
//! `expire` and `priority`, which is always 8. The first save asks memcached how full it is, and
//! later about one in ten. Up to 80 % the record goes to both levels, above that only to the slow
//! one. In the fast level it has no lifetime, since the original compares its limit as null; a
//! record that a load copies from the slow level keeps its own. A clean by tags gets the IDs from
//! the slow level and removes each from both, one by one. A clean of old records only cleans the
//! slow level.

use workloads::app_cache::{CleanMode, Effort, LoadEffect, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::expiry::NEVER;
use super::{Random, SlowLevel, expire_s};
use crate::memcached::ZendMemcached;
use crate::php::Value;

/// Priority of every record.
const PRIORITY: u64 = 8;
const PRIORITY_VALUE: Value<'static> = Value::Int(PRIORITY.cast_signed());
/// One save in this many asks again how full the fast level is.
const USAGE_CHANCE: u64 = 10;
/// Records filled between two checks of how full the fast level is.
const FILLED_AT_ONCE: u64 = 8_192;
/// Nominal lifetime of a record without one, in seconds.
const FOREVER_S: u64 = NEVER.cast_unsigned();

pub(super) struct TwoLevels<S> {
    fast: ZendMemcached,
    slow: S,
    /// Used share of the fast level, in per cent; `None` before the first check.
    usage: Option<u64>,
    dice: Random,
    /// Records filled in bulk.
    filled: u64,
    prepared: Vec<u8>,
    received: Vec<u8>,
}

impl<S: SlowLevel> TwoLevels<S> {
    pub(super) fn new(fast: ZendMemcached, slow: S) -> Self {
        let (prepared, received) = (Vec::new(), Vec::new());
        Self { fast, slow, usage: None, dice: Random::new(), filled: 0, prepared, received }
    }

    /// An unresponsive level counts as empty, as in the original; the next call reports the error.
    fn usage(&mut self) -> u64 {
        if self.usage.is_none() || self.dice.is_one_in(USAGE_CHANCE) {
            self.usage = Some(self.fast.fill_percent().unwrap_or(0));
        }
        self.usage.unwrap_or(0)
    }

    /// Removes a record from the fast level; a missing one is loaded once more.
    fn purge(&mut self, id: &str) -> Result<(), StoreError> {
        if self.fast.remove(id)? == Found::No {
            self.fast.load(id, &mut self.received)?;
        }
        Ok(())
    }

    /// Reads a record from either level into `received`. True if it came from the fast level;
    /// `None` if it is missing. Content that is not an array is removed and counts as missing.
    fn received(&mut self, id: &str) -> Result<Option<bool>, StoreError> {
        if self.fast.load(id, &mut self.received)? == Found::Yes {
            if is_array(&self.received) {
                return Ok(Some(true));
            }
            self.fast.remove(id)?;
        }
        if self.slow.load(id, &mut self.received)? == Found::No {
            return Ok(None);
        }
        if !is_array(&self.received) {
            self.slow.remove(id)?;
            return Ok(None);
        }
        Ok(Some(false))
    }
}

fn is_array(bytes: &[u8]) -> bool {
    matches!(Value::read(bytes), Some(Value::Array(None, _)))
}

/// Writes the array of a record to `out` and replaces the previous content.
fn prepare(out: &mut Vec<u8>, data: Value<'_>, lifetime_s: Option<u64>, priority: Value<'_>) {
    out.clear();
    Value::named([
        ("data", data),
        ("lifetime", lifetime_s.map_or(Value::Null, |s| Value::Int(s.cast_signed()))),
        ("expire", Value::Int(expire_s(Some(lifetime_s.unwrap_or(FOREVER_S))))),
        ("priority", priority),
    ])
    .write(out);
}

impl<S: SlowLevel> TaggedCache for TwoLevels<S> {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        let Some(is_fast) = self.received(id)? else { return Ok(Found::No) };
        let array = Value::read(&self.received).unwrap_or(Value::Null);
        let data = array.get("data").cloned().unwrap_or(Value::Null);
        if !is_fast {
            let lifetime = array.get("lifetime").and_then(Value::int);
            let lifetime_s = lifetime.and_then(|s| u64::try_from(s).ok());
            let priority = array.get("priority").cloned().unwrap_or(Value::Null);
            prepare(&mut self.prepared, data.clone(), lifetime_s, priority);
            // A record that cannot be copied is still read.
            if let Err(e) = self.fast.save(Record::new(id, &self.prepared, &[], lifetime_s))
                && e.fatal
            {
                return Err(e);
            }
        }
        let Some(data) = data.str() else { return Ok(Found::No) };
        value.extend_from_slice(data);
        Ok(Found::Yes)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let usage = self.usage();
        prepare(&mut self.prepared, Value::Str(record.value), record.lifetime_s, PRIORITY_VALUE);
        let prepared = Record { value: &self.prepared, ..record };
        if 10 * PRIORITY >= usage {
            // The slow level is written even if the fast one failed.
            let fast = self.fast.save(Record { lifetime_s: None, ..prepared });
            self.slow.save(prepared)?;
            return fast;
        }
        self.slow.save(prepared)?;
        self.purge(record.id)
    }

    /// Checks less often than [`save`](TaggedCache::save) how full memcached is.
    fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        if self.filled.is_multiple_of(FILLED_AT_ONCE) {
            self.fill_end()?;
            self.usage = Some(self.fast.fill_percent().unwrap_or(0));
        }
        if 10 * PRIORITY < self.usage.unwrap_or(0) {
            return self.save(record);
        }
        self.filled += 1;
        prepare(&mut self.prepared, Value::Str(record.value), record.lifetime_s, PRIORITY_VALUE);
        let prepared = Record { value: &self.prepared, ..record };
        self.fast.fill(Record { lifetime_s: None, ..prepared })?;
        self.slow.fill(prepared)
    }

    fn fill_end(&mut self) -> Result<(), StoreError> {
        self.fast.fill_end()?;
        self.slow.fill_end()
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        let fast = self.fast.remove(id)?;
        let slow = self.slow.remove(id)?;
        Ok(if (fast, slow) == (Found::Yes, Found::Yes) { Found::Yes } else { Found::No })
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        match mode {
            CleanMode::All => {
                self.fast.remove_all()?;
                self.slow.clean(mode, tags)
            }
            CleanMode::Old => self.slow.clean(mode, tags),
            _ => self.slow.ids(mode, tags)?.iter().try_for_each(|id| self.remove(id).map(drop)),
        }
    }

    // A load copies a record from the slow level to the fast one, even if it was saved again in
    // between.
    fn load_effect(&self) -> LoadEffect {
        self.slow.load_effect().max(LoadEffect::Copies)
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        self.slow.stale_members()
    }

    fn effort(&self) -> Effort {
        self.fast.effort() + self.slow.effort()
    }
}
