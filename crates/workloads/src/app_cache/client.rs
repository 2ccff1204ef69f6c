//! One client of an application cache: reads, writes and cleans as a PHP worker of a shop.
//!
//! Operations are `read`, `write` and `clean`. A phase with an empty mix, of a workload that is
//! `as_original`, follows the client's list: what a clean removed stays away, and a read of it is a
//! miss. Any other phase draws operations by the weights of its mix; there, the records that a
//! clean removed are saved again before the client's next call, untimed, so that the data stay as
//! they were filled. Until that is done, other clients miss them.
//!
//! A miss that no clean, write or lifetime explains is told apart: the record was lost.
//!
//! What is checked of a value that was read: its length; its version against what the clients did
//! (an older one is stale, [`super::ledger`]); and of one in `verify_one_in`, each byte. What a
//! value can tell depends on its length (see `versions`). A write whose record differed when
//! Magento's layer loaded it back is judged by what was loaded: it is stale, wrong or lost, or
//! right where another client's write or clean explains it, although the layer removes the record.

use model::{AppCache, ErrorClass, Fill, Held};
use std::sync::Arc;

use super::data_set::Choice;
use super::ledger::{Begun, Known, Ledger};
use super::magento::{Magento, Saved};
use super::operations::Operation;
use super::store::{Effort, LoadEffect, Record, TaggedCache};
use super::versions::{Seen, see};
use crate::Share;
use crate::chances::Chances;
use crate::client::{Answer, Call, Client, Outcome};
use crate::store::{Found, StoreError};
use crate::values::{mix, mix_in, pick};

const OPERATIONS: [&str; 3] = ["read", "write", "clean"];
const READ: usize = 0;
const WRITE: usize = 1;
const CLEAN: usize = 2;

/// Id of the record that brings tags into use.
const INTRODUCING: &str = "CACHEDYNO_TAGS";
const TAGS_INTRODUCED_AT_ONCE: u64 = 500;

/// An operation that is ready to be carried out.
#[derive(Clone, Copy)]
enum Prepared {
    Read(u64),
    Write(u64, Begun),
    Clean(u64, Begun),
    /// The list has nothing for this client.
    Nothing,
}

