//! One client of the application.
//!
//! A read asks the cache (`get`). If the row is there, that is all. Otherwise the client takes the
//! row's lock if the profile has one (`lock`; it then may find the row after all), reads the row
//! from the database (`query`), caches it (`set`), and releases the lock (`unlock`). Without a
//! cache, and in phase [`PEAK`], a read is a query.
//!
//! The application does not hide a cache that fails: an error of any call fails the read.

use model::{CacheAside, ErrorClass, PEAK, StoredVersion};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::store::{Locked, RowCache, RowDatabase};
use super::users::{User, Users};
use crate::Share;
use crate::client::{Answer, Call, Client, Outcome};
use crate::kv::{Distribution, KeyChoice, KvError, numbers};
use crate::store::{Found, StoreError};
use crate::values::{mix, pick};

/// Calls of a read, in the order in which they are reported.
const CALLS: [&str; 5] = ["get", "lock", "query", "set", "unlock"];
const GET: usize = 0;
const LOCK: usize = 1;
const QUERY: usize = 2;
const SET: usize = 3;
const UNLOCK: usize = 4;
/// The only call without a cache.
const ALONE: [&str; 1] = ["query"];

/// Rows inserted by one statement.
const INSERTED_AT_ONCE: u64 = 200;

/// Expiries of the only row of a profile, known to all clients: even while it is cached, odd while
/// it is missing, so that each expiry counts once however many clients notice it.
#[derive(Debug, Default)]
pub struct Expiries(AtomicU64);

