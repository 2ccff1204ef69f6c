//! Read-modify-writes and inserts, against servers that record their requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cachedyno_load as load;
use load::wire::pacer::{Arrivals, Stage};
use load::wire::protocol::Shape;
use load::wire::template::{Segment, Template};
use load::wire::{Inserting, Offer, Operation, Pacing, Until, Work};
use model::ErrorClass;
use workloads::kv::{Distribution, Inserts, KeyChoice, KeyNames, Mix};

use super::engine::{S, Server, offer, run_with, work};

/// Its request is its first letter, a space and the key.
fn operation(name: &str) -> Operation {
    let names = KeyNames::default();
    let segments = vec![
        Segment::Literal(format!("{} ", &name[..1]).into()),
        Segment::Key,
        Segment::Literal(b"\n".to_vec()),
    ];
    Operation {
        name: name.into(),
        template: Template::new(segments, &names, None),
        shape: Shape::Any,
        writes: name != "read",
        reads_own: false,
        then: None,
    }
}

fn updates() -> Work {
    let then = Some(Box::new(operation("write")));
    Work { operations: vec![Operation { then, ..operation("read") }], ..work() }
}

#[test]
fn a_read_modify_write_writes_only_after_a_hit_or_a_miss() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let lines = asked.clone();
    let server = Server::start(Arc::new(move |_, line: &str| {
        let mut lines = lines.lock().unwrap();
        lines.push(line.to_string());
        let reads = lines.iter().filter(|l| l.starts_with('r')).count();
        let answers = ["+\n", "?\n", "!\n", "-NO\n"];
        Some(if line.starts_with('w') { "+\n" } else { answers[reads % 4] }.to_string())
    }));
    let outcome = run_with(&updates(), &offer(1, 1, Until::Requests(400)), &server.servers());
    let row = outcome.recorder.whole();
    let counts = row.counts();
    let kinds = (counts.ok, counts.miss, counts.wrong, counts.error);
    assert_eq!((outcome.failure, kinds, row.answered()), (None, (100, 100, 100, 100), 300));
    assert_eq!(outcome.recorder.rows().len(), 1);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 600);
    let writes = asked.windows(2).filter(|pair| pair[1].starts_with('w'));
    let same = writes.filter(|pair| pair[0][1..] == pair[1][1..] && pair[0].starts_with('r'));
    assert_eq!(same.count(), 200, "each write follows the read of its key");
}

#[test]
fn its_time_includes_the_read_and_the_write() {
    let server = Server::start(Arc::new(|_, _| {
        thread::sleep(Duration::from_millis(20));
        Some("+\n".into())
    }));
    let outcome = run_with(&updates(), &offer(2, 1, Until::Requests(20)), &server.servers());
    let row = outcome.recorder.whole();
    assert_eq!((outcome.failure, row.counts().ok), (None, 20));
    assert!(row.service().quantile_ns(0.0) >= 40_000_000, "{}", row.service().quantile_ns(0.0));
}

#[test]
fn its_failed_writes_are_counted_when_a_connection_breaks() {
    let writes: Arc<Mutex<u64>> = Arc::default();
    let counter = writes.clone();
    let server = Server::start(Arc::new(move |_, line: &str| {
        if line.starts_with('w') {
            let mut writes = counter.lock().unwrap();
            *writes += 1;
            if (*writes).is_multiple_of(50) {
                return None;
            }
        }
        Some("+\n".into())
    }));
    let offer = Offer { threads: 2, ..offer(4, 8, Until::Requests(2_000)) };
    let outcome = run_with(&updates(), &offer, &server.servers());
    let counts = outcome.recorder.whole().counts().clone();
    assert_eq!((outcome.failure, counts.total()), (None, 2_000));
    assert!((20..=400).contains(&counts.error), "{counts:?}");
    assert_eq!(counts.errors_by_class.get(&ErrorClass::Closed), Some(&counts.error), "{counts:?}");
}

/// A write and a read of the same key, one after the other.
fn pairs() -> Work {
    let operations = vec![operation("write"), operation("read")];
    Work { operations, mix: Mix::new(&[1.0, 1.0]).unwrap(), follows: true, ..work() }
}

#[test]
fn a_chained_operation_follows_on_the_same_key_after_a_success() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let lines = asked.clone();
    let server = Server::start(Arc::new(move |_, line: &str| {
        let mut lines = lines.lock().unwrap();
        lines.push(line.to_string());
        let writes = lines.iter().filter(|l| l.starts_with('w')).count();
        let refused = line.starts_with('w') && writes % 4 == 0;
        Some(if refused { "-NO\n" } else { "+\n" }.to_string())
    }));
    let outcome = run_with(&pairs(), &offer(1, 1, Until::Requests(400)), &server.servers());
    assert_eq!(outcome.failure, None);
    let [writes, reads] = outcome.recorder.rows() else { panic!("two operations") };
    assert_eq!((writes.counts().ok, writes.counts().error), (300, 100));
    assert_eq!((reads.counts().ok, reads.counts().total()), (300, 300));
    let asked = asked.lock().unwrap();
    let pairs = asked.windows(2).filter(|p| p[0].starts_with('w') && p[1].starts_with('r'));
    assert_eq!(pairs.filter(|p| p[0][1..] == p[1][1..]).count(), 300);
    assert_eq!(asked.len(), 700);
}

