//! What a store of records must offer to be the slow one of two levels.

use workloads::app_cache::TaggedCache;
use workloads::store::StoreError;

/// A cache that can list its records by tag, each id once.
pub(crate) trait SlowLevel: TaggedCache {
    /// Ids of the records that carry at least one of the tags.
    fn ids_matching_any_tags(&mut self, tags: &[String]) -> Result<Vec<String>, StoreError>;

    /// Ids of the records that carry every one of the tags.
    fn ids_matching_tags(&mut self, tags: &[String]) -> Result<Vec<String>, StoreError>;

    /// Ids of the records that carry none of the tags. A store that cannot tell is an error of
    /// class `Other`, not fatal.
    fn ids_not_matching_tags(&mut self, tags: &[String]) -> Result<Vec<String>, StoreError>;
}
