use super::values::{STAMP, mix, name_into, pick, value_into, version_of};
use super::*;
use model::{Connections, Generation, Layout, Names, Order, Phase, SessionGc, Sessions, Stop};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// A store in memory.
#[derive(Clone, Default)]
struct Memory {
    data: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    /// Lifetimes of closed sessions, in order.
    lifetimes: Arc<Mutex<Vec<u64>>>,
    lifetime_s: u64,
    open: String,
}

impl SessionStore for Memory {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        let old = self.data.lock().unwrap().insert(id.into(), value.into());
        assert!(old.is_none(), "{id} created twice");
        Ok(())
    }
    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        match self.data.lock().unwrap().get(id) {
            Some(stored) => value.extend_from_slice(stored),
            None => return Ok(Found::No),
        }
        Ok(Found::Yes)
    }
    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        let old = self.data.lock().unwrap().insert(id.into(), value.into());
        Ok(if old.is_some() { Found::Yes } else { Found::No })
    }
}

impl PageStore for Memory {
    fn open(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Opened, StoreError> {
        self.open = id.into();
        let found = self.read(id, value)?;
        Ok(Opened { found, lock: LockWait { attempts: 1, waited_ns: 0 } })
    }
    fn close(&mut self, value: &[u8]) -> Result<Closed, StoreError> {
        self.data.lock().unwrap().insert(self.open.clone(), value.into());
        self.lifetimes.lock().unwrap().push(self.lifetime_s);
        Ok(Closed::Kept)
    }
    fn set_lifetime(&mut self, lifetime_s: u64) {
        self.lifetime_s = lifetime_s;
    }
    fn collects(&self) -> Collects {
        Collects::AfterClose
    }
    fn collect(&mut self) -> Result<Collected, StoreError> {
        Ok(Collected { deleted: 2, files: 0 })
    }
}

fn workload(layout: Layout, mixes: &[&[(&str, f64)]]) -> Sessions {
    let phases = mixes.iter().map(|mix| Phase {
        name: "p".into(),
        mix: mix.iter().map(|(k, v)| ((*k).to_string(), *v)).collect::<BTreeMap<_, _>>(),
        warmup_ns: 0,
        stop: Stop::Count(1),
        control: None,
    });
    Sessions {
        profile: "test".into(),
        layout,
        connections: Connections::Persistent,
        names: Names::Hex,
        order: Order::Random,
        generation: Generation::Outside,
        filled: 10,
        value_bytes: 1500,
        ttl_s: 300,
        verify_one_in: 1,
        think_ns: 3,
        gc: None,
        phases: phases.collect(),
    }
}

fn share(client: u32, clients: u32) -> Share {
    Share { seed: 42, client, clients, prefix: String::new() }
}

fn operate(client: &mut dyn Client, n: u64) -> Vec<(usize, Outcome)> {
    (0..client.calls(n))
        .map(|call| {
            let plan = client.prepare(n, call);
            client.draw();
            client.call().unwrap();
            (plan.operation, client.check().0)
        })
        .collect()
}

fn fill(client: &mut dyn Client) -> u64 {
    let mut created = 0;
    while client.fill_next().unwrap() {
        created += 1;
    }
    created
}

#[test]
fn clients_share_the_initial_sessions_without_overlap() {
    let store = Memory::default();
    let created: u64 = (0..3)
        .map(|c| {
            let plan = workload(Layout::Plain, &[&[("read", 1.0)]]);
            fill(&mut PlainClient::new(Box::new(store.clone()), plan, share(c, 3)))
        })
        .sum();
    assert_eq!((created, store.data.lock().unwrap().len()), (10, 10));
}

#[test]
fn a_mix_follows_its_weights_and_every_value_is_correct() {
    let plan = workload(Layout::Plain, &[&[("write", 0.1), ("read", 0.5), ("change", 0.4)]]);
    let mut client = PlainClient::new(Box::new(Memory::default()), plan, share(0, 1));
    assert_eq!(fill(&mut client), 10);
    client.start_phase(0);
    let mut tally = [0u32; 3];
    for n in 0..20_000 {
        let done = operate(&mut client, n);
        assert_eq!(done[0].1, Outcome::Ok);
        tally[done[0].0] += 1;
    }
    for (count, expected) in tally.iter().zip([2000, 10_000, 8000]) {
        assert!(count.abs_diff(expected) < 300, "{tally:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_operations() {
    let run = || {
        let store = Memory::default();
        let plan = workload(Layout::Plain, &[&[("read", 1.0), ("change", 1.0)]]);
        let mut client = PlainClient::new(Box::new(store.clone()), plan, share(0, 1));
        fill(&mut client);
        client.start_phase(0);
        let operations: Vec<usize> = (0..500).map(|n| operate(&mut client, n)[0].0).collect();
        let data = store.data.lock().unwrap().clone();
        (operations, data)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_changed_value_is_wrong_and_a_missing_one_is_a_miss() {
    let store = Memory::default();
    let plan = workload(Layout::Plain, &[&[("read", 1.0)]]);
    let mut client = PlainClient::new(Box::new(store.clone()), plan, share(0, 1));
    fill(&mut client);
    client.start_phase(0);
    store.data.lock().unwrap().values_mut().for_each(|v| v[1000] ^= 1);
    assert_eq!(operate(&mut client, 0)[0].1, Outcome::Wrong);
    store.data.lock().unwrap().values_mut().for_each(|v| v.truncate(1499));
    assert_eq!(operate(&mut client, 1)[0].1, Outcome::Wrong);
    store.data.lock().unwrap().clear();
    assert_eq!(operate(&mut client, 2)[0].1, Outcome::Miss);
}

#[test]
fn pages_of_a_shared_session_see_the_last_written_value() {
    let store = Memory::default();
    let shared = Arc::new(SharedSession::default());
    let mut clients: Vec<PageClient> = (0..2)
        .map(|c| {
            let plan = workload(Layout::Page, &[&[("page", 1.0)]]);
            PageClient::new(Box::new(store.clone()), plan, share(c, 2), Some(shared.clone()))
        })
        .collect();
    let created: Vec<u64> = clients.iter_mut().map(|c| fill(c)).collect();
    assert_eq!(created, [1, 0]);
    for n in 0..10 {
        for client in &mut clients {
            client.start_phase(0);
            assert_eq!(operate(client, n), [(0, Outcome::Ok), (1, Outcome::Ok)]);
        }
    }
    // An older value is put back without taking the lock.
    let old = store.data.lock().unwrap().values().next().unwrap().clone();
    operate(&mut clients[0], 10);
    store.data.lock().unwrap().values_mut().for_each(|v| v.clone_from(&old));
    assert_eq!(operate(&mut clients[1], 11)[0].1, Outcome::Stale);
}

#[test]
fn sessions_that_keep_expiring_are_of_all_ages_and_replaced() {
    let mut plan = workload(Layout::Page, &[&[("page", 0.5), ("new", 0.5)]]);
    plan.phases.push(Phase { name: "with".into(), ..plan.phases[0].clone() });
    plan.filled = 40;
    plan.gc = Some(SessionGc { divisor: 10, phases: vec!["with".into()] });
    let store = Memory::default();
    let mut client = PageClient::new(Box::new(store.clone()), plan, share(0, 1), None);
    assert_eq!(fill(&mut client), 40);
    let ages = std::mem::take(&mut *store.lifetimes.lock().unwrap());
    assert_eq!((ages.len(), ages[0], ages[20], ages[39]), (40, 292, 142, 0));
    for phase in [0, 1] {
        client.start_phase(phase);
        let before = store.data.lock().unwrap().len();
        let done: Vec<_> = (0..200).map(|n| operate(&mut client, n)).collect();
        let calls = done.concat();
        assert!(calls.iter().all(|(_, outcome)| *outcome == Outcome::Ok));
        let collections = calls.iter().filter(|(call, _)| *call == 2).count();
        assert_eq!(collections, if phase == 0 { 0 } else { 20 });
        assert!(done.iter().all(|calls| calls.len() == 2 || calls[2].0 == 2));
        let added = store.data.lock().unwrap().len() - before;
        assert!((70..130).contains(&added), "{added}");
    }
    assert!(store.lifetimes.lock().unwrap().iter().all(|s| *s == 300));
    // Only sessions that are visited are known to exist.
    store.data.lock().unwrap().retain(|_, value| version_of(value) > Some(100));
    assert!(client.read_back(0, 100).unwrap().is_some());
    assert!(client.read_back(4, 100).unwrap().is_none());
}

#[test]
fn a_page_thinks_before_it_closes() {
    let plan = workload(Layout::Page, &[&[("page", 1.0)]]);
    let mut client = PageClient::new(Box::new(Memory::default()), plan, share(0, 1), None);
    fill(&mut client);
    client.start_phase(0);
    assert_eq!(client.prepare(0, 0), Call { operation: 0, think_ns: 0 });
    client.call().unwrap();
    assert_eq!(client.prepare(0, 1), Call { operation: 1, think_ns: 3 });
}

#[test]
fn names_follow_the_configured_scheme() {
    let mut name = String::new();
    name_into(&mut name, Names::Counter, &share(2, 8), 41);
    assert_eq!(name, "3_41");
    let prefixed = Share { prefix: "run:".into(), ..share(0, 1) };
    name_into(&mut name, Names::Hex, &prefixed, 0);
    assert!(name.starts_with("run:") && name.len() == 36, "{name}");
}

proptest! {
    #[test]
    fn a_value_is_alphanumeric_and_contains_its_version(
        seed: u64, session: u64, version: u64, bytes in STAMP..3000usize
    ) {
        let mut value = Vec::new();
        value_into(&mut value, seed, session, version, bytes);
        prop_assert_eq!(value.len(), bytes);
        prop_assert!(value.iter().all(u8::is_ascii_alphanumeric));
        prop_assert_eq!(version_of(&value), Some(version));
    }

    #[test]
    fn only_values_with_room_for_a_stamp_have_a_version(
        bytes in prop::collection::vec(any::<u8>(), 0..40)
    ) {
        let version = version_of(&bytes);
        prop_assert!(version.is_none() || bytes.len() >= STAMP);
    }

    #[test]
    fn a_pick_is_below_its_limit(x: u64, below in 1u64..1_000_000) {
        prop_assert!(pick(mix(&[x]), below) < below);
    }
}

#[test]
fn characters_are_evenly_spread() {
    let mut value = Vec::new();
    let mut tally = [0u32; 256];
    for session in 0..1000 {
        value_into(&mut value, 1, session, 0, 1500);
        value[STAMP..].iter().for_each(|c| tally[*c as usize] += 1);
    }
    let counts: Vec<u32> = tally.into_iter().filter(|n| *n > 0).collect();
    assert_eq!(counts.len(), 62);
    assert!(counts.iter().all(|n| (23_000..25_100).contains(n)), "{counts:?}");
}
