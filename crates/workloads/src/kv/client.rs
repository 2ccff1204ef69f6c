//! Gets and sets by a blocking client, for stores without a protocol of keys and values: files and
//! SQL databases.
//!
//! All clients choose among all keys. A value's version is unique to its write, so a value tells
//! which write it came from, and the last writes of a sample of keys are known ([`Written`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{Phase, StoredVersion};

use super::{Key, KeyChoice, KeyNames, Sizes, Stream, ValueCheck, Values, Written};
use crate::Share;
use crate::chances::Chances;
use crate::client::{Answer, Call, Client, Outcome};
use crate::store::{Found, SessionStore, StoreError};
use crate::values::mix;

const OPERATIONS: [&str; 2] = ["get", "set"];
const GET: usize = 0;
const SET: usize = 1;

/// Keys, values and phases of a load.
#[derive(Debug)]
pub struct KvData {
    /// Choice of the key of an operation.
    pub keys: KeyChoice,
    /// Names of keys.
    pub names: KeyNames,
    /// Lengths of values.
    pub sizes: Sizes,
    /// Contents of values.
    pub values: Values,
    /// Number of keys that exist before the first phase.
    pub filled: u64,
    /// One in this many values read is compared byte by byte; 0 for none.
    pub verify_one_in: u64,
    /// Measured phases, in order.
    pub phases: Vec<Phase>,
}

/// What all clients of a load have in common.
pub struct KvShared {
    data: KvData,
    /// Nanoseconds since some instant, the same for all clients.
    clock: Box<dyn Fn() -> u64 + Send + Sync>,
    written: Mutex<Written>,
}

impl KvShared {
    /// `clock` returns nanoseconds since some instant.
    pub fn new(data: KvData, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { data, clock: Box::new(clock), written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One client.
pub struct KvClient {
    store: Box<dyn SessionStore>,
    shared: Arc<KvShared>,
    share: Share,
    chances: Chances,
    /// Random numbers of the current phase.
    choices: Stream,
    /// Keys that this client filled, and values that it wrote.
    filled: u64,
    writes: u64,
    /// The current call.
    operation: usize,
    key: Key,
    version: u64,
    compare: bool,
    sent_ns: u64,
    done_ns: u64,
    found: Found,
    name: String,
    value: Vec<u8>,
    /// Keys that are read back, known once the load is over.
    sample: Option<Vec<Key>>,
}

impl KvClient {
    /// A client of `store` with its share of the fill.
    pub fn new(store: Box<dyn SessionStore>, shared: Arc<KvShared>, share: Share) -> Self {
        Self {
            choices: Stream::new(share.seed, 0),
            store,
            shared,
            share,
            chances: Chances::default(),
            filled: 0,
            writes: 0,
            operation: GET,
            key: Key(0),
            version: 0,
            compare: false,
            sent_ns: 0,
            done_ns: 0,
            found: Found::Yes,
            name: String::new(),
            value: Vec::new(),
            sample: None,
        }
    }

    fn choose(&mut self, operation: usize, key: Key) {
        (self.operation, self.key) = (operation, key);
        let mut name = std::mem::take(&mut self.name).into_bytes();
        name.clear();
        self.shared.data.names.append(&mut name, key);
        // The prefix is text, and the rest are digits.
        self.name = String::from_utf8(name).unwrap_or_default();
        if operation == SET {
            // Unique among the writes of all clients.
            self.version = self.share.index(self.writes);
            self.writes += 1;
        }
    }

    fn bytes(&self) -> usize {
        self.shared.data.sizes.bytes(self.share.seed, self.key)
    }

    /// Executes a set, a new key's if `is_new`, and records it.
    fn set(&mut self, is_new: bool) -> Result<Found, StoreError> {
        self.sent_ns = (self.shared.clock)();
        let done = if is_new {
            self.store.create(&self.name, &self.value).map(|()| Found::Yes)
        } else {
            self.store.replace(&self.name, &self.value)
        };
        self.done_ns = (self.shared.clock)();
        if done.is_err() {
            self.shared.written().failed(self.key, self.version);
        }
        done
    }

    fn record(&self) {
        if self.operation == SET && self.found == Found::Yes {
            let mut written = self.shared.written();
            written.acknowledged(self.key, self.version, self.sent_ns, self.done_ns);
        }
    }

    fn is_right(&self) -> bool {
        let bytes = self.bytes();
        let mut check = ValueCheck::new(self.key.0, bytes);
        self.value.len() == bytes
            && (!self.compare || self.shared.data.values.check(&mut check, &self.value))
    }
}

impl Client for KvClient {
    fn operations(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    fn fill_next(&mut self) -> Result<bool, StoreError> {
        // A range for each client: with consecutive keys, the clients of a database would wait for
        // each other at the same page of its index.
        let (client, clients) = (u64::from(self.share.client), u64::from(self.share.clients));
        let from = |client: u64| self.shared.data.filled * client / clients;
        let next = from(client) + self.filled;
        if next >= from(client + 1) {
            return Ok(false);
        }
        self.choose(SET, Key(next));
        self.filled += 1;
        self.draw();
        self.found = self.set(true)?;
        self.record();
        Ok(true)
    }

    fn start_phase(&mut self, phase: usize) {
        let client = u64::from(self.share.client);
        self.choices = Stream::new(self.share.seed, mix(&[phase as u64 + 1, client]));
        self.chances = Chances::new(&self.shared.data.phases[phase].mix, &OPERATIONS);
    }

    fn calls(&self, _n: u64) -> usize {
        1
    }

    fn prepare(&mut self, n: u64, _call: usize) -> Call {
        let mut random = self.choices.at(n);
        let operation = self.chances.choose(random.next_u64()).unwrap_or(GET);
        self.compare = random.below(self.shared.data.verify_one_in.max(1)) == 0
            && self.shared.data.verify_one_in > 0;
        // A distribution in order is one over all clients.
        let key = self.shared.data.keys.pick(&mut random, self.share.index(n));
        self.choose(operation, key);
        Call { operation, think_ns: 0 }
    }

    fn draw(&mut self) {
        if self.operation == SET {
            self.value.clear();
            let bytes = self.bytes();
            self.shared.data.values.append(&mut self.value, self.key.0, self.version, bytes);
        }
    }

    fn call(&mut self) -> Result<Answer, StoreError> {
        self.found = if self.operation == SET {
            self.set(false)?
        } else {
            self.store.read(&self.name, &mut self.value)?
        };
        Ok(Answer::default())
    }

    fn check(&mut self) -> (Outcome, bool) {
        self.record();
        match (self.found, self.operation) {
            (Found::No, _) => (Outcome::Miss, false),
            (Found::Yes, SET) => (Outcome::Ok, false),
            (Found::Yes, _) if self.is_right() => (Outcome::Ok, self.compare),
            (Found::Yes, _) => (Outcome::Wrong, self.compare),
        }
    }

    fn read_back(
        &mut self,
        n: u64,
        _of: u64,
    ) -> Result<Option<(StoredVersion, String)>, StoreError> {
        let sample = self.sample.get_or_insert_with(|| self.shared.written().keys().collect());
        let place = self.share.index(n) as usize;
        let Some(&key) = sample.get(place) else { return Ok(None) };
        self.choose(GET, key);
        let found = self.store.read(&self.name, &mut self.value)?;
        let value = (found == Found::Yes).then_some(&*self.value);
        let shared = &self.shared;
        let held = shared.written().held(
            key,
            value,
            (&shared.data.values, &shared.data.sizes, self.share.seed),
        );
        Ok(held.map(|held| (held, self.name.clone())))
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
