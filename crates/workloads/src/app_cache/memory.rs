//! Test helpers: a small workload, and a tagged cache in memory with configurable faults.

use model::{AppCache, ErrorClass, Fill, Magento, PageCache, Phase, Stop};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use super::store::{CleanMode, Effort, LoadEffect, Record, TaggedCache};
use crate::store::{Found, StoreError};

/// 300 records and 40 tags, with one phase per mix.
pub(crate) fn workload(mixes: &[&[(&str, f64)]]) -> AppCache {
    let phases = mixes.iter().map(|mix| Phase {
        name: "p".into(),
        mix: mix.iter().map(|(k, v)| ((*k).to_string(), *v)).collect::<BTreeMap<_, _>>(),
        warmup_ns: 0,
        stop: Stop::Count(1),
        control: None,
    });
    AppCache {
        profile: "test".into(),
        sizes_of: None,
        keys: 300,
        tags: 40,
        tags_of_record: (0, 15),
        record_bytes: (1, 64),
        write_chance: 5,
        clean_chance: 100,
        as_original: true,
        magento: Magento::One,
        page_reads: 3,
        page_writes: 1,
        fill: Fill::Save,
        verify_one_in: 1,
        files: None,
        page_cache: PageCache::Warm,
        memory: None,
        phases: phases.collect(),
    }
}

/// Faults of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Cleans remove nothing.
    KeepsCleaned,
    /// A save over an existing record does nothing.
    KeepsOld,
    /// Drops the last byte of a value.
    Truncates,
    /// Changes the last byte of a value.
    Garbles,
    /// Stores the value of the previous save instead.
    Swaps,
    /// Deletes the record instead of saving it.
    Forgets,
    /// Deletes the record instead, once in this many saves.
    LosesOneIn(u64),
    /// Keeps the old record, once in this many saves.
    KeepsOldOneIn(u64),
    /// Saves fail, but may be applied.
    FailsToSave,
    /// Saves of longer values are refused, and the old record is removed.
    RefusesAbove(usize),
    /// Cleans fail.
    FailsToClean,
}

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) value: Vec<u8>,
    pub(crate) tags: Vec<String>,
    pub(crate) lifetime_s: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Whether clients must introduce tags before they fill, and pass a record's tags.
    pub(crate) has_requirements: bool,
    /// Effect of loads that it reports.
    pub(crate) load_effect: LoadEffect,
    /// Tags that were passed for a record before a load.
    pub(crate) learned_tags: HashMap<String, Vec<String>>,
    /// All tags used by saves.
    pub(crate) tags_used: BTreeSet<String>,
    pub(crate) records: HashMap<String, Stored>,
    pub(crate) fault: Option<Fault>,
    saved_before: Vec<u8>,
    saves: u64,
}

/// One client of the cache; clones share its content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    content: Arc<Mutex<Content>>,
    effort: Effort,
}

impl Memory {
    pub(crate) fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    pub(crate) fn misbehave(&self, fault: Fault) {
        self.content().fault = Some(fault);
    }
}

fn failed() -> StoreError {
    StoreError::soft(ErrorClass::Timeout, "on purpose")
}

impl TaggedCache for Memory {
    fn load(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        self.effort.round_trips += 1;
        self.effort.commands += 1;
        value.clear();
        match self.content().records.get(id) {
            Some(stored) => value.extend_from_slice(&stored.value),
            None => return Ok(Found::No),
        }
        Ok(Found::Yes)
    }

    fn save(&mut self, record: Record<'_>) -> Result<(), StoreError> {
        let Record { id, value, tags, lifetime_s } = record;
        self.effort.round_trips += 1;
        self.effort.commands += 3;
        let mut content = self.content();
        content.saves += 1;
        content.tags_used.extend(tags.iter().cloned());
        let mut stored = Stored { value: value.to_vec(), tags: tags.to_vec(), lifetime_s };
        let before = std::mem::replace(&mut content.saved_before, value.to_vec());
        match content.fault {
            Some(Fault::KeepsOld) if content.records.contains_key(id) => return Ok(()),
            Some(Fault::Truncates) => stored.value.truncate(value.len().saturating_sub(1)),
            Some(Fault::Garbles) => stored.value.iter_mut().rev().take(1).for_each(|b| *b ^= 0x80),
            Some(Fault::Swaps) => stored.value = before,
            Some(Fault::Forgets) => {
                content.records.remove(id);
                return Ok(());
            }
            Some(Fault::LosesOneIn(n)) if content.saves.is_multiple_of(n) => {
                content.records.remove(id);
                return Ok(());
            }
            Some(Fault::KeepsOldOneIn(n)) if content.saves.is_multiple_of(n) => return Ok(()),
            Some(Fault::RefusesAbove(bytes)) if value.len() > bytes => {
                content.records.remove(id);
                return Err(StoreError::soft(ErrorClass::TooLarge, "on purpose"));
            }
            Some(Fault::FailsToSave) if content.saves.is_multiple_of(2) => return Err(failed()),
            _ => {}
        }
        content.records.insert(id.into(), stored);
        if content.fault == Some(Fault::FailsToSave) { Err(failed()) } else { Ok(()) }
    }

    fn new_tags_race(&self) -> bool {
        self.content().has_requirements
    }

    fn load_effect(&self) -> LoadEffect {
        self.content().load_effect
    }

    fn needs_tags(&self) -> bool {
        self.content().has_requirements
    }

    fn learn(&mut self, id: &str, tags: &[String]) {
        self.content().learned_tags.insert(id.into(), tags.to_vec());
    }

    fn remove(&mut self, id: &str) -> Result<Found, StoreError> {
        let removed = self.content().records.remove(id);
        Ok(if removed.is_some() { Found::Yes } else { Found::No })
    }

    fn clean(&mut self, mode: CleanMode, tags: &[String]) -> Result<(), StoreError> {
        self.effort.round_trips += 2;
        let mut content = self.content();
        match content.fault {
            Some(Fault::KeepsCleaned) => return Ok(()),
            Some(Fault::FailsToClean) => return Err(failed()),
            _ => {}
        }
        content.records.retain(|_, stored| {
            let has = |tag: &String| stored.tags.contains(tag);
            match mode {
                CleanMode::MatchingAnyTag => !tags.iter().any(has),
                CleanMode::MatchingTag => !tags.iter().all(has),
                _ => unreachable!("no layer cleans so"),
            }
        });
        Ok(())
    }

    fn effort(&self) -> Effort {
        self.effort
    }
}
