//! One client of an application cache: reads, writes and cleans like a PHP worker of a shop.
//!
//! Calls are `read`, `write` and `clean`. An operation is one of them, or several (`composed`):
//! `page`, the reads and writes of one page view, and `purchase`, a clean followed by writes of all
//! records that it removed. A phase with an empty mix, in a workload that is `as_original`, follows
//! the client's list: records removed by a clean are not restored, and reads of them are misses.
//! All other phases draw operations by the weights of their mix. There, the records that a clean
//! removed are saved again before the client's next call, untimed, which keeps the data constant.
//! Until that is done, other clients miss them.
//!
//! A miss that no clean, write or lifetime explains is counted separately: the record was lost. A
//! record that the store refuses as too large is not lost: like a shop, the client goes on without
//! it, so each write of it fails and each read misses.
//!
//! A value that was read is checked for its length, for its version against the clients' writes and
//! cleans (an older one is stale, [`super::ledger`]) and, for one in `verify_one_in`, byte by byte.
//! How much of its version a value contains depends on its length (see `versions`). If a record
//! differed when Magento's layer loaded it back after a write, the loaded value decides the
//! outcome: it is stale, wrong or lost, or correct if another client's write or clean explains it,
//! although the layer removes the record.

use model::{AppCache, ErrorClass, Fill, StoredVersion};
use std::sync::Arc;

use super::composed::{CALLS, CLEAN, Composed, OPERATIONS, READ, WRITE};
use super::ledger::{Known, Ledger, OperationStart};
use super::magento::{Magento, Saved};
use super::operations::{Operation, cleans};
use super::store::{Effort, LoadEffect, Record, TaggedCache};
use super::versions::{ValueVersion, judge_version};
use crate::Share;
use crate::chances::Chances;
use crate::client::{Answer, Call, Client, Outcome};
use crate::store::{Found, StoreError};
use crate::values::{mix, mix_in};

/// Id of the record that introduces tags.
const INTRODUCING: &str = "CACHEDYNO_TAGS";
const TAGS_INTRODUCED_AT_ONCE: u64 = 500;

/// An operation that is ready to be executed.
#[derive(Clone, Copy)]
enum Prepared {
    Read(u64),
    Write(u64, OperationStart),
    Clean(u64, OperationStart),
    /// The client has no list of operations.
    Nothing,
}

/// The current phase.
#[derive(Default)]
struct PhaseState {
    /// Its index.
    number: u64,
    chances: Chances,
    follows_list: bool,
}

/// One client of an application cache.
pub struct AppCacheClient {
    shop: Magento,
    workload: AppCache,
    share: Share,
    ledger: Arc<Ledger>,
    filled: u64,
    phase: PhaseState,
    /// A tag whose records this client removed and must restore.
    to_restore: Option<u64>,
    /// The current operation; `None` if the client has no list of operations.
    composed: Option<Composed>,
    /// Error from restoring records.
    fault: Option<StoreError>,
    prepared: Prepared,
    known: Known,
    compare: bool,
    effort_before: Effort,
    found: Found,
    saved: Saved,
    id: String,
    tag_numbers: Vec<u64>,
    tags: Vec<String>,
    value: Vec<u8>,
    expected: Vec<u8>,
}