#[test]
fn the_lag_of_a_pair_counts_for_both_requests() {
    let server = Server::start(Arc::new(|_, _| {
        thread::sleep(Duration::from_millis(2));
        Some("+\n".into())
    }));
    // One client needs 4 ms per pair, but 500 pairs are due per second.
    let stage = Stage { rate_from_per_s: 500.0, rate_to_per_s: 500.0, length_ns: S / 5 };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let offer = Offer { pacing, timeout_ns: 60 * S, ..offer(1, 1, Until::AfterNs(S / 5)) };
    let outcome = run_with(&pairs(), &offer, &server.servers());
    let [writes, reads] = outcome.recorder.rows() else { panic!("two operations") };
    assert_eq!((writes.counts().ok, reads.counts().ok), (100, 100));
    for row in [writes, reads] {
        let (lag, service, response) = (row.lag().unwrap(), row.service(), row.response());
        // The last pair is due at 198 ms and has to wait for the 99 pairs of 4 ms before it.
        assert!(lag.max_ns() > 150_000_000, "{}", lag.max_ns());
        assert!(response.max_ns() >= lag.max_ns() && service.quantile_ns(0.0) >= 2_000_000);
    }
    let (of_writes, of_reads) = (writes.lag().unwrap().mean_ns(), reads.lag().unwrap().mean_ns());
    assert!((of_writes / of_reads - 1.0).abs() < 0.01, "{of_writes} and {of_reads}");
}

#[test]
fn requests_of_a_pair_that_were_sent_fail_with_their_connection() {
    let server = Server::start(Arc::new(|n, line: &str| {
        let breaks = line.starts_with('r') && n % 50 == 1;
        (!breaks).then(|| "+\n".to_string())
    }));
    let offer = Offer { threads: 2, ..offer(4, 1, Until::Requests(1_000)) };
    let outcome = run_with(&pairs(), &offer, &server.servers());
    assert_eq!(outcome.failure, None);
    let [writes, reads] = outcome.recorder.rows() else { panic!("two operations") };
    assert_eq!((writes.counts().ok, reads.counts().total()), (1_000, 1_000));
    assert!(reads.counts().error > 0, "{:?}", reads.counts());
}

/// The inserted keys, and how often each key was read.
type Known = (BTreeSet<String>, BTreeMap<String, u64>);

#[test]
fn keys_are_read_only_after_their_insert_was_answered() {
    const KEYS: u64 = 50;
    let inserted: Arc<Mutex<Known>> = Arc::default();
    let known = inserted.clone();
    let server = Server::start(Arc::new(move |_, line: &str| {
        let mut known = known.lock().unwrap();
        let key = line[2..].to_string();
        if line.starts_with('i') {
            assert!(known.0.insert(key), "{line} inserted twice");
            return Some("+\n".into());
        }
        let filled = key["key:".len()..].parse::<u64>().unwrap() < KEYS;
        let there = filled || known.0.contains(&key);
        *known.1.entry(key).or_default() += 1;
        Some(if there { "+\n" } else { "?\n" }.to_string())
    }));
    let work = Work {
        operations: vec![operation("read"), operation("insert")],
        mix: Mix::new(&[1.0, 0.0]).unwrap(),
        keys: KeyChoice::new(Distribution::Latest { exponent: 0.99 }, KEYS).unwrap(),
        inserting: Some(Inserting { operation: 1, which: Inserts::new(0.1) }),
        ..work()
    };
    let offer = Offer { threads: 3, ..offer(9, 4, Until::Requests(9_000)) };
    let outcome = run_with(&work, &offer, &server.servers());
    assert_eq!(outcome.failure, None);
    let rows = outcome.recorder.rows();
    let (reads, inserts) = (rows[0].counts(), rows[1].counts());
    assert_eq!((reads.total(), reads.miss, inserts.total()), (8_100, 0, 900), "{reads:?}");
    let known = inserted.lock().unwrap();
    let numbers = known.0.iter().map(|key| key["key:".len()..].parse::<u64>().unwrap());
    assert!(numbers.eq(KEYS..KEYS + 900));
    let fresh: u64 = known.0.iter().filter_map(|key| known.1.get(key)).sum();
    assert!(fresh > 7_000, "{fresh} of 8100 reads were of inserted keys");
}
