//! A shop's page as its session handler sees it: open under the lock and read, think, write, close.
//! One in some requests also deletes expired sessions, when and as the handler does.
//!
//! An operation `page` visits an existing session. An operation `new` is the first page of a new
//! visitor, in whose place the oldest of the visited sessions is not visited any more.
//!
//! If expired sessions are deleted, the initial sessions are of all ages, so that some expire all
//! the time, and only the youngest tenth is visited.
//!
//! Clients visit their own sessions, or all visit the same one (parallel requests of one visitor).
//! On the shared session the lock must make the last written value visible; an older value is
//! stale.

use model::{Order, Sessions, StoredVersion};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Share;
use crate::app_cache::Effort;
use crate::chances::Chances;
use crate::client::{Answer, Call, Client, Outcome};
use crate::store::{Closed, Collects, Found, PageStore, StoreError};
use crate::values::{mix, name_into, pick, value_into, version_of};

const OPERATIONS: [&str; 3] = ["open", "close", "gc"];
const OPEN: usize = 0;
const CLOSE: usize = 1;
const GC: usize = 2;

/// Calls of a page, without and with a collection.
const PAGE: [usize; 2] = [OPEN, CLOSE];
const GC_FIRST: [usize; 3] = [GC, OPEN, CLOSE];
const GC_LAST: [usize; 3] = [OPEN, CLOSE, GC];

/// Of sessions that keep expiring, one in this many belongs to a visitor who is still there.
const LEFT_PER_VISITOR: u64 = 10;

/// Names of whole operations in a mix.
const VISITS: [&str; 2] = ["page", "new"];
const NEW: usize = 1;

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
    /// Initial sessions that exist.
    filled: u64,
    chances: Chances,
    /// One in this many requests of the phase collects; `None` if none does.
    divisor: Option<u64>,
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
    /// True for the first page of a visitor.
    is_new: bool,
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
            filled: 0,
            chances: Chances::default(),
            divisor: None,
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
            is_new: false,
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

    /// Number of the client's initial sessions.
    fn own(&self) -> u64 {
        match self.shared {
            Some(_) => u64::from(self.share.client == 0),
            None => self.share.of(self.workload.filled),
        }
    }

    /// Number of the client's sessions that are visited, the youngest; at least 1.
    fn visited(&self) -> u64 {
        let left = if self.workload.gc.is_some() { LEFT_PER_VISITOR } else { 1 };
        (self.own() / left).max(1)
    }

    /// The calls of operation `n`.
    fn calls_of(&self, n: u64) -> &'static [usize] {
        let Some(divisor) = self.divisor else { return &PAGE };
        // One in each `divisor` requests, so that short phases have as many as long ones.
        let round = n / divisor;
        let draw = mix(&[self.share.seed, u64::from(self.share.client), self.phase, round, 3]);
        match self.store.collects() {
            _ if n % divisor != pick(draw, divisor) => &PAGE,
            Collects::BeforeOpen => &GC_FIRST,
            Collects::AfterClose => &GC_LAST,
            Collects::Never => &PAGE,
        }
    }

    /// Chooses the session that operation `n` visits.
    fn choose(&mut self, n: u64) {
        let draw = mix(&[self.share.seed, u64::from(self.share.client), self.phase, n]);
        self.is_new = self.chances.choose(mix(&[draw, 4])) == Some(NEW);
        self.compare = mix(&[draw, 2]).is_multiple_of(self.workload.verify_one_in);
        let all = self.versions.len() as u64;
        if self.is_new {
            self.slot = all;
            self.versions.push(UNKNOWN);
        } else {
            let visited = self.visited();
            let one = match self.workload.order {
                Order::Sequential => n % visited,
                Order::Random => pick(draw, visited),
            };
            self.slot = all.saturating_sub(visited) + one;
        }
        self.name_session();
    }

    fn open(&mut self) -> Result<Answer, StoreError> {
        let opened = self.store.open(&self.name, &mut self.value)?;
        self.found = opened.found;
        // The lock excludes other writers until the session is closed.
        self.version = self.expected_version();
        Ok(Answer { lock: Some(opened.lock), ..Answer::default() })
    }

    fn close(&mut self) -> Result<Answer, StoreError> {
        // The next owner of the lock may read before this call returns.
        self.remember(self.version);
        let closed = self.store.close(&self.value);
        if !matches!(closed, Ok(Closed::Kept)) {
            self.remember(UNKNOWN);
        }
        self.closed = closed?;
        Ok(Answer::default())
    }

    fn collect(&mut self) -> Result<Answer, StoreError> {
        let collected = self.store.collect()?;
        let effort = Effort { files: collected.files, ..Effort::default() };
        Ok(Answer { effort, deleted: collected.deleted, ..Answer::default() })
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
        let own = self.own();
        if self.filled >= own {
            return Ok(false);
        }
        self.slot = self.filled;
        if self.workload.gc.is_some() {
            // The youngest first, so that none expires before a fill shorter than the lifetime is
            // over.
            self.slot = own - 1 - self.filled;
            self.store.set_lifetime(self.slot * self.workload.ttl_s / own);
        }
        self.filled += 1;
        self.versions.resize(own as usize, UNKNOWN);
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
        self.store.set_lifetime(self.workload.ttl_s);
        let Some(planned) = self.workload.phases.get(phase) else { return };
        self.chances = Chances::new(&planned.mix, &VISITS);
        let gc = self.workload.gc.as_ref().filter(|gc| gc.phases.contains(&planned.name));
        self.divisor = gc.map(|gc| gc.divisor.max(1));
    }

    fn calls(&self, n: u64) -> usize {
        self.calls_of(n).len()
    }

    fn prepare(&mut self, n: u64, call: usize) -> Call {
        if call == 0 {
            self.choose(n);
        }
        self.operation = self.calls_of(n)[call];
        let is_close = self.operation == CLOSE;
        if is_close {
            self.version = self.next_version();
        }
        let think_ns = if is_close { self.workload.think_ns } else { 0 };
        Call { operation: self.operation, think_ns }
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
        match self.operation {
            OPEN => self.open(),
            CLOSE => self.close(),
            _ => self.collect(),
        }
    }

    fn check(&mut self) -> (Outcome, bool) {
        match (self.operation, self.found, self.closed) {
            (OPEN, Found::No, _) if self.is_new => (Outcome::Ok, false),
            (OPEN, Found::Yes, _) if self.is_new => (Outcome::Wrong, false),
            (OPEN, Found::No, _) => (Outcome::Miss, false),
            (OPEN, Found::Yes, _) => (self.judge_value(), self.compare),
            (CLOSE, _, Closed::LockLost) => (Outcome::LockLost, false),
            _ => (Outcome::Ok, false),
        }
    }

    /// Opens and closes the session like a page, since there is no other way to read it.
    fn read_back(
        &mut self,
        n: u64,
        of: u64,
    ) -> Result<Option<(StoredVersion, String)>, StoreError> {
        let all = self.versions.len() as u64;
        let visited = self.visited().min(all);
        self.slot = all - visited + if visited > of { n * visited / of } else { n };
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