impl AppCacheClient {
    /// A client of `store`; all clients of the workload share `ledger`.
    pub fn new(
        store: Box<dyn TaggedCache>,
        workload: AppCache,
        share: Share,
        ledger: Arc<Ledger>,
    ) -> Self {
        Self {
            shop: Magento::new(store, workload.magento),
            workload,
            share,
            ledger,
            filled: 0,
            phase: PhaseState::default(),
            to_restore: None,
            composed: None,
            fault: None,
            prepared: Prepared::Nothing,
            known: Known::default(),
            compare: false,
            effort_before: Effort::default(),
            found: Found::Yes,
            saved: Saved::Kept,
            id: String::new(),
            tag_numbers: Vec::new(),
            tags: Vec::new(),
            value: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// Uses every tag once, for a record that is removed again, if clients that introduce tags
    /// concurrently would lose records. Called by one client before any of them fills.
    pub fn introduce_tags(&mut self) -> Result<(), StoreError> {
        let tags = self.ledger.data().tags();
        let mut first = 0;
        while self.shop.new_tags_race() && first < tags {
            let last = tags.min(first + TAGS_INTRODUCED_AT_ONCE);
            self.tag_numbers.clear();
            self.tag_numbers.extend(first..last);
            self.name_tags();
            self.shop.save(Record::new(INTRODUCING, b"tags", &self.tags, None))?;
            self.shop.remove(INTRODUCING)?;
            first = last;
        }
        Ok(())
    }

    /// Operation `n` of the phase; `None` if the client's list is empty.
    fn choose(&self, n: u64) -> Option<Composed> {
        let (ledger, client) = (&self.ledger, self.share.client);
        if self.phase.follows_list {
            return ledger.lists().operation(ledger.data(), client, n).map(Composed::One);
        }
        let draw = self.draw_of(n);
        let operation = self.phase.chances.choose(draw).unwrap_or(READ);
        Some(Composed::drawn(operation, mix_in(draw, 1), ledger.data()))
    }

    fn draw_of(&self, n: u64) -> u64 {
        mix(&[self.share.seed, u64::from(self.share.client), self.phase.number, n])
    }

    /// Sets the id of a record and looks up its tags.
    fn name_record(&mut self, record: u64) {
        self.id.clear();
        self.id.push_str(&self.share.prefix);
        self.ledger.data().key_into(&mut self.id, record);
        self.ledger.data().tags_of_into(&mut self.tag_numbers, record);
    }

    /// Formats the tags that were looked up.
    fn name_tags(&mut self) {
        self.tags.resize_with(self.tag_numbers.len(), String::new);
        for (name, number) in self.tags.iter_mut().zip(&self.tag_numbers) {
            name.clear();
            name.push_str(&self.share.prefix);
            self.ledger.data().tag_into(name, *number);
        }
    }

    /// Saves the record named last with its fill lifetime, if it has one.
    fn save_as_filled(&mut self, record: u64, version: u64) -> Result<Saved, StoreError> {
        let lifetime_s = self.draw_record(record, version);
        self.shop.save(Record::new(&self.id, &self.value, &self.tags, lifetime_s))
    }

    /// Sets the tags of the record named last and draws its value; returns its own lifetime.
    fn draw_record(&mut self, record: u64, version: u64) -> Option<u64> {
        self.name_tags();
        self.ledger.data().value_into(&mut self.value, record, version);
        self.ledger.data().expires_s(record)
    }

    fn execute(&mut self) -> Result<(), StoreError> {
        match self.prepared {
            Prepared::Read(_) => self.found = self.shop.load(&self.id, &mut self.value)?,
            Prepared::Write(..) => {
                self.saved =
                    self.shop.save(Record::new(&self.id, &self.value, &self.tags, None))?;
            }
            Prepared::Clean(..) => self.shop.clean(&self.tags)?,
            Prepared::Nothing => {
                let message = format!("client {} has no list of operations", self.share.client);
                return Err(StoreError::fatal(ErrorClass::Other, message));
            }
        }
        Ok(())
    }

    /// Tells the ledger that the prepared call failed.
    fn note_failure(&mut self) {
        let client = self.share.client;
        match self.prepared {
            Prepared::Write(record, _) => {
                self.ledger.fail_write(client, record);
                if let Some(Composed::Purchase(tag)) = self.composed {
                    self.to_restore = Some(tag);
                }
            }
            Prepared::Clean(tag, _) => {
                self.ledger.fail_clean(client, tag);
                self.restore_later(tag);
            }
            Prepared::Read(_) | Prepared::Nothing => {}
        }
    }

    fn restore_later(&mut self, tag: u64) {
        if !self.phase.follows_list {
            self.to_restore = Some(tag);
        }
    }

    fn end_write(&mut self, record: u64, start: OperationStart) -> (Outcome, bool) {
        match self.saved {
            Saved::Kept => {
                self.ledger.end_write(self.share.client, record, start);
                return (Outcome::Ok, false);
            }
            Saved::Removed(found) => self.found = found,
        }
        self.known = self.known.after(start);
        let judged = match self.found {
            Found::No => (self.judge_miss(record), false),
            Found::Yes => {
                self.value.clear();
                self.value.extend_from_slice(self.shop.loaded_back());
                (self.judge(record), self.compare)
            }
        };
        let is_lost = match judged.0 {
            Outcome::Lost => self.can_detect_losses(),
            Outcome::Stale => self.load_effect() == LoadEffect::Nothing,
            _ => false,
        };
        if is_lost {
            // The removed record was missing, or not the acknowledged one.
            self.ledger.end_write(self.share.client, record, start);
        } else {
            self.ledger.take_back(self.share.client, record, start);
        }
        match judged {
            // Another client wrote or cleaned it concurrently: Magento's layer behaves like that.
            (Outcome::Miss, compared) => (Outcome::Ok, compared),
            other => other,
        }
    }

    /// Effect of loads on other clients' records; a single client has none to affect.
    fn load_effect(&self) -> LoadEffect {
        if self.share.clients == 1 { LoadEffect::Nothing } else { self.shop.load_effect() }
    }

    /// Whether an unexplained miss means that the store lost the record. It does not if the layout
    /// itself has races: a load may remove a record that another client saved, or clients may lose
    /// records by using a tag concurrently for the first time since it was cleaned.
    fn can_detect_losses(&self) -> bool {
        let cleans = || {
            let mut mixes = self.workload.phases.iter().map(|phase| &phase.mix);
            mixes.any(|mix| mix.is_empty() || cleans(mix))
        };
        let races = self.shop.new_tags_race() || self.shop.cleans_race();
        let tags_race = self.share.clients > 1 && races && cleans();
        self.workload.only_reads() || (self.load_effect() < LoadEffect::Removes && !tags_race)
    }

    /// Judges a miss by what was known before the call.
    fn judge_miss(&self, record: u64) -> Outcome {
        let (client, tags) = (self.share.client, &self.tag_numbers);
        let lost = self.ledger.is_lost(client, record, tags, self.known);
        if lost { Outcome::Lost } else { Outcome::Miss }
    }

    /// Judges a record's value by what was known before the call.
    fn judge(&mut self, record: u64) -> Outcome {
        let (data, floor) = (self.ledger.data(), self.known.floor);
        if self.value.len() != data.bytes(record) {
            return Outcome::Wrong;
        }
        let filled = data.read_value(record).is_some_and(|filled| filled == self.value);
        if filled && floor == 0 {
            return Outcome::Ok;
        }
        match judge_version(&self.value, data.seed(), record, floor, self.ledger.now()) {
            ValueVersion::Fresh(version) => {
                if self.compare {
                    data.value_into(&mut self.expected, record, version);
                }
                if self.compare && self.expected != self.value {
                    return Outcome::Wrong;
                }
                Outcome::Ok
            }
            ValueVersion::Old => Outcome::Stale,
            ValueVersion::Foreign if filled => Outcome::Stale,
            ValueVersion::Foreign => Outcome::Wrong,
        }
    }
}

impl Client for AppCacheClient {
    fn operations(&self) -> &'static [&'static str] {
        &CALLS
    }

    fn fill_next(&mut self) -> Result<bool, StoreError> {
        if self.filled >= self.share.of(self.ledger.data().keys()) {
            let is_fast = self.workload.fill == Fill::Fast;
            return if is_fast { self.shop.fill_end() } else { Ok(()) }.map(|()| false);
        }
        let record = self.share.index(self.filled);
        self.filled += 1;
        self.name_record(record);
        if self.workload.fill == Fill::Fast {
            let lifetime_s = self.draw_record(record, 0);
            self.shop.fill(Record::new(&self.id, &self.value, &self.tags, lifetime_s))?;
            return Ok(true);
        }
        match self.save_as_filled(record, 0) {
            Ok(Saved::Kept) => Ok(true),
            Ok(Saved::Removed(_)) => {
                let message = format!("record `{}` differed when it was loaded back", self.id);
                Err(StoreError::soft(ErrorClass::Protocol, message))
            }
            // The shop works without a record that the store refuses.
            Err(e) if e.class == ErrorClass::TooLarge => {
                self.ledger.fail_write(self.share.client, record);
                Ok(true)
            }
            Err(e) => Err(e),
        }
    }

    fn start_phase(&mut self, phase: usize) {
        let mix = &self.workload.phases[phase].mix;
        self.phase = PhaseState {
            number: phase as u64,
            chances: Chances::new(mix, &OPERATIONS),
            follows_list: self.workload.as_original && mix.is_empty(),
        };
    }

    /// Saves the records again that the last clean removed; stops at the first error.
    fn restore(&mut self) -> bool {
        let Some(tag) = self.to_restore.take() else { return false };
        let (ledger, client) = (self.ledger.clone(), self.share.client);
        for record in ledger.carriers(tag) {
            let record = u64::from(*record);
            self.name_record(record);
            self.known = ledger.known(record, &self.tag_numbers);
            let start = ledger.begin_write(client, record);
            match self.save_as_filled(record, start.version) {
                Ok(saved) => {
                    self.saved = saved;
                    self.end_write(record, start);
                }
                Err(e) => {
                    ledger.fail_write(client, record);
                    if e.class != ErrorClass::TooLarge {
                        self.fault = Some(e);
                        break;
                    }
                }
            }
        }
        true
    }

    fn calls(&self, n: u64) -> usize {
        self.choose(n).map_or(1, |chosen| chosen.calls(&self.workload, &self.ledger))
    }

    fn has_call(&mut self, _n: u64, call: usize) -> bool {
        let calls = || self.composed.map_or(1, |c| c.calls(&self.workload, &self.ledger));
        call == 0 || call < calls()
    }

    fn prepare(&mut self, n: u64, call: usize) -> Call {
        if call == 0 {
            self.composed = self.choose(n);
        }
        let chosen = self.composed.map(|c| c.call(call, &self.workload, &self.ledger));
        self.compare =
            mix_in(self.draw_of(n), 2 + call as u64).is_multiple_of(self.workload.verify_one_in);
        if let Some(Operation::Read(record) | Operation::Write(record)) = chosen {
            self.name_record(record);
            self.known = self.ledger.known(record, &self.tag_numbers);
        }
        let client = self.share.client;
        let (operation, prepared) = match chosen {
            Some(Operation::Read(record)) => {
                if self.shop.needs_tags() {
                    self.name_tags();
                    self.shop.learn(&self.id, &self.tags);
                }
                (READ, Prepared::Read(record))
            }
            Some(Operation::Write(record)) => {
                self.name_tags();
                (WRITE, Prepared::Write(record, self.ledger.begin_write(client, record)))
            }
            Some(Operation::Clean(tag)) => {
                self.tag_numbers.clear();
                self.tag_numbers.push(tag);
                self.name_tags();
                (CLEAN, Prepared::Clean(tag, self.ledger.begin_clean(client, tag)))
            }
            None => (READ, Prepared::Nothing),
        };
        self.prepared = prepared;
        self.effort_before = self.shop.effort();
        Call { operation, think_ns: 0 }
    }

    fn draw(&mut self) {
        if let Prepared::Write(record, start) = self.prepared {
            self.ledger.data().value_into(&mut self.value, record, start.version);
        }
    }

    fn call(&mut self) -> Result<Answer, StoreError> {
        let executed = match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.execute(),
        };
        if executed.is_err() {
            self.note_failure();
        }
        executed?;
        let effort = self.shop.effort().since(self.effort_before);
        Ok(Answer { effort, ..Answer::default() })
    }

