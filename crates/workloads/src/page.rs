//! A shop's page as its session handler sees it: open under the lock and read, think, write, close.
//!
//! Clients visit their own sessions, or all visit the same one (parallel requests of one visitor).
//! On the shared session the lock must make the last written value visible; an older value is
//! stale.

use model::{Order, Sessions, StoredVersion};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Share;
use crate::client::{Answer, Call, Client, Outcome};
use crate::store::{Closed, Found, PageStore, StoreError};
use crate::values::{mix, name_into, pick, value_into, version_of};

const OPERATIONS: [&str; 2] = ["open", "close"];
const OPEN: usize = 0;
const CLOSE: usize = 1;

/// Unknown version: nothing was written yet, or a lock was lost.
const UNKNOWN: u64 = u64::MAX;
/// Each client's versions on a shared session start at its number times this.
const VERSIONS_OF_A_CLIENT: u64 = 1 << 40;

/// Version of a shared session, known to all of its clients.
#[derive(Debug)]
pub struct SharedSession {
    written_last: AtomicU64,
}

impl Default for SharedSession {
    fn default() -> Self {
        Self { written_last: AtomicU64::new(UNKNOWN) }
    }
}

/// One client of the page layout.
pub struct PageClient {
    store: Box<dyn PageStore>,
    workload: Sessions,
    share: Share,
    /// Version of each of the client's sessions, by slot; unused on a shared session.
    versions: Vec<u64>,
    shared: Option<Arc<SharedSession>>,
    written: u64,
    phase: u64,
    name: String,
    value: Vec<u8>,
    expected: Vec<u8>,
    operation: usize,
    slot: u64,
    version: u64,
    compare: bool,
    found: Found,
    closed: Closed,
}

impl PageClient {
    /// A client of `store`; with `shared`, all clients visit session 0.
    pub fn new(
        store: Box<dyn PageStore>,
        workload: Sessions,
        share: Share,
        shared: Option<Arc<SharedSession>>,
    ) -> Self {
        Self {
            store,
            workload,
            share,
            versions: Vec::new(),
            shared,
            written: 0,
            phase: 0,
            name: String::new(),
            value: Vec::new(),
            expected: Vec::new(),
            operation: OPEN,
            slot: 0,
            version: 0,
            compare: false,
            found: Found::Yes,
            closed: Closed::Kept,
        }
    }

    /// Number among all sessions of the current one.
    fn session(&self) -> u64 {
        if self.shared.is_some() { 0 } else { self.share.index(self.slot) }
    }

    fn name_session(&mut self) {
        if self.shared.is_some() {
            let first = Share { client: 0, ..self.share.clone() };
            name_into(&mut self.name, self.workload.names, &first, 0);
        } else {
            name_into(&mut self.name, self.workload.names, &self.share, self.slot);
        }
    }

    fn next_version(&mut self) -> u64 {
        self.written += 1;
        match self.shared {
            Some(_) => u64::from(self.share.client) * VERSIONS_OF_A_CLIENT + self.written,
            None => self.written,
        }
    }

    /// The version that the session must have; `UNKNOWN` if it is not known.
    fn expected_version(&self) -> u64 {
        match &self.shared {
            Some(shared) => shared.written_last.load(Ordering::Acquire),
            None => self.versions.get(self.slot as usize).copied().unwrap_or(UNKNOWN),
        }
    }

    fn remember(&mut self, version: u64) {
        match &self.shared {
            Some(shared) => shared.written_last.store(version, Ordering::Release),
            None => self.versions[self.slot as usize] = version,
        }
    }

    fn judge_value(&mut self) -> Outcome {
        let expected_version = self.version;
        let found_version = version_of(&self.value);
        let Some(found_version) =
            found_version.filter(|_| self.value.len() == self.workload.value_bytes)
        else {
            return Outcome::Wrong;
        };
        if self.compare {
            let (seed, bytes) = (self.share.seed, self.workload.value_bytes);
            let session = self.session();
            value_into(&mut self.expected, seed, session, found_version, bytes);
            if self.expected != self.value {
                return Outcome::Wrong;
            }
        }
        if expected_version != UNKNOWN && found_version != expected_version {
            return Outcome::Stale;
        }
        Outcome::Ok
    }
}

