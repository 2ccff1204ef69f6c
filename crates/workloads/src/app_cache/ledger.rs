//! State shared by all clients of an application cache: which versions a read may return.
//!
//! A clock ticks at every write and clean. A write's tick is the version contained in its value.
//! Each record and each tag has a *floor*: no version below it may be returned any more. When a
//! write or a clean ends, it raises the floor of its record or tag to the version below which all
//! writes had ended before it started: its own tick, or less if another client was writing. So
//!
//! - a version written before the start of the last write or clean of the record is stale for reads
//!   that start after the end of that write or clean;
//! - if writes and cleans overlap each other or the read, every outcome is valid.
//!
//! A failed write may be applied or not, now or later: after it, no version of its record is stale
//! until the end of the trial. Floors are read before a call is sent and raised after it was
//! answered, outside the timed span.

use model::AppCache;
use std::sync::atomic::{AtomicU64, Ordering};

use super::data_set::DataSet;
use super::operations::{Lists, cleans};

/// No write or clean is in flight.
const IDLE: u64 = u64::MAX;
/// Floor of a record or tag with an unknown state.
const UNKNOWN: u64 = u64::MAX;

/// Start of a write or clean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperationStart {
    /// Its tick, which is also the version that it writes.
    pub(crate) version: u64,
    /// All writes with a lower version had ended when it started.
    ended_below: u64,
}

/// What was known of a record before a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// Lowest version that may be returned; 0 if nothing is known.
    pub(crate) floor: u64,
    /// Floor from the record's own writes; `UNKNOWN` if one failed.
    written: u64,
}

impl Known {
    /// What is known once a write that started with this knowledge was answered.
    pub(crate) fn after(self, write: OperationStart) -> Self {
        if self.written == UNKNOWN {
            return self;
        }
        let written = self.written.max(write.ended_below);
        Self { floor: self.floor.max(written), written }
    }
}

/// The current call of one client.
#[derive(Debug)]
struct InFlight {
    /// Lower bound of the version being written; `IDLE` if there is none.
    write: AtomicU64,
    /// Number of the record being written; meaningless while `write` is `IDLE`.
    record: AtomicU64,
    /// Number of the tag being cleaned; `IDLE` if there is none.
    clean: AtomicU64,
}

/// The records that carry each tag.
#[derive(Debug, Default)]
struct Carriers {
    /// Start of each tag's records, and the end of the last tag's.
    offsets: Vec<usize>,
    records: Vec<u32>,
}

/// Shared by all clients of a trial.
#[derive(Debug)]
pub struct Ledger {
    data: DataSet,
    lists: Lists,
    clock: AtomicU64,
    in_flight: Vec<InFlight>,
    record_floors: Vec<AtomicU64>,
    tag_floors: Vec<AtomicU64>,
    /// Tick after the last clean of each tag.
    cleaned: Vec<AtomicU64>,
    /// Tick after the last removal of each record by its own write; 0 for none.
    taken_back: Vec<AtomicU64>,
    carriers: Carriers,
}

impl Ledger {
    /// The ledger of a workload whose data and lists are drawn from `seed`.
    pub fn drawn(workload: &AppCache, seed: u64, clients: u32) -> Self {
        let AppCache { write_chance, clean_chance, .. } = *workload;
        let lists = Lists::Drawn { seed, write_chance, clean_chance };
        Self::new(DataSet::drawn(workload, seed), lists, workload, clients)
    }

    /// The ledger of a workload with the given data and lists.
    pub fn new(data: DataSet, lists: Lists, workload: &AppCache, clients: u32) -> Self {
        let zeros = |count: u64| (0..count).map(|_| AtomicU64::new(0)).collect();
        let idle = || InFlight {
            write: AtomicU64::new(IDLE),
            record: AtomicU64::new(0),
            clean: AtomicU64::new(IDLE),
        };
        let restores = workload.phases.iter().any(|phase| cleans(&phase.mix));
        Self {
            // Version 0 belongs to the fill.
            clock: AtomicU64::new(1),
            in_flight: (0..clients).map(|_| idle()).collect(),
            record_floors: zeros(data.keys()),
            tag_floors: zeros(data.tags()),
            cleaned: zeros(data.tags()),
            taken_back: zeros(data.keys()),
            carriers: if restores { Carriers::of(&data) } else { Carriers::default() },
            data,
            lists,
        }
    }

    /// The records.
    pub fn data(&self) -> &DataSet {
        &self.data
    }

