//! What a cache with tags must offer to be measured, from the view of one client (one PHP worker)
//! with its own connection.

use crate::store::{Found, StoreError};
use std::ops::Add;

/// Which records a clean removes (the modes of `Zend_Cache`'s interface).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleanMode {
    /// All.
    All,
    /// Those whose lifetime is over, and what indexes still say of them.
    Old,
    /// Those that carry every one of the tags.
    MatchingTag,
    /// Those that carry none of the tags.
    NotMatchingTag,
    /// Those that carry at least one of the tags.
    MatchingAnyTag,
}

/// What a client has asked of its stores since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Times that it waited for a server's answer.
    pub round_trips: u64,
    /// Commands or statements sent to servers.
    pub commands: u64,
    /// Files opened, listed, looked at or removed, each time counted.
    pub files: u64,
}

impl Effort {
    /// What was asked since `before`.
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

/// What a load may do to what others saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadEffect {
    /// It changes nothing.
    #[default]
    Nothing,
    /// It may put an older value over a newer one that was saved meanwhile.
    Copies,
    /// It may remove a record that another client saved.
    Removes,
}

/// A record as it is saved.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its value.
    pub value: &'a [u8],
    /// Tags by which it is cleaned.
    pub tags: &'a [String],
    /// Seconds until it ends; `None` for never.
    pub lifetime_s: Option<u64>,
}

impl<'a> Record<'a> {
    /// A record of these parts.
    pub fn new(id: &'a str, value: &'a [u8], tags: &'a [String], lifetime_s: Option<u64>) -> Self {
        Self { id, value, tags, lifetime_s }
    }
}

/// One client of a cache with tags. Ids and tags are as the software above passes them to the
/// backend; a call blocks until it is answered or timed out.
pub trait TaggedCache: Send {
    /// Reads a record into `value`, whose earlier content is replaced.
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError>;

    /// Stores a record, whether or not there is one of that id.
    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError>;

    /// Saves one of many records that are not there yet, while nobody reads or cleans. Its answer
    /// may come with that of a later one, or with [`TaggedCache::fill_end`]; then everything is as
    /// after [`TaggedCache::save`]. A backend without such a way saves at once.
    fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.save(record)
    }

    /// Ends a fill: waits until all of its records are there.
    fn fill_end(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether clients that use a tag for the first time at the same moment lose one another's
    /// records, so that tags must have been used before clients fill the cache together.
    fn new_tags_race(&self) -> bool {
        false
    }

    /// What a load may do to records that other clients save.
    fn load_effect(&self) -> LoadEffect {
        LoadEffect::Nothing
    }

    /// Whether a record is only found by who names its tags too, so that each load and removal of
    /// one that another client saved must be preceded by [`Self::learn`].
    fn needs_tags(&self) -> bool {
        false
    }

    /// Tells the tags of a record that another client saved, before it is asked for.
    fn learn(&mut self, id: &str, tags: &[String]) {
        let _ = (id, tags);
    }

    /// Removes one record; `Found::No` where the backend tells that there was none.
    fn remove(&mut self, id: &str) -> Result<Found, StoreError>;

    /// Removes the records that `mode` says; `tags` is empty for `All` and `Old`. A mode that the
    /// backend cannot serve is an error of class `Other`, not fatal.
    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError>;

    /// How many entries of the tags' indexes name a record that is gone, once nobody uses the cache
    /// any more; `None` where nothing is listed by tag, or the software does not leave any.
    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// What was asked of the stores since the client was opened.
    fn effort(&self) -> Effort;
}