impl Expiries {
    fn state(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Notes a miss of a read that began in state `before`; true if it is the first since the row
    /// was cached.
    fn missed(&self, before: u64) -> bool {
        let next = before.wrapping_add(1);
        before.is_multiple_of(2)
            && self.0.compare_exchange(before, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Notes that the row is cached.
    fn cached(&self) {
        let state = self.state();
        if !state.is_multiple_of(2) {
            let next = state.wrapping_add(1);
            // Another client may have noted the same.
            let _ = self.0.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

/// A read of the application.
#[derive(Default)]
struct Read {
    /// Number of its row, and its key in the cache.
    number: u64,
    key: String,
    /// True if the row is compared byte by byte.
    compare: bool,
    /// State of [`Expiries`] before it.
    before: u64,
}

/// One client of the application.
pub struct CacheAsideClient {
    database: Box<dyn RowDatabase>,
    /// `None` without a cache.
    cache: Option<Box<dyn RowCache>>,
    workload: CacheAside,
    share: Share,
    users: Users,
    rows: KeyChoice,
    expiries: Arc<Expiries>,
    /// Rows inserted.
    filled: u64,
    phase: u64,
    /// True if reads bypass the cache.
    bypasses: bool,
    /// The next call of the read; `None` if it is done.
    next: Option<usize>,
    /// The prepared call.
    call: usize,
    read: Read,
    found: Found,
    /// Whether the last lock was taken.
    is_locked: bool,
    user: User,
    value: Vec<u8>,
    expected_user: User,
    expected: Vec<u8>,
}

impl CacheAsideClient {
    /// A client of `database` behind `cache`. Errors: parameters of the choice of rows out of
    /// range.
    pub fn new(
        database: Box<dyn RowDatabase>,
        cache: Option<Box<dyn RowCache>>,
        workload: CacheAside,
        share: Share,
        expiries: Arc<Expiries>,
    ) -> Result<Self, KvError> {
        let distribution = match workload.zipf {
            0.0 => Distribution::Uniform,
            exponent => Distribution::Zipf { exponent, scattered: true },
        };
        Ok(Self {
            database,
            cache,
            users: Users::new(share.seed, workload.row_bytes),
            rows: KeyChoice::new(distribution, workload.rows)?,
            workload,
            share,
            expiries,
            filled: 0,
            phase: 0,
            bypasses: false,
            next: None,
            call: QUERY,
            read: Read::default(),
            found: Found::No,
            is_locked: false,
            user: User::default(),
            value: Vec::new(),
            expected_user: User::default(),
            expected: Vec::new(),
        })
    }

    fn first_call(&self) -> usize {
        if self.cache.is_none() || self.bypasses { QUERY } else { GET }
    }

    fn execute(&mut self) -> Result<Answer, StoreError> {
        let mut answer = Answer::default();
        if self.call == QUERY {
            self.found = self.database.query(self.read.number, &mut self.user)?;
            self.user.json_into(&mut self.value);
            return Ok(answer);
        }
        let Some(cache) = &mut self.cache else {
            return Err(StoreError::fatal(ErrorClass::Other, "the target has no cache"));
        };
        match self.call {
            GET => self.found = cache.get(&self.read.key, &mut self.value)?,
            LOCK => {
                let locked = cache.lock(&self.read.key, &mut self.value)?;
                let (found, wait) = match locked {
                    Locked::Ours(wait) => (Found::No, wait),
                    Locked::Cached(wait) => (Found::Yes, wait),
                };
                (self.found, self.is_locked) = (found, found == Found::No);
                answer.lock = Some(wait);
            }
            SET => cache.set(&self.read.key, &self.value)?,
            _ => self.is_locked = cache.unlock(&self.read.key)?,
        }
        Ok(answer)
    }

    /// Judges a row that was read.
    fn judge(&mut self) -> Outcome {
        if self.value.len() != self.users.bytes() {
            return Outcome::Wrong;
        }
        if self.read.compare {
            self.users.user_into(&mut self.expected_user, self.read.number);
            self.expected_user.json_into(&mut self.expected);
            if self.expected != self.value {
                return Outcome::Wrong;
            }
        }
        Outcome::Ok
    }

    fn after_get(&mut self) -> (Outcome, bool) {
        if self.found == Found::Yes {
            self.next = None;
            return (self.judge(), self.read.compare);
        }
        self.next = Some(if self.workload.lock { LOCK } else { QUERY });
        let is_first = self.workload.rows == 1 && self.expiries.missed(self.read.before);
        (if is_first { Outcome::Expired } else { Outcome::NotCached }, false)
    }
}

impl Client for CacheAsideClient {
    fn operations(&self) -> &'static [&'static str] {
        if self.cache.is_some() { &CALLS } else { &ALONE }
    }

    fn fill_next(&mut self) -> Result<bool, StoreError> {
        // One client fills the table: MariaDB 10.11 sometimes hangs for minutes when several begin
        // with an empty one.
        if self.share.client > 0 || self.filled >= self.workload.rows {
            return Ok(false);
        }
        let from = self.filled;
        let to = (from + INSERTED_AT_ONCE).min(self.workload.rows);
        self.filled = to;
        let mut users = vec![User::default(); (to - from) as usize];
        for (user, number) in users.iter_mut().zip(from..) {
            self.users.user_into(user, number);
        }
        self.database.insert(&users)?;
        Ok(true)
    }

    fn start_phase(&mut self, phase: usize) {
        self.phase = phase as u64;
        self.bypasses = self.workload.phases.get(phase).is_some_and(|p| p.name == PEAK);
    }

    fn calls(&self, _n: u64) -> usize {
        if self.cache.is_some() { CALLS.len() } else { ALONE.len() }
    }

    fn has_call(&mut self, _n: u64, call: usize) -> bool {
        call == 0 || self.next.is_some()
    }

    fn prepare(&mut self, n: u64, call: usize) -> Call {
        if call == 0 {
            let Share { seed, client, .. } = self.share;
            let mut random = numbers(mix(&[seed, u64::from(client)]), self.phase, n);
            self.read.number = self.rows.pick(&mut random, n).0;
            let draw = mix(&[seed, u64::from(client), self.phase, n]);
            self.read.compare = pick(draw, self.workload.verify_one_in) == 0;
            self.read.key.clear();
            self.read.key.push_str(&self.share.prefix);
            self.read.key.push_str("user:");
            self.read.key.push_str(&self.read.number.to_string());
            self.read.before = self.expiries.state();
            self.next = Some(self.first_call());
        }
        self.call = self.next.unwrap_or(QUERY);
        let operation = if self.cache.is_some() { self.call } else { 0 };
        Call { operation, think_ns: 0 }
    }

    fn draw(&mut self) {}

    fn call(&mut self) -> Result<Answer, StoreError> {
        let answer = self.execute();
        if answer.is_err() && std::mem::take(&mut self.is_locked) && self.call != UNLOCK {
            // A reader whose query fails must not block the others until the lock expires.
            if let Some(cache) = &mut self.cache {
                cache.unlock(&self.read.key)?;
            }
        }
        answer
    }

    fn check(&mut self) -> (Outcome, bool) {
        match self.call {
            GET => self.after_get(),
            LOCK if self.found == Found::Yes => {
                self.next = None;
                (self.judge(), self.read.compare)
            }
            LOCK => {
                self.next = Some(QUERY);
                (Outcome::Ok, false)
            }
            QUERY => {
                let is_cached = self.first_call() == GET;
                self.next = is_cached.then_some(SET);
                match self.found {
                    Found::No => {
                        self.next = None;
                        (Outcome::Miss, false)
                    }
                    Found::Yes => (self.judge(), self.read.compare),
                }
            }
            SET => {
                self.expiries.cached();
                self.next = self.workload.lock.then_some(UNLOCK);
                (Outcome::Ok, false)
            }
            _ => {
                self.next = None;
                let held = std::mem::take(&mut self.is_locked);
                (if held { Outcome::Ok } else { Outcome::LockLost }, false)
            }
        }
    }

    /// Reads rows back from the database.
    fn read_back(
        &mut self,
        n: u64,
        of: u64,
    ) -> Result<Option<(StoredVersion, String)>, StoreError> {
        let own = self.share.of(self.workload.rows);
        let slot = if own > of { n * own / of } else { n };
        if slot >= own {
            return Ok(None);
        }
        self.read.number = self.share.index(slot);
        self.read.compare = true;
        let held = match self.database.query(self.read.number, &mut self.user)? {
            Found::No => StoredVersion::Missing,
            Found::Yes => {
                self.user.json_into(&mut self.value);
                match self.judge() {
                    Outcome::Ok => StoredVersion::Last,
                    _ => StoredVersion::Wrong,
                }
            }
        };
        Ok(Some((held, format!("user {}", self.read.number))))
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
