//! What all clients of an application cache know together: what may be found, and what must not.
//!
//! A clock ticks at every write and clean. A write's tick is the version that its value carries.
//! Each record and each tag has a *floor*: a version below it must not be found any more. When a
//! write or a clean ends, the floor of its record or tag rises to where every earlier write had
//! ended before it began: its own tick, or less while another client was writing. So
//!
//! - a version written before the last write or clean of the record began is stale, if a client
//!   begins to read after that write or clean has ended;
//! - of writes and cleans that overlap each other or the read, every outcome is right.
//!
//! A write that failed may be carried out or not, now or later: from then on, no version of its
//! record is stale, until the end of the trial. The floors are taken before a call is sent and
//! raised after it was answered, outside of what is timed.

use model::AppCache;
use std::sync::atomic::{AtomicU64, Ordering};

use super::data_set::DataSet;
use super::operations::Lists;

/// No write or clean is in flight.
const IDLE: u64 = u64::MAX;
/// Floor of a record or tag of which nothing can be said any more.
const UNKNOWN: u64 = u64::MAX;

/// A write or clean that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// Its tick: the version of what is written.
    pub(crate) version: u64,
    /// Writes below had ended when it began.
    ended_below: u64,
}

/// What was known of a record before it was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    /// Versions below must not be found; 0 where nothing is known.
    pub(crate) floor: u64,
    /// The floor by the record's own writes; `UNKNOWN` where one failed.
    written: u64,
}

impl Known {
    /// What is known once a write that began with this knowledge was answered.
    pub(crate) fn after(self, write: Begun) -> Self {
        if self.written == UNKNOWN {
            return self;
        }
        let written = self.written.max(write.ended_below);
        Self { floor: self.floor.max(written), written }
    }
}

/// What one client does at the moment.
#[derive(Debug)]
struct InFlight {
    /// At most the tick of the write in flight; `IDLE` when there is none.
    write: AtomicU64,
    /// Number of the record being written; of no meaning when there is none.
    record: AtomicU64,
    /// Number of the tag being cleaned; `IDLE` when none is.
    clean: AtomicU64,
}

/// Records of each tag.
#[derive(Debug, Default)]
struct Carriers {
    /// Where each tag's records begin, and the end of the last.
    begins: Vec<usize>,
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
    /// Tick after the last write of each record that was taken back; 0 for none.
    taken_back: Vec<AtomicU64>,
    carriers: Carriers,
}

impl Ledger {
    /// The ledger of a workload whose data and lists follow from `seed`.
    pub fn drawn(workload: &AppCache, seed: u64, clients: u32) -> Self {
        let AppCache { write_chance, clean_chance, .. } = *workload;
        let lists = Lists::Drawn { seed, write_chance, clean_chance };
        Self::new(DataSet::drawn(workload, seed), lists, workload, clients)
    }