    fn check(&mut self) -> (Outcome, bool) {
        match self.prepared {
            Prepared::Read(record) if self.found == Found::No => (self.judge_miss(record), false),
            Prepared::Read(record) => (self.judge(record), self.compare),
            Prepared::Write(record, start) => self.end_write(record, start),
            Prepared::Clean(tag, start) => {
                self.ledger.end_clean(self.share.client, tag, start);
                if !matches!(self.composed, Some(Composed::Purchase(_))) {
                    self.restore_later(tag);
                }
                (Outcome::Ok, false)
            }
            // Its call failed, so this is never used.
            Prepared::Nothing => (Outcome::Ok, false),
        }
    }

    /// Values that a clean should have removed are accepted, since that depends on the layout.
    fn read_back(
        &mut self,
        n: u64,
        of: u64,
    ) -> Result<Option<(StoredVersion, String)>, StoreError> {
        let own = self.share.of(self.ledger.data().keys());
        let slot = if own > of { n * own / of } else { n };
        if slot >= own {
            return Ok(None);
        }
        let record = self.share.index(slot);
        self.name_record(record);
        // A cleaned value may still exist, so only writes make a value older.
        self.known = self.ledger.known(record, &[]);
        if self.shop.needs_tags() {
            self.name_tags();
            self.shop.learn(&self.id, &self.tags);
        }
        self.compare = true;
        let held = match self.shop.load(&self.id, &mut self.value)? {
            Found::Yes => match self.judge(record) {
                Outcome::Ok => StoredVersion::Last,
                Outcome::Stale => StoredVersion::Older,
                _ => StoredVersion::Wrong,
            },
            Found::No if self.can_detect_losses() && self.judge_miss(record) == Outcome::Lost => {
                StoredVersion::Missing
            }
            Found::No => return Ok(None),
        };
        Ok(Some((held, self.id.clone())))
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
