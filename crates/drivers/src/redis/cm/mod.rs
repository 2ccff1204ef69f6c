//! The layout of `Cm_Cache_Backend_Redis`, a cache with tags used by Magento and others.
//!
//! | key | kind | holds |
//! |---|---|---|
//! | `zc:k:<id>` | hash | a record: its fields are below |
//! | `zc:ti:<tag>` | set | IDs of records that had the tag, until they are collected |
//! | `zc:tags` | set | all tags |
//! | `zc:ids` | set | all IDs, only with [`CmOptions::not_matching_tags`] |
//!
//! Fields of a record: `d` data, `t` tags joined by commas, `m` save time in seconds since 1970,
//! `i` 1 if it never expires, else 0.
//!
//! Only records have a lifetime. Tags and data of at least 20,480 bytes are compressed
//! (`compress`). Commands and pipelines are those of the module on the PHP extension redis, which
//! does not use transactions: as of 2019 ([`CmOptions::as_2019`]) or with today's scripts
//! ([`CmOptions::today`]). `save` saves records, and `garbage` removes IDs of missing records, both
//! in either version.

mod compress;
mod garbage;
mod options;
mod save;
mod scripts;

use std::collections::HashSet;
use std::time::Duration;

use model::{Endpoint, ErrorClass, Failure};
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::{Found, StoreError};

pub use compress::Compression;
pub use options::{CmOptions, Removal};

use super::counted::{CountingConnection, Names, digits};
use super::errors::unexpected;
use super::gathered::SetMembers;
use super::resp::Reply;
use super::stale::{Index, stale_members};
use crate::cache::SlowLevel;

const RECORD: &[u8] = b"zc:k:";
const TAG: &[u8] = b"zc:ti:";
const TAGS: &[u8] = b"zc:tags";
const IDS: &[u8] = b"zc:ids";

/// Tags per `SUNION` or script run.
const TAGS_AT_ONCE: usize = 500;
/// Tags that a script unpacks at once, as text: Lua's stack is limited.
const UNPACKED_AT_ONCE: &[u8] = b"5000";

/// One client of such a cache.
pub struct CmRedis {
    link: CountingConnection,
    options: CmOptions,
    /// Data of the record being saved, as stored.
    data: Vec<u8>,
    /// Its tags, as stored.
    tags: Vec<u8>,
    /// Tags that a record had before, joined by commas.
    before: Vec<u8>,
    ids: Names,
    /// Tag members of filled records that are not yet sent.
    gathered: SetMembers,
}

impl CmRedis {
    /// Connects; errors as [`crate::open_tagged_cache`], and `Other` for invalid options.
    pub fn open(
        endpoint: &Endpoint,
        options: CmOptions,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        if options.records_at_once == 0 {
            let message = "a batch of `0` records removes nothing (expected at least 1)".into();
            return Err(Failure { class: ErrorClass::Other, message });
        }
        Ok(Self {
            link: CountingConnection::connect(endpoint, timeout)?,
            options,
            data: Vec::new(),
            tags: Vec::new(),
            before: Vec::new(),
            ids: Names::default(),
            gathered: SetMembers::default(),
        })
    }

    /// IDs of records that a clean of that mode by these tags matches, including expired ones. Each
    /// ID appears once, in no particular order.
    pub fn ids(&mut self, mode: CleanMode, tags: &[String]) -> Result<Vec<String>, StoreError> {
        self.find(mode, tags)?;
        Ok(self.ids.iter().map(|id| String::from_utf8_lossy(id).into_owned()).collect())
    }

    fn find(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        match mode {
            CleanMode::MatchingTag => self.find_all(tags),
            CleanMode::NotMatchingTag => self.find_none(tags),
            CleanMode::MatchingAnyTag => self.find_any(tags),
            CleanMode::All | CleanMode::Old => {
                self.ids.clear();
                Ok(())
            }
        }
    }