    /// Each client's operations in a phase that follows the original's lists.
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// An upper bound of all versions so far, exclusive.
    pub(crate) fn now(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// The records that carry a tag; empty if no phase with a mix cleans.
    pub(crate) fn carriers(&self, tag: u64) -> &[u32] {
        let tag = tag as usize;
        match self.carriers.offsets.get(tag..tag + 2) {
            Some(&[from, to]) => &self.carriers.records[from..to],
            _ => &[],
        }
    }

    /// What is currently known of a record with these tags.
    pub(crate) fn known(&self, record: u64, tags: &[u64]) -> Known {
        let written = self.record_floors[record as usize].load(Ordering::Acquire);
        if written == UNKNOWN {
            return Known { floor: 0, written };
        }
        let of_tag = |tag: &u64| self.tag_floors[*tag as usize].load(Ordering::Acquire);
        Known { floor: tags.iter().map(of_tag).fold(written, u64::max), written }
    }

    /// Starts a client's write of a record.
    pub(crate) fn begin_write(&self, client: u32, record: u64) -> OperationStart {
        let own = &self.in_flight[client as usize];
        own.record.store(record, Ordering::Release);
        // Set before taking the tick, so clients with a later tick see it.
        own.write.store(self.now(), Ordering::Release);
        self.begin(client)
    }

    /// Starts a client's clean of a tag.
    pub(crate) fn begin_clean(&self, client: u32, tag: u64) -> OperationStart {
        self.in_flight[client as usize].clean.store(tag, Ordering::Release);
        self.begin(client)
    }

    fn begin(&self, client: u32) -> OperationStart {
        let version = self.clock.fetch_add(1, Ordering::AcqRel);
        let others = self.in_flight.iter().enumerate().filter(|(c, _)| *c != client as usize);
        let writing = others.map(|(_, other)| other.write.load(Ordering::Acquire));
        OperationStart { version, ended_below: writing.fold(version, u64::min) }
    }

    /// Ends a client's write of a record that was answered and kept.
    pub(crate) fn end_write(&self, client: u32, record: u64, start: OperationStart) {
        self.record_floors[record as usize].fetch_max(start.ended_below, Ordering::AcqRel);
        self.in_flight[client as usize].write.store(IDLE, Ordering::Release);
    }

    /// Ends a client's write of a record that was answered, after which the record was removed.
    pub(crate) fn take_back(&self, client: u32, record: u64, start: OperationStart) {
        let now = self.clock.fetch_add(1, Ordering::AcqRel);
        self.taken_back[record as usize].fetch_max(now, Ordering::AcqRel);
        self.end_write(client, record, start);
    }

    /// Ends a client's failed write of a record, whose state is unknown from then on.
    pub(crate) fn fail_write(&self, client: u32, record: u64) {
        self.record_floors[record as usize].store(UNKNOWN, Ordering::Release);
        self.in_flight[client as usize].write.store(IDLE, Ordering::Release);
    }

    /// Ends a client's clean of a tag that was answered.
    pub(crate) fn end_clean(&self, client: u32, tag: u64, start: OperationStart) {
        self.tag_floors[tag as usize].fetch_max(start.ended_below, Ordering::AcqRel);
        let now = self.clock.fetch_add(1, Ordering::AcqRel);
        self.cleaned[tag as usize].fetch_max(now, Ordering::AcqRel);
        self.in_flight[client as usize].clean.store(IDLE, Ordering::Release);
    }

    /// Ends a client's failed clean of a tag, which may remove records now or later.
    pub(crate) fn fail_clean(&self, client: u32, tag: u64) {
        self.cleaned[tag as usize].store(UNKNOWN, Ordering::Release);
        self.in_flight[client as usize].clean.store(IDLE, Ordering::Release);
    }

    /// Whether the store lost a record that a client did not find, by what was `known` before the
    /// call: the record was saved, and no clean, no write of another client and no lifetime
    /// explains the miss.
    pub(crate) fn is_lost(&self, client: u32, record: u64, tags: &[u64], known: Known) -> bool {
        if known.written == UNKNOWN || self.data.expires_s(record).is_some() {
            return false;
        }
        let busy = |other: &InFlight| {
            let cleaning = other.clean.load(Ordering::Acquire);
            // A write that is taken back removes the record.
            let writes = other.write.load(Ordering::Acquire) != IDLE
                && other.record.load(Ordering::Acquire) == record;
            writes || tags.contains(&cleaning)
        };
        let (before, after) = self.in_flight.split_at(client as usize);
        if before.iter().chain(&after[1..]).any(busy) {
            return false;
        }
        let is_unknown = self.known(record, tags).written == UNKNOWN;
        let cleaned = |tag: &u64| self.cleaned[*tag as usize].load(Ordering::Acquire);
        let taken_back = self.taken_back[record as usize].load(Ordering::Acquire);
        let removed = tags.iter().map(cleaned).fold(taken_back, u64::max);
        !is_unknown && removed <= known.written
    }
}

impl Carriers {
    fn of(data: &DataSet) -> Self {
        let mut tags = Vec::new();
        let mut offsets = vec![0; data.tags() as usize + 1];
        for record in 0..data.keys() {
            data.tags_of_into(&mut tags, record);
            for tag in &tags {
                offsets[*tag as usize + 1] += 1;
            }
        }
        for tag in 1..offsets.len() {
            offsets[tag] += offsets[tag - 1];
        }
        let mut next = offsets.clone();
        let mut records = vec![0; offsets[data.tags() as usize]];
        for record in 0..data.keys() {
            data.tags_of_into(&mut tags, record);
            for tag in &tags {
                records[next[*tag as usize]] = record as u32;
                next[*tag as usize] += 1;
            }
        }
        Self { offsets, records }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