/// The phase under way.
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
    /// A tag whose records this client removed and must save again.
    to_restore: Option<u64>,
    /// What went wrong in saving cleaned records again.
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
    /// A client that uses `store`, of a workload whose clients share `ledger`.
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

    /// Where clients that use new tags together lose records: uses every tag, for a record that is
    /// removed again. One client does so, before any fills.
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

    /// Operation `n` of the phase; `None` where the client's list has none.
    fn choose(&self, n: u64) -> Option<Operation> {
        let (ledger, client) = (&self.ledger, self.share.client);
        if self.phase.follows_list {
            return ledger.lists().operation(ledger.data(), client, n);
        }
        let draw = self.draw_of(n);
        let chosen = mix_in(draw, 1);
        Some(match self.phase.chances.choose(draw).unwrap_or(READ) {
            WRITE => Operation::Write(ledger.data().choose(chosen, Choice::Volatility)),
            CLEAN => Operation::Clean(pick(chosen, ledger.data().tags())),
            _ => Operation::Read(ledger.data().choose(chosen, Choice::Popularity)),
        })
    }

    fn draw_of(&self, n: u64) -> u64 {
        mix(&[self.share.seed, u64::from(self.share.client), self.phase.number, n])
    }

    /// Spells a record's id and looks up its tags.
    fn name_record(&mut self, record: u64) {
        self.id.clear();
        self.id.push_str(&self.share.prefix);
        self.ledger.data().key_into(&mut self.id, record);
        self.ledger.data().tags_of_into(&mut self.tag_numbers, record);
    }

    /// Spells the tags that were looked up.
    fn name_tags(&mut self) {
        self.tags.resize_with(self.tag_numbers.len(), String::new);
        for (name, number) in self.tags.iter_mut().zip(&self.tag_numbers) {
            name.clear();
            name.push_str(&self.share.prefix);
            self.ledger.data().tag_into(name, *number);
        }
    }

    /// Saves the record that was named as it is filled, with its own lifetime where it has one.
    fn save_as_filled(&mut self, record: u64, version: u64) -> Result<Saved, StoreError> {
        let lifetime_s = self.draw_record(record, version);
        self.shop.save(Record::new(&self.id, &self.value, &self.tags, lifetime_s))
    }

    /// Spells the tags of the record that was named and draws its value; its own lifetime.
    fn draw_record(&mut self, record: u64, version: u64) -> Option<u64> {
        self.name_tags();
        self.ledger.data().value_into(&mut self.value, record, version);
        self.ledger.data().expires_s(record)
    }

    fn carry_out(&mut self) -> Result<(), StoreError> {
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

    /// Tells all clients that the prepared call failed.
    fn doubt(&mut self) {
        let client = self.share.client;
        match self.prepared {
            Prepared::Write(record, _) => self.ledger.doubt_write(client, record),
            Prepared::Clean(tag, _) => {
                self.ledger.doubt_clean(client, tag);
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

    fn end_write(&mut self, record: u64, begun: Begun) -> (Outcome, bool) {
        match self.saved {
            Saved::Kept => {
                self.ledger.end_write(self.share.client, record, begun);
                return (Outcome::Ok, false);
            }
            Saved::Removed(found) => self.found = found,
        }
        self.known = self.known.after(begun);
        let judged = match self.found {
            Found::No => (self.judge_miss(record), false),
            Found::Yes => {
                self.value.clear();
                self.value.extend_from_slice(self.shop.loaded_back());
                (self.judge(record), self.compare)
            }
        };
        let is_lost = match judged.0 {
            Outcome::Lost => self.knows_of_losses(),
            Outcome::Stale => self.load_effect() == LoadEffect::Nothing,
            _ => false,
        };
        if is_lost {
            // What the layer removed was not there, or not what the store had acknowledged.
            self.ledger.end_write(self.share.client, record, begun);
        } else {
            self.ledger.take_back(self.share.client, record, begun);
        }
        match judged {
            // Another client wrote or cleaned it meanwhile: that is how Magento's layer is.
            (Outcome::Miss, compared) => (Outcome::Ok, compared),
            other => other,
        }
    }

    /// What loads may do to records of others; to its own a client does nothing.
    fn load_effect(&self) -> LoadEffect {
        if self.share.clients == 1 { LoadEffect::Nothing } else { self.shop.load_effect() }
    }

    /// Whether a record that must be there by all that clients did was lost by the store, and not
    /// by a race of the layout's own: of a load that removes what another client saved, or of
    /// clients that use a tag together for the first time since it was cleaned.
    fn knows_of_losses(&self) -> bool {
        let cleans = || {
            let mut mixes = self.workload.phases.iter().map(|phase| &phase.mix);
            mixes.any(|mix| mix.is_empty() || mix.contains_key("clean"))
        };
        let tags_race = self.share.clients > 1 && self.shop.new_tags_race() && cleans();
        self.workload.only_reads() || (self.load_effect() < LoadEffect::Removes && !tags_race)
    }

    /// Judges that a record was not there, by what was known when the call began.
    fn judge_miss(&self, record: u64) -> Outcome {
        let (client, tags) = (self.share.client, &self.tag_numbers);
        let lost = self.ledger.is_lost(client, record, tags, self.known);
        if lost { Outcome::Lost } else { Outcome::Miss }
    }

    /// Judges the value of a record by what was known when the call began.
    fn judge(&mut self, record: u64) -> Outcome {
        let (data, floor) = (self.ledger.data(), self.known.floor);
        if self.value.len() != data.bytes(record) {
            return Outcome::Wrong;
        }
        let filled = data.read_value(record).is_some_and(|filled| filled == self.value);
        if filled && floor == 0 {
            return Outcome::Ok;
        }
        match see(&self.value, data.seed(), record, floor, self.ledger.now()) {
            Seen::Fresh(version) => {
                if self.compare {
                    data.value_into(&mut self.expected, record, version);
                }
                if self.compare && self.expected != self.value {
                    return Outcome::Wrong;
                }
                Outcome::Ok
            }
            Seen::Old => Outcome::Stale,
            Seen::Foreign if filled => Outcome::Stale,
            Seen::Foreign => Outcome::Wrong,
        }
    }
}

impl Client for AppCacheClient {
    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
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
        match self.save_as_filled(record, 0)? {
            Saved::Kept => Ok(true),
            Saved::Removed(_) => {
                let message = format!("record `{}` differed when it was loaded back", self.id);
                Err(StoreError::soft(ErrorClass::Protocol, message))
            }
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

    /// Saves the records again that the last clean removed. After a fault the rest stays away.
    fn restore(&mut self) -> bool {
        let Some(tag) = self.to_restore.take() else { return false };
        let (ledger, client) = (self.ledger.clone(), self.share.client);
        for record in ledger.carriers(tag) {
            let record = u64::from(*record);
            self.name_record(record);
            self.known = ledger.known(record, &self.tag_numbers);
            let begun = ledger.begin_write(client, record);
            match self.save_as_filled(record, begun.version) {
                Ok(saved) => {
                    self.saved = saved;
                    self.end_write(record, begun);
                }
                Err(e) => {
                    ledger.doubt_write(client, record);
                    self.fault = Some(e);
                    break;
                }
            }
        }
        true
    }

    fn calls(&self) -> usize {
        1
    }

    fn prepare(&mut self, n: u64, _call: usize) -> Call {
        let chosen = self.choose(n);
        self.compare = mix_in(self.draw_of(n), 2).is_multiple_of(self.workload.verify_one_in);
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
        if let Prepared::Write(record, begun) = self.prepared {
            self.ledger.data().value_into(&mut self.value, record, begun.version);
        }
    }

    fn call(&mut self) -> Result<Answer, StoreError> {
        let carried_out = match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.carry_out(),
        };
        if carried_out.is_err() {
            self.doubt();
        }
        carried_out?;
        let effort = self.shop.effort().since(self.effort_before);
        Ok(Answer { lock: None, effort })
    }

    fn check(&mut self) -> (Outcome, bool) {
        match self.prepared {
            Prepared::Read(record) if self.found == Found::No => (self.judge_miss(record), false),
            Prepared::Read(record) => (self.judge(record), self.compare),
            Prepared::Write(record, begun) => self.end_write(record, begun),
            Prepared::Clean(tag, begun) => {
                self.ledger.end_clean(self.share.client, tag, begun);
                self.restore_later(tag);
                (Outcome::Ok, false)
            }
            // Its call failed, so that nobody asks.
            Prepared::Nothing => (Outcome::Ok, false),
        }
    }

    /// What a clean should have removed, and did not, is the layout's doing.
    fn read_back(&mut self, n: u64, of: u64) -> Result<Option<(Held, String)>, StoreError> {
        let own = self.share.of(self.ledger.data().keys());
        let slot = if own > of { n * own / of } else { n };
        if slot >= own {
            return Ok(None);
        }
        let record = self.share.index(slot);
        self.name_record(record);
        // A value that was cleaned may be there, so only writes make it an old one.
        self.known = self.ledger.known(record, &[]);
        if self.shop.needs_tags() {
            self.name_tags();
            self.shop.learn(&self.id, &self.tags);
        }
        self.compare = true;
        let held = match self.shop.load(&self.id, &mut self.value)? {
            Found::Yes => match self.judge(record) {
                Outcome::Ok => Held::Last,
                Outcome::Stale => Held::Older,
                _ => Held::Wrong,
            },
            Found::No if self.knows_of_losses() && self.judge_miss(record) == Outcome::Lost => {
                Held::Missing
            }
            Found::No => return Ok(None),
        };
        Ok(Some((held, self.id.clone())))
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
