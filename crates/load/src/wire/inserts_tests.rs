use std::sync::Arc;

use workloads::kv::{Distribution, Inserts, KeyChoice, KeyNames, Mix, Sizes, Values};

use super::*;
use crate::wire::protocol::Shape;
use crate::wire::template::{Segment, Template};
use crate::wire::work::Operation;

const KEYS: u64 = 100;

/// Reads the latest keys; one request in four inserts a key.
fn work() -> Work {
    let names = KeyNames::default();
    let operation = |name: &str| Operation {
        name: name.into(),
        template: Template::new(vec![Segment::Key], &names, None),
        shape: Shape::Any,
        writes: name == "insert",
        reads_own: false,
        then: None,
    };
    Work {
        operations: vec![operation("get"), operation("insert")],
        mix: Mix::new(&[1.0, 0.0]).unwrap(),
        keys: KeyChoice::new(Distribution::Latest { exponent: 0.99 }, KEYS).unwrap(),
        names,
        sizes: Sizes::all(10),
        values: Arc::new(Values::new(1)),
        seed: 1,
        verify_one_in: 0,
        inserting: Some(Inserting { operation: 1, which: Inserts::new(0.25) }),
        follows: false,
        keeps_writes: false,
    }
}

#[test]
fn threads_insert_distinct_keys_and_read_only_existing_ones() {
    let work = work();
    let streams = work.streams(0);
    let mut all: Vec<u64> = Vec::new();
    for thread in 0..3 {
        let mut inserted = Inserted::new(&work, (thread, 3)).unwrap();
        let (mut existing, mut in_flight) = ((0..KEYS).collect::<Vec<u64>>(), VecDeque::new());
        let (mut fresh, mut hits) = (0, 0);
        for own in 0..4_000 {
            let drawn = inserted.draw(&work, &streams, (own * 3 + u64::from(thread), own));
            if drawn.operation == 1 {
                assert!(!existing.contains(&drawn.key.0));
                all.push(drawn.key.0);
                in_flight.push_back(drawn);
            } else {
                assert!(existing.contains(&drawn.key.0), "{} at {own}", drawn.key.0);
                hits += 1;
                fresh += u64::from(drawn.key.0 >= KEYS);
            }
            // Replies to seven inserts arrive together, the newest first.
            if in_flight.len() == 7 {
                while let Some(drawn) = in_flight.pop_back() {
                    inserted.ended(&drawn);
                    existing.push(drawn.key.0);
                }
            }
        }
        assert!(fresh > hits * 9 / 10, "{fresh} of {hits} reads were of inserted keys");
        assert!(inserted.later.len() < 7);
    }
    all.sort_unstable();
    assert_eq!(all, (KEYS..KEYS + 3_000).collect::<Vec<u64>>());
}

#[test]
fn an_insert_in_flight_hides_those_after_it() {
    let work = work();
    let streams = work.streams(0);
    let mut inserted = Inserted::new(&work, (0, 1)).unwrap();
    let mut in_flight = Vec::new();
    for own in 0..400 {
        let drawn = inserted.draw(&work, &streams, (own, own));
        match drawn.operation {
            1 if in_flight.is_empty() => in_flight.push(drawn),
            1 => inserted.ended(&drawn),
            _ => assert!(drawn.key.0 < KEYS, "{} at {own}", drawn.key.0),
        }
    }
    inserted.ended(&in_flight[0]);
    assert_eq!((inserted.completed, inserted.later.len()), (100, 0));
}