impl Client for PageClient {
    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    fn fill_next(&mut self) -> Result<bool, StoreError> {
        let own = match self.shared {
            Some(_) => u64::from(self.share.client == 0),
            None => self.share.of(self.workload.filled),
        };
        if self.versions.len() as u64 >= own {
            return Ok(false);
        }
        self.slot = self.versions.len() as u64;
        self.versions.push(UNKNOWN);
        self.name_session();
        self.operation = OPEN;
        self.call()?;
        self.operation = CLOSE;
        self.version = self.next_version();
        self.draw();
        self.call()?;
        Ok(true)
    }

    fn start_phase(&mut self, phase: usize) {
        self.phase = phase as u64;
    }

    fn calls(&self, _n: u64) -> usize {
        OPERATIONS.len()
    }

    fn prepare(&mut self, n: u64, call: usize) -> Call {
        self.operation = call;
        if call == CLOSE {
            self.version = self.next_version();
            return Call { operation: CLOSE, think_ns: self.workload.think_ns };
        }
        let draw = mix(&[self.share.seed, u64::from(self.share.client), self.phase, n]);
        let own = self.versions.len().max(1) as u64;
        self.slot = match self.workload.order {
            Order::Sequential => n % own,
            Order::Random => pick(draw, own),
        };
        self.compare = mix(&[draw, 2]).is_multiple_of(self.workload.verify_one_in);
        self.name_session();
        Call { operation: OPEN, think_ns: 0 }
    }

    fn draw(&mut self) {
        if self.operation == CLOSE {
            let mut value = std::mem::take(&mut self.value);
            let (seed, bytes) = (self.share.seed, self.workload.value_bytes);
            value_into(&mut value, seed, self.session(), self.version, bytes);
            self.value = value;
        }
    }

    fn call(&mut self) -> Result<Answer, StoreError> {
        if self.operation == OPEN {
            let opened = self.store.open(&self.name, &mut self.value)?;
            self.found = opened.found;
            // The lock excludes other writers until the session is closed.
            self.version = self.expected_version();
            return Ok(Answer { lock: Some(opened.lock), ..Answer::default() });
        }
        // The next owner of the lock may read before this call returns.
        self.remember(self.version);
        let closed = self.store.close(&self.value);
        if !matches!(closed, Ok(Closed::Kept)) {
            self.remember(UNKNOWN);
        }
        self.closed = closed?;
        Ok(Answer::default())
    }

    fn check(&mut self) -> (Outcome, bool) {
        match (self.operation, self.found, self.closed) {
            (OPEN, Found::No, _) => (Outcome::Miss, false),
            (OPEN, Found::Yes, _) => (self.judge_value(), self.compare),
            (_, _, Closed::LockLost) => (Outcome::LockLost, false),
            (_, _, Closed::Kept) => (Outcome::Ok, false),
        }
    }

    /// Opens and closes the session like a page, since there is no other way to read it.
    fn read_back(
        &mut self,
        n: u64,
        of: u64,
    ) -> Result<Option<(StoredVersion, String)>, StoreError> {
        let all = self.versions.len() as u64;
        self.slot = if all > of { n * all / of } else { n };
        let is_there = if self.shared.is_some() { n == 0 } else { self.slot < all };
        if !is_there {
            return Ok(None);
        }
        self.name_session();
        (self.compare, self.operation) = (true, OPEN);
        self.call()?;
        let was_known = self.version != UNKNOWN;
        let held = match self.found {
            Found::No => StoredVersion::Missing,
            Found::Yes => match self.judge_value() {
                Outcome::Ok => StoredVersion::Last,
                Outcome::Stale => StoredVersion::Older,
                _ => StoredVersion::Wrong,
            },
        };
        self.operation = CLOSE;
        self.version = self.next_version();
        self.draw();
        self.call()?;
        Ok(was_known.then(|| (held, self.name.clone())))
    }
}
