//! What a store of records must offer to be the slow one of two levels.

use workloads::app_cache::{CleanMode, TaggedCache};
use workloads::store::StoreError;

/// A cache that can list its records by tag, each id once.
pub(crate) trait SlowLevel: TaggedCache {
    /// Ids of the records that a clean by tags removes; none for the modes without tags. A mode
    /// that the store cannot serve is an error of class `Other`, not fatal.
    fn ids(&mut self, mode: CleanMode, tags: &[String]) -> Result<Vec<String>, StoreError>;
}
