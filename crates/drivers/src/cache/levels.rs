//! Requirements of a store that serves as the slow level of two.

use workloads::app_cache::{CleanMode, TaggedCache};
use workloads::store::StoreError;

/// A cache that can list its records by tag, each ID once.
pub(crate) trait SlowLevel: TaggedCache {
    /// IDs of the records that a clean by tags removes; none for the modes without tags. A mode
    /// that the store does not support is a non-fatal error of class `Other`.
    fn ids(&mut self, mode: CleanMode, tags: &[String]) -> Result<Vec<String>, StoreError>;
}