    fn find_any(&mut self, tags: &[String]) -> Result<(), StoreError> {
        self.ids.clear();
        for tags in tags.chunks(TAGS_AT_ONCE) {
            self.begin_sets(b"SUNION", 0, tags);
            self.link.ask_names("SUNION", &mut self.ids)?;
        }
        if tags.len() > TAGS_AT_ONCE {
            let all = std::mem::take(&mut self.ids);
            let mut seen = HashSet::new();
            for id in all.iter().filter(|id| seen.insert(*id)) {
                self.ids.push(id);
            }
        }
        Ok(())
    }

    fn find_all(&mut self, tags: &[String]) -> Result<(), StoreError> {
        self.ids.clear();
        if tags.is_empty() {
            return Ok(());
        }
        self.begin_sets(b"SINTER", 0, tags);
        self.link.ask_names("SINTER", &mut self.ids)
    }

    fn find_none(&mut self, tags: &[String]) -> Result<(), StoreError> {
        if !self.options.not_matching_tags {
            let message = "records without these tags cannot be found (expected the option \
                           not_matching_tags: a set of all IDs)";
            return Err(StoreError::soft(ErrorClass::Other, message));
        }
        self.ids.clear();
        let link = self.link.begin(2 + tags.len()).part(&[b"SDIFF"]).part(&[IDS]);
        for tag in tags {
            link.part(&[TAG, tag.as_bytes()]);
        }
        self.link.ask_names("SDIFF", &mut self.ids)
    }

    /// Starts a request whose keys are tag sets, with room for `more` parts.
    fn begin_sets(&mut self, command: &[u8], more: usize, tags: &[String]) {
        self.link.begin(1 + tags.len() + more).part(&[command]);
        for tag in tags {
            self.link.part(&[TAG, tag.as_bytes()]);
        }
    }

    fn begin_pipeline(&mut self) {
        if self.options.transaction {
            self.link.request(&[b"MULTI"]);
        }
    }

    /// Sends the pipeline and returns the first number among its replies.
    fn commit(&mut self) -> Result<i64, StoreError> {
        if !self.options.transaction {
            return self.link.all();
        }
        let due = self.link.request(&[b"EXEC"]).send()?;
        let queued = self.link.read_all(due - 1);
        let done = self.link.elements("EXEC");
        queued?;
        let due = done? as u64;
        self.link.read_all(due)
    }

    /// Reads a record's current tags into `before`; empty if it has none.
    fn read_tags(&mut self, id: &str) -> Result<(), StoreError> {
        self.before.clear();
        self.link.begin(3).part(&[b"HGET"]).part(&[RECORD, id.as_bytes()]).part(&[b"t"]);
        match self.link.ask()? {
            Reply::Bulk(tags) => compress::unpack(tags, &mut self.before),
            Reply::Nil => Ok(()),
            other => Err(unexpected("HGET", &other)),
        }
    }

    /// Adds requests that remove the IDs from `first` to before `last`.
    fn remove_some(&mut self, ids: &Names, first: usize, last: usize) {
        self.link.begin(1 + last - first).part(&[self.options.removal.command()]);
        for at in first..last {
            self.link.part(&[RECORD, ids.get(at)]);
        }
        if self.options.not_matching_tags {
            self.link.begin(2 + last - first).part(&[b"SREM"]).part(&[IDS]);
            for at in first..last {
                self.link.part(&[ids.get(at)]);
            }
        }
    }

    /// Removes the found records, one pipeline per command.
    fn remove_found(&mut self) -> Result<(), StoreError> {
        let ids = std::mem::take(&mut self.ids);
        for first in (0..ids.len()).step_by(self.options.records_at_once) {
            let last = first.saturating_add(self.options.records_at_once).min(ids.len());
            self.begin_pipeline();
            self.remove_some(&ids, first, last);
            self.commit()?;
        }
        self.ids = ids;
        Ok(())
    }

