use model::{Phase, Stop};
use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;

/// Rows and cached values, shared by all clients; a cached value can be dropped.
#[derive(Default)]
struct Memory {
    rows: BTreeMap<u64, User>,
    cached: BTreeMap<String, Vec<u8>>,
    locked: bool,
    queries: u64,
}

#[derive(Clone, Default)]
struct Stores(Arc<Mutex<Memory>>);

impl RowDatabase for Stores {
    fn insert(&mut self, users: &[User]) -> Result<(), StoreError> {
        let mut memory = self.0.lock().unwrap();
        memory.rows.extend(users.iter().map(|user| (user.number, user.clone())));
        Ok(())
    }
    fn query(&mut self, number: u64, user: &mut User) -> Result<Found, StoreError> {
        let mut memory = self.0.lock().unwrap();
        memory.queries += 1;
        let Some(row) = memory.rows.get(&number) else { return Ok(Found::No) };
        user.clone_from(row);
        Ok(Found::Yes)
    }
}

impl RowCache for Stores {
    fn get(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        let memory = self.0.lock().unwrap();
        let Some(cached) = memory.cached.get(key) else { return Ok(Found::No) };
        value.clone_from(cached);
        Ok(Found::Yes)
    }
    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.0.lock().unwrap().cached.insert(key.into(), value.to_vec());
        Ok(())
    }
    fn lock(&mut self, key: &str, value: &mut Vec<u8>) -> Result<Locked, StoreError> {
        let wait = crate::LockWait { attempts: 1, waited_ns: 0 };
        if self.get(key, value)? == Found::Yes {
            return Ok(Locked::Cached(wait));
        }
        self.0.lock().unwrap().locked = true;
        Ok(Locked::Ours(wait))
    }
    fn unlock(&mut self, _: &str) -> Result<bool, StoreError> {
        Ok(std::mem::take(&mut self.0.lock().unwrap().locked))
    }
}

fn workload(rows: u64, lock: bool) -> CacheAside {
    let phase = |name: &str| Phase {
        name: name.into(),
        mix: BTreeMap::from([("read".to_string(), 1.0)]),
        warmup_ns: 0,
        stop: Stop::Count(1),
        control: None,
    };
    CacheAside {
        profile: "test".into(),
        rows,
        row_bytes: 300,
        zipf: 0.0,
        ttl_s: 60,
        lock,
        verify_one_in: 1,
        phases: vec![phase(PEAK), phase("read")],
    }
}

fn client(stores: &Stores, cached: bool, workload: &CacheAside) -> CacheAsideClient {
    clients(stores, cached, workload, 1).remove(0)
}

fn clients(
    stores: &Stores,
    cached: bool,
    workload: &CacheAside,
    clients: u32,
) -> Vec<CacheAsideClient> {
    let expiries = Arc::new(Expiries::default());
    let one = |client| {
        let share = Share { seed: 3, client, clients, prefix: "p:".into() };
        let cache = cached.then(|| Box::new(stores.clone()) as Box<dyn RowCache>);
        let database = Box::new(stores.clone());
        let mut opened =
            CacheAsideClient::new(database, cache, workload.clone(), share, expiries.clone())
                .unwrap();
        while opened.fill_next().unwrap() {}
        opened.start_phase(1);
        opened
    };
    (0..clients).map(one).collect()
}

/// The next call of an operation, with its outcome.
fn step(client: &mut CacheAsideClient, n: u64, call: usize) -> (&'static str, Outcome) {
    assert!(client.has_call(0, call));
    let operation = client.prepare(n, call).operation;
    client.call().unwrap();
    (client.operations()[operation], client.check().0)
}

/// A whole read.
fn read(client: &mut CacheAsideClient, n: u64) -> Vec<(&'static str, Outcome)> {
    let mut made = Vec::new();
    while client.has_call(0, made.len()) {
        made.push(step(client, n, made.len()));
    }
    made
}

#[test]
fn all_rows_are_filled() {
    let stores = Stores::default();
    clients(&stores, true, &workload(1_700, false), 3);
    let memory = stores.0.lock().unwrap();
    assert!(memory.rows.keys().copied().eq(0..1_700));
}

