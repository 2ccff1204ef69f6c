//! Two levels without duplicated data, as proposed by Colin Mollenhour for Magento: memcached
//! stores only the data, and a store with tags stores only the tags, with an empty value.
//!
//! A load asks only memcached, so an evicted record is a miss. A clean by tags gets the IDs from
//! the slow level, removes each from memcached and then cleans the slow level natively.

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
        // memcached expires old records without help.
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
