use super::*;
use crate::kv::{Distribution, values_of};
use model::{ReadBack, Stop};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A store in memory that all clients use.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<HashMap<String, Vec<u8>>>>);

impl SessionStore for Memory {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        let old = self.0.lock().unwrap().insert(id.into(), value.into());
        assert!(old.is_none(), "{id} created twice");
        Ok(())
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        let data = self.0.lock().unwrap();
        let Some(stored) = data.get(id) else { return Ok(Found::No) };
        value.extend_from_slice(stored);
        Ok(Found::Yes)
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        let old = self.0.lock().unwrap().insert(id.into(), value.into());
        Ok(if old.is_some() { Found::Yes } else { Found::No })
    }
}

const KEYS: u64 = 100;

fn clients(store: &Memory, distribution: Distribution) -> Vec<KvClient> {
    let phase = |name: &str| Phase {
        name: name.into(),
        mix: [(name.to_owned(), 1.0)].into(),
        warmup_ns: 0,
        stop: Stop::Count(50),
        control: None,
    };
    let keys = KeyChoice::new(distribution, KEYS).unwrap();
    let (sizes, values) = values_of("64", 7).unwrap();
    let data = KvData {
        keys,
        names: KeyNames::default(),
        sizes,
        values,
        filled: KEYS,
        verify_one_in: 1,
        phases: vec![phase("set"), phase("get")],
    };
    let clock = AtomicU64::new(0);
    let shared = Arc::new(KvShared::new(data, move || clock.fetch_add(1, Ordering::Relaxed)));
    let client = |client| {
        let share = Share { seed: 7, client, clients: 3, prefix: String::new() };
        KvClient::new(Box::new(store.clone()), shared.clone(), share)
    };
    (0..3).map(client).collect()
}

/// Fills, and runs a phase; returns the outcomes.
fn run(clients: &mut [KvClient], phase: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for client in clients {
        client.start_phase(phase);
        for n in 0..50 {
            client.prepare(n, 0);
            client.draw();
            client.call().unwrap();
            outcomes.push(client.check().0);
        }
    }
    outcomes
}

fn read_back(clients: &mut [KvClient]) -> ReadBack {
    let mut read_back = ReadBack::default();
    for client in clients {
        for n in 0..KEYS {
            if let Some((held, name)) = client.read_back(n, KEYS).unwrap() {
                read_back.count(held, || name);
            }
        }
    }
    read_back
}

#[test]
fn clients_fill_each_key_once_and_read_what_any_of_them_wrote() {
    let store = Memory::default();
    let mut clients = clients(&store, Distribution::Uniform);
    for client in &mut clients {
        while client.fill_next().unwrap() {}
    }
    assert_eq!(store.0.lock().unwrap().len() as u64, KEYS);
    for phase in [0, 1] {
        let outcomes = run(&mut clients, phase);
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Ok), "{outcomes:?}");
    }
    let read = read_back(&mut clients);
    assert_eq!((read.read, read.missing, read.older, read.wrong), (KEYS, 0, 0, 0));
}

#[test]
fn lost_changed_and_old_values_are_noticed() {
    let store = Memory::default();
    let mut clients = clients(&store, Distribution::Sequential);
    for client in &mut clients {
        while client.fill_next().unwrap() {}
    }
    let filled = store.0.lock().unwrap().clone();
    run(&mut clients, 0);
    let key = |number: u64| {
        let mut name = Vec::new();
        KeyNames::default().append(&mut name, Key(number));
        String::from_utf8(name).unwrap()
    };
    {
        let mut data = store.0.lock().unwrap();
        data.remove(&key(0));
        data.insert(key(1), filled[&key(1)].clone());
        data.get_mut(&key(2)).unwrap()[63] ^= 1;
        data.insert(key(3), filled[&key(4)].clone());
    }
    let read = read_back(&mut clients);
    assert_eq!((read.missing, read.older, read.wrong), (1, 1, 2));
    let outcomes = run(&mut clients, 1);
    let count = |of: Outcome| outcomes.iter().filter(|outcome| **outcome == of).count();
    // 150 reads in order visit the first 50 keys twice.
    assert_eq!((count(Outcome::Miss), count(Outcome::Wrong)), (2, 4));
}
