//! Two levels without twice the data, as Colin Mollenhour proposed for Magento: memcached alone
//! holds the data, a store that knows tags alone the tags, with an empty value.
//!
//! A load asks memcached only, so a record that it evicted is a miss. A clean by tags asks the slow
//! level for ids, removes each from memcached, and then cleans the slow level in its own way.

use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

use super::SlowLevel;
use crate::memcached::ZendMemcached;

pub(super) struct SimpleTwoLevels<S> {
    fast: ZendMemcached,
    slow: S,
}

impl<S: SlowLevel> SimpleTwoLevels<S> {
    pub(super) fn new(fast: ZendMemcached, slow: S) -> Self {
        Self { fast, slow }
    }
}

impl<S: SlowLevel> TaggedCache for SimpleTwoLevels<S> {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        self.fast.load(id, value)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.fast.save(record)?;
        self.slow.save(Record { value: b"", ..record })
    }

    fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.fast.fill(record)?;
        self.slow.fill(Record { value: b"", ..record })
    }

    fn fill_end(&mut self) -> Result<(), StoreError> {
        self.fast.fill_end()?;
        self.slow.fill_end()
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        let found = self.fast.remove(id)?;
        self.slow.remove(id)?;
        Ok(found)
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        if mode == CleanMode::All {
            self.fast.remove_all()?;
        }
        // What is old memcached forgets by itself.
        for id in &self.slow.ids(mode, tags)? {
            self.fast.remove(id)?;
        }
        self.slow.clean(mode, tags)
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        self.slow.stale_members()
    }

    fn effort(&self) -> Effort {
        self.fast.effort() + self.slow.effort()
    }
}