#[test]
fn a_miss_is_queried_and_cached_and_then_hits() {
    let stores = Stores::default();
    let mut client = client(&stores, true, &workload(1, false));
    let missed = [("get", Outcome::Expired), ("query", Outcome::Ok), ("set", Outcome::Ok)];
    assert_eq!(read(&mut client, 0), missed);
    assert_eq!(read(&mut client, 1), [("get", Outcome::Ok)]);
    assert!(stores.0.lock().unwrap().cached.contains_key("p:user:0"));
    stores.0.lock().unwrap().cached.clear();
    assert_eq!(read(&mut client, 2), missed, "after its expiry");
    client.start_phase(0);
    assert_eq!(read(&mut client, 3), [("query", Outcome::Ok)], "the peak bypasses the cache");
}

#[test]
fn without_a_cache_every_read_is_a_query() {
    let stores = Stores::default();
    let mut client = client(&stores, false, &workload(40, false));
    assert_eq!(client.calls(0), 1);
    for n in 0..3 {
        assert_eq!(read(&mut client, n), [("query", Outcome::Ok)]);
    }
}

#[test]
fn an_expiry_counts_once_however_many_clients_notice_it() {
    let stores = Stores::default();
    let mut all = clients(&stores, true, &workload(1, false), 3);
    let first = all.iter_mut().map(|client| step(client, 0, 0).1).collect::<Vec<_>>();
    assert_eq!(first, [Outcome::Expired, Outcome::NotCached, Outcome::NotCached]);
    // The third read began before the row was cached and misses after it.
    let late = all[2].prepare(1, 0);
    assert_eq!(step(&mut all[0], 0, 1).0, "query");
    assert_eq!(step(&mut all[0], 0, 2).0, "set");
    stores.0.lock().unwrap().cached.clear();
    assert_eq!(late.operation, GET);
    all[2].call().unwrap();
    assert_eq!(all[2].check().0, Outcome::NotCached);
    assert_eq!(step(&mut all[1], 1, 0).1, Outcome::Expired);
}

#[test]
fn a_reader_with_the_lock_queries_and_one_that_waited_does_not() {
    let stores = Stores::default();
    let mut all = clients(&stores, true, &workload(1, true), 2);
    for client in &mut all {
        step(client, 0, 0);
    }
    let calls = ["lock", "query", "set", "unlock"];
    for (at, name) in calls.iter().enumerate() {
        assert_eq!(step(&mut all[0], 0, at + 1), (*name, Outcome::Ok));
    }
    assert!(!all[0].has_call(0, 5));
    assert_eq!(step(&mut all[1], 0, 1), ("lock", Outcome::Ok));
    assert!(!all[1].has_call(0, 2), "it found the row");
    assert_eq!(stores.0.lock().unwrap().queries, 1);
}

#[test]
fn wrong_rows_are_found_in_the_cache_and_in_the_database() {
    let stores = Stores::default();
    let mut client = client(&stores, true, &workload(1, false));
    read(&mut client, 0);
    let key = "p:user:0";
    stores.0.lock().unwrap().cached.get_mut(key).unwrap()[40] ^= 1;
    assert_eq!(read(&mut client, 1), [("get", Outcome::Wrong)]);
    stores.0.lock().unwrap().cached.insert(key.into(), b"{}".to_vec());
    assert_eq!(read(&mut client, 2), [("get", Outcome::Wrong)]);
    stores.0.lock().unwrap().cached.clear();
    stores.0.lock().unwrap().rows.get_mut(&0).unwrap().columns[1].push('x');
    assert_eq!(read(&mut client, 3)[1], ("query", Outcome::Wrong));
    assert_eq!(client.read_back(0, 10).unwrap().unwrap().0, StoredVersion::Wrong);
    stores.0.lock().unwrap().rows.clear();
    stores.0.lock().unwrap().cached.clear();
    assert_eq!(read(&mut client, 4)[1], ("query", Outcome::Miss));
    assert_eq!(client.read_back(0, 10).unwrap().unwrap().0, StoredVersion::Missing);
}
