//! The interface of a tagged cache under test, for one client (one PHP worker) with its own
//! connection.

use crate::store::{Found, StoreError};
use std::ops::Add;

/// Which records a clean removes (the modes of `Zend_Cache`'s interface).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanMode {
    /// All records.
    All,
    /// Expired records, and their remaining index entries.
    Old,
    /// Records that carry all of the tags.
    MatchingTag,
    /// Records that carry none of the tags.
    NotMatchingTag,
    /// Records that carry at least one of the tags.
    MatchingAnyTag,
}

/// Work that a client has caused in its stores since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Round trips to a server.
    pub round_trips: u64,
    /// Commands or statements sent to servers.
    pub commands: u64,
    /// File operations: opens, directory listings, stats and removals.
    pub files: u64,
}

impl Effort {
    /// Work since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            round_trips: self.round_trips - before.round_trips,
            commands: self.commands - before.commands,
            files: self.files - before.files,
        }
    }
}

impl Add for Effort {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            round_trips: self.round_trips + more.round_trips,
            commands: self.commands + more.commands,
            files: self.files + more.files,
        }
    }
}

/// Effect of a load on records that other clients saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadEffect {
    /// None.
    #[default]
    Nothing,
    /// It may overwrite a newer value, saved concurrently, with an older one.
    Copies,
    /// It may remove a record that another client saved.
    Removes,
}

/// A record to be saved.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its value.
    pub value: &'a [u8],
    /// Tags by which it can be cleaned.
    pub tags: &'a [String],
    /// Lifetime in seconds; `None` for no expiry.
    pub lifetime_s: Option<u64>,
}

impl<'a> Record<'a> {
    /// A record with the given fields.
    pub fn new(id: &'a str, value: &'a [u8], tags: &'a [String], lifetime_s: Option<u64>) -> Self {
        Self { id, value, tags, lifetime_s }
    }
}

/// One client of a tagged cache. Ids and tags are as the layer above passes them to the backend; a
/// call blocks until it is answered or times out.
pub trait TaggedCache: Send {
    /// Reads a record into `value`, replacing its content.
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError>;

    /// Stores a record, replacing any record with that id.
    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError>;

    /// Saves one of many records that do not exist yet, while no client reads or cleans. It may be
    /// answered together with a later record or with [`TaggedCache::fill_end`]; after that, the
    /// state is the same as after [`TaggedCache::save`]. By default it saves immediately.
    fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.save(record)
    }

    /// Ends a fill: waits until all of its records are stored.
    fn fill_end(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether clients that use a tag concurrently for the first time lose each other's records, so
    /// all tags must be introduced before clients fill the cache concurrently.
    fn new_tags_race(&self) -> bool {
        false
    }

    /// Whether a save loses its record if another client cleans one of its tags concurrently.
    fn cleans_race(&self) -> bool {
        false
    }

    /// Effect of a load on records that other clients save.
    fn load_effect(&self) -> LoadEffect {
        LoadEffect::Nothing
    }

    /// Whether a record can only be found with its tags, so [`Self::learn`] must precede each load
    /// and removal of a record that another client saved.
    fn needs_tags(&self) -> bool {
        false
    }

    /// Passes the tags of a record that another client saved, before it is loaded.
    fn learn(&mut self, id: &str, tags: &[String]) {
        let _ = (id, tags);
    }

    /// Removes one record; `Found::No` if the backend reports that there was none.
    fn remove(&mut self, id: &str) -> Result<Found, StoreError>;

    /// Removes the records selected by `mode`; `tags` is empty for `All` and `Old`. A mode that the
    /// backend does not support is a non-fatal error of class `Other`.
    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError>;

    /// Number of tag index entries whose record does not exist any more, counted when the cache is
    /// idle; `None` if there is no tag index or the software leaves no such entries.
    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Work caused in the stores since the client was opened.
    fn effort(&self) -> Effort;
}
