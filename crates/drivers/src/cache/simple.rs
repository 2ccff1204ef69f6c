//! Two levels without twice the data, as Colin Mollenhour proposed for Magento: memcached alone
//! holds the data, a store that knows tags alone the tags, with an empty value.
//!
//! A load asks memcached only, so a record that it evicted is a miss. A clean by tags asks the slow
//! level for ids, removes each from memcached, and then cleans the slow level in its own way.

use workloads::app_cache::{CleanMode, Effort, TaggedCache};
use workloads::store::{Found, StoreError};

use super::SlowLevel;
use super::two_levels::together;
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

    fn save(
        &mut self,
        id: &str,
        value: &[u8],
        tags: &[String],
        lifetime_s: Option<u64>,
    ) -> Result<(), StoreError> {
        self.fast.save(id, value, lifetime_s)?;
        self.slow.save(id, b"", tags, lifetime_s)
    }

    fn fill(
        &mut self,
        id: &str,
        value: &[u8],
        tags: &[String],
        lifetime_s: Option<u64>,
    ) -> Result<(), StoreError> {
        self.fast.fill(id, value, lifetime_s)?;
        self.slow.fill(id, b"", tags, lifetime_s)
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
        let ids = match mode {
            CleanMode::All => {
                self.fast.remove_all()?;
                Vec::new()
            }
            // memcached forgets by itself.
            CleanMode::Old => Vec::new(),
            CleanMode::MatchingTag => self.slow.ids_matching_tags(tags)?,
            CleanMode::NotMatchingTag => self.slow.ids_not_matching_tags(tags)?,
            CleanMode::MatchingAnyTag => self.slow.ids_matching_any_tags(tags)?,
        };
        for id in &ids {
            self.fast.remove(id)?;
        }
        self.slow.clean(mode, tags)
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        self.slow.stale_members()
    }

    fn effort(&self) -> Effort {
        together(self.fast.effort(), self.slow.effort())
    }
}
