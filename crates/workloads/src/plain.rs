//! Plain session operations: write a new session, read one, replace one.
//!
//! Every client works on its own sessions, so it always knows which version it must read.

use model::{Order, Sessions, StoredVersion};

use crate::Share;
use crate::chances::Chances;
use crate::client::{Answer, Call, Client, Outcome};
use crate::store::{Found, SessionStore, StoreError};
use crate::values::{mix, name_into, pick, value_into, version_of};

const OPERATIONS: [&str; 3] = ["write", "read", "change"];
const WRITE: usize = 0;
const READ: usize = 1;
const CHANGE: usize = 2;

/// Version of a session whose write failed: it may or may not exist, and is not visited again.
const UNKNOWN: u32 = u32::MAX;

/// One client of the plain layout.
pub struct PlainClient {
    store: Box<dyn SessionStore>,
    workload: Sessions,
    share: Share,
    /// Version of each of the client's sessions, by slot.
    versions: Vec<u32>,
    chances: Chances,
    phase: u64,
    name: String,
    value: Vec<u8>,
    expected: Vec<u8>,
    operation: usize,
    slot: usize,
    version: u32,
    compare: bool,
    found: Found,
}

impl PlainClient {
    /// A client that works on `share` of the workload's sessions in `store`.
    pub fn new(store: Box<dyn SessionStore>, workload: Sessions, share: Share) -> Self {
        Self {
            store,
            share,
            versions: Vec::new(),
            chances: Chances::default(),
            phase: 0,
            name: String::new(),
            value: Vec::with_capacity(workload.value_bytes),
            expected: Vec::with_capacity(workload.value_bytes),
            workload,
            operation: READ,
            slot: 0,
            version: 0,
            compare: false,
            found: Found::Yes,
        }
    }

    /// The first slot from `slot` on (wrapping) whose session is known to exist; `None` if there is
    /// none.
    fn known_slot(&self, slot: usize) -> Option<usize> {
        let all = self.versions.len();
        (0..all).map(|step| (slot + step) % all).find(|s| self.versions[*s] != UNKNOWN)
    }

    fn name_slot(&mut self) {
        name_into(&mut self.name, self.workload.names, &self.share, self.slot as u64);
    }

    fn value_of(&self, out: &mut Vec<u8>) {
        let session = self.share.index(self.slot as u64);
        let version = u64::from(self.version);
        value_into(out, self.share.seed, session, version, self.workload.value_bytes);
    }

    fn prepare_new(&mut self) {
        self.operation = WRITE;
        self.slot = self.versions.len();
        self.version = 0;
    }

    fn prepare_existing(&mut self, operation: usize, wanted: usize) {
        let Some(slot) = self.known_slot(wanted) else { return self.prepare_new() };
        self.operation = operation;
        self.slot = slot;
        self.version = self.versions[slot];
        if operation == CHANGE {
            self.version = (self.version + 1) % UNKNOWN;
        }
    }

    /// Judges the current session's value, which is not its last version.
    fn judge_deviation(&mut self) -> StoredVersion {
        let last = u64::from(self.version);
        match version_of(&self.value).filter(|found| *found < last) {
            Some(older) => {
                self.version = older as u32;
                if self.wrong() { StoredVersion::Wrong } else { StoredVersion::Older }
            }
            None => StoredVersion::Wrong,
        }
    }

    fn wrong(&mut self) -> bool {
        if self.value.len() != self.workload.value_bytes {
            return true;
        }
        if !self.compare {
            return false;
        }
        let mut expected = std::mem::take(&mut self.expected);
        self.value_of(&mut expected);
        self.expected = expected;
        self.expected != self.value
    }
}

impl Client for PlainClient {
    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    fn fill_next(&mut self) -> Result<bool, StoreError> {
        if self.versions.len() as u64 >= self.share.of(self.workload.filled) {
            return Ok(false);
        }
        self.prepare_new();
        self.name_slot();
        self.draw();
        self.call()?;
        Ok(true)
    }

    fn start_phase(&mut self, phase: usize) {
        self.phase = phase as u64;
        self.chances = Chances::new(&self.workload.phases[phase].mix, &OPERATIONS);
    }

    fn calls(&self, _n: u64) -> usize {
        1
    }

    fn prepare(&mut self, n: u64, _call: usize) -> Call {
        let draw = mix(&[self.share.seed, u64::from(self.share.client), self.phase, n]);
        let operation = self.chances.choose(draw).unwrap_or(READ);
        let all = self.versions.len().max(1) as u64;
        let wanted = match self.workload.order {
            Order::Sequential => n % all,
            Order::Random => pick(mix(&[draw, 1]), all),
        };
        match operation {
            WRITE => self.prepare_new(),
            other => self.prepare_existing(other, wanted as usize),
        }
        self.compare = mix(&[draw, 2]).is_multiple_of(self.workload.verify_one_in);
        self.name_slot();
        Call { operation: self.operation, think_ns: 0 }
    }

    fn draw(&mut self) {
        if self.operation != READ {
            let mut value = std::mem::take(&mut self.value);
            self.value_of(&mut value);
            self.value = value;
        }
    }

    fn call(&mut self) -> Result<Answer, StoreError> {
        let result = match self.operation {
            WRITE => {
                self.versions.push(UNKNOWN);
                self.store.create(&self.name, &self.value).map(|()| Found::Yes)
            }
            READ => self.store.read(&self.name, &mut self.value),
            _ => {
                let known = std::mem::replace(&mut self.versions[self.slot], UNKNOWN);
                let result = self.store.replace(&self.name, &self.value);
                if matches!(result, Ok(Found::No)) {
                    self.versions[self.slot] = known;
                }
                result
            }
        };
        self.found = result?;
        if self.found == Found::Yes {
            self.versions[self.slot] = self.version;
        }
        Ok(Answer::default())
    }

    fn check(&mut self) -> (Outcome, bool) {
        match (self.found, self.operation) {
            (Found::No, _) => (Outcome::Miss, false),
            (Found::Yes, READ) if self.wrong() => (Outcome::Wrong, self.compare),
            (Found::Yes, READ) => (Outcome::Ok, self.compare),
            (Found::Yes, _) => (Outcome::Ok, false),
        }
    }

    fn read_back(
        &mut self,
        n: u64,
        of: u64,
    ) -> Result<Option<(StoredVersion, String)>, StoreError> {
        let all = self.versions.len() as u64;
        let slot = if all > of { (n * all / of) as usize } else { n as usize };
        let Some(&version) = self.versions.get(slot).filter(|version| **version != UNKNOWN) else {
            return Ok(None);
        };
        (self.slot, self.version, self.compare) = (slot, version, true);
        self.name_slot();
        let held = match self.store.read(&self.name, &mut self.value)? {
            Found::No => StoredVersion::Missing,
            Found::Yes if !self.wrong() => StoredVersion::Last,
            Found::Yes => self.judge_deviation(),
        };
        Ok(Some((held, self.name.clone())))
    }
}