    /// The ledger of a workload with this data and these lists, drawn or read.
    pub fn new(data: DataSet, lists: Lists, workload: &AppCache, clients: u32) -> Self {
        let zeros = |count: u64| (0..count).map(|_| AtomicU64::new(0)).collect();
        let idle = || InFlight {
            write: AtomicU64::new(IDLE),
            record: AtomicU64::new(0),
            clean: AtomicU64::new(IDLE),
        };
        let restores = workload.phases.iter().any(|phase| phase.mix.contains_key("clean"));
        Self {
            // Version 0 is the fill's.
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

    /// What each client does in a phase that follows the original's lists.
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// All versions that were ever begun are below.
    pub(crate) fn now(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// The records that carry a tag; none where the workload never saves cleaned records again.
    pub(crate) fn carriers(&self, tag: u64) -> &[u32] {
        let tag = tag as usize;
        match self.carriers.begins.get(tag..tag + 2) {
            Some(&[from, to]) => &self.carriers.records[from..to],
            _ => &[],
        }
    }

    /// What is known of a record with these tags, at the moment.
    pub(crate) fn known(&self, record: u64, tags: &[u64]) -> Known {
        let written = self.record_floors[record as usize].load(Ordering::Acquire);
        if written == UNKNOWN {
            return Known { floor: 0, written };
        }
        let of_tag = |tag: &u64| self.tag_floors[*tag as usize].load(Ordering::Acquire);
        Known { floor: tags.iter().map(of_tag).fold(written, u64::max), written }
    }

    /// A client is about to write a record.
    pub(crate) fn begin_write(&self, client: u32, record: u64) -> Begun {
        let own = &self.in_flight[client as usize];
        own.record.store(record, Ordering::Release);
        // Before the tick is taken: whoever takes a later one sees this.
        own.write.store(self.now(), Ordering::Release);
        self.begin(client)
    }

    /// A client is about to clean a tag.
    pub(crate) fn begin_clean(&self, client: u32, tag: u64) -> Begun {
        self.in_flight[client as usize].clean.store(tag, Ordering::Release);
        self.begin(client)
    }

    fn begin(&self, client: u32) -> Begun {
        let version = self.clock.fetch_add(1, Ordering::AcqRel);
        let others = self.in_flight.iter().enumerate().filter(|(c, _)| *c != client as usize);
        let writing = others.map(|(_, other)| other.write.load(Ordering::Acquire));
        Begun { version, ended_below: writing.fold(version, u64::min) }
    }

    /// A client's write of a record was answered and kept.
    pub(crate) fn end_write(&self, client: u32, record: u64, begun: Begun) {
        self.record_floors[record as usize].fetch_max(begun.ended_below, Ordering::AcqRel);
        self.in_flight[client as usize].write.store(IDLE, Ordering::Release);
    }

    /// A client's write of a record was answered, and the record removed after it.
    pub(crate) fn take_back(&self, client: u32, record: u64, begun: Begun) {
        let now = self.clock.fetch_add(1, Ordering::AcqRel);
        self.taken_back[record as usize].fetch_max(now, Ordering::AcqRel);
        self.end_write(client, record, begun);
    }

    /// A client's write of a record failed: nothing is known of it any more.
    pub(crate) fn doubt_write(&self, client: u32, record: u64) {
        self.record_floors[record as usize].store(UNKNOWN, Ordering::Release);
        self.in_flight[client as usize].write.store(IDLE, Ordering::Release);
    }

    /// A client's clean of a tag was answered.
    pub(crate) fn end_clean(&self, client: u32, tag: u64, begun: Begun) {
        self.tag_floors[tag as usize].fetch_max(begun.ended_below, Ordering::AcqRel);
        let now = self.clock.fetch_add(1, Ordering::AcqRel);
        self.cleaned[tag as usize].fetch_max(now, Ordering::AcqRel);
        self.in_flight[client as usize].clean.store(IDLE, Ordering::Release);
    }

    /// A client's clean of a tag failed: it may have removed some records, or do so later.
    pub(crate) fn doubt_clean(&self, client: u32, tag: u64) {
        self.cleaned[tag as usize].store(UNKNOWN, Ordering::Release);
        self.in_flight[client as usize].clean.store(IDLE, Ordering::Release);
    }

    /// Whether a record that a client did not find must have been there, by what was `known`
    /// before: it was saved, no clean, no write of another and no lifetime of its own explains it.
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
        let doubtful = self.known(record, tags).written == UNKNOWN;
        let cleaned = |tag: &u64| self.cleaned[*tag as usize].load(Ordering::Acquire);
        let taken_back = self.taken_back[record as usize].load(Ordering::Acquire);
        let removed = tags.iter().map(cleaned).fold(taken_back, u64::max);
        !doubtful && removed <= known.written
    }
}

impl Carriers {
    fn of(data: &DataSet) -> Self {
        let mut tags = Vec::new();
        let mut begins = vec![0; data.tags() as usize + 1];
        for record in 0..data.keys() {
            data.tags_of_into(&mut tags, record);
            for tag in &tags {
                begins[*tag as usize + 1] += 1;
            }
        }
        for tag in 1..begins.len() {
            begins[tag] += begins[tag - 1];
        }
        let mut next = begins.clone();
        let mut records = vec![0; begins[data.tags() as usize]];
        for record in 0..data.keys() {
            data.tags_of_into(&mut tags, record);
            for tag in &tags {
                records[next[*tag as usize]] = record as u32;
                next[*tag as usize] += 1;
            }
        }
        Self { begins, records }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