    fn clean_any(&mut self, tags: &[String]) -> Result<(), StoreError> {
        self.find_any(tags)?;
        let ids = std::mem::take(&mut self.ids);
        self.begin_pipeline();
        for first in (0..ids.len()).step_by(self.options.records_at_once) {
            let last = first.saturating_add(self.options.records_at_once).min(ids.len());
            self.remove_some(&ids, first, last);
            if ids.len() > self.options.records_at_once {
                self.commit()?;
                self.begin_pipeline();
            }
        }
        self.ids = ids;
        self.begin_sets(self.options.removal.command(), 0, tags);
        self.link.begin(2 + tags.len()).part(&[b"SREM"]).part(&[TAGS]);
        for tag in tags {
            self.link.part(&[tag.as_bytes()]);
        }
        self.commit().map(drop)
    }

    fn clean_any_by_script(&mut self, tags: &[String]) -> Result<(), StoreError> {
        let keeps_ids: &[u8] = if self.options.not_matching_tags { b"1" } else { b"0" };
        for tags in tags.chunks(TAGS_AT_ONCE) {
            let reply = self.link.run(&scripts::CLEAN, 1 + tags.len() + 6, |link| {
                link.part(&[&digits(tags.len() as u64)]);
                for tag in tags {
                    link.part(&[tag.as_bytes()]);
                }
                for part in [TAG, RECORD, TAGS, IDS, keeps_ids, UNPACKED_AT_ONCE] {
                    link.part(&[part]);
                }
            })?;
            match reply {
                Reply::Integer(_) => {}
                other => return Err(unexpected("EVALSHA", &other)),
            }
        }
        Ok(())
    }
}

impl SlowLevel for CmRedis {
    fn ids(&mut self, mode: CleanMode, tags: &[String]) -> Result<Vec<String>, StoreError> {
        Self::ids(self, mode, tags)
    }
}

impl TaggedCache for CmRedis {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        self.link.begin(3).part(&[b"HGET"]).part(&[RECORD, id.as_bytes()]).part(&[b"d"]);
        match self.link.ask()? {
            Reply::Bulk(data) => compress::unpack(data, value).map(|()| Found::Yes),
            Reply::Nil => Ok(Found::No),
            other => Err(unexpected("HGET", &other)),
        }
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.save_record(record)
    }

    fn fill(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        self.fill_record(record)
    }

    fn fill_end(&mut self) -> Result<(), StoreError> {
        self.end_fill()
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        self.read_tags(id)?;
        self.begin_pipeline();
        let link = self.link.begin(2).part(&[self.options.removal.command()]);
        link.part(&[RECORD, id.as_bytes()]);
        if self.options.not_matching_tags {
            link.request(&[b"SREM", IDS, id.as_bytes()]);
        }
        // A record without tags is removed from the set of the empty tag.
        for tag in self.before.split(|byte| *byte == b',') {
            link.begin(3).part(&[b"SREM"]).part(&[TAG, tag]).part(&[id.as_bytes()]);
        }
        Ok(if self.commit()? > 0 { Found::Yes } else { Found::No })
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        match mode {
            CleanMode::All => match self.link.request(&[b"FLUSHDB"]).ask()? {
                Reply::Status(b"OK") => Ok(()),
                other => Err(unexpected("FLUSHDB", &other)),
            },
            CleanMode::Old if self.options.scripts => self.collect_by_scan(),
            CleanMode::Old => self.collect(),
            _ if tags.is_empty() => Ok(()),
            CleanMode::MatchingTag | CleanMode::NotMatchingTag => {
                self.find(mode, tags)?;
                self.remove_found()
            }
            CleanMode::MatchingAnyTag if self.options.scripts => self.clean_any_by_script(tags),
            CleanMode::MatchingAnyTag => self.clean_any(tags),
        }
    }

    fn stale_members(&mut self) -> Result<Option<u64>, StoreError> {
        let index = Index { sets: &[TAG, b"*"], scan: "SSCAN", record_prefix: RECORD };
        stale_members(&mut self.link, &index).map(Some)
    }

    fn effort(&self) -> Effort {
        self.link.effort()
    }
}
