use super::*;
use crate::Counts;
use stats::Histogram;

const S: u64 = 1_000_000_000;

fn operation(name: &str, times_ns: &[u64], seconds: f64) -> OperationResult {
    let mut service = Histogram::default();
    for ns in times_ns {
        service.record(*ns);
    }
    OperationResult {
        operation: name.into(),
        counts: Counts { ok: times_ns.len() as u64, ..Counts::default() },
        rate_per_s: times_ns.len() as f64 / seconds,
        calls_rate_per_s: None,
        response: service.clone(),
        lag: Histogram::default(),
        lock_wait: Histogram::default(),
        service,
        slowest: Some(Slowest {
            interval_ns: S / 10,
            service: times_ns.to_vec(),
            response: Vec::new(),
        }),
    }
}

fn point(operations: Vec<OperationResult>, length_ns: u64) -> Point {
    Point { phase: "mixed".into(), length_ns, operations, clients: 2, ..Point::default() }
}

#[test]
fn contributions_equal_one_histogram() {
    let draw = |worker: u64, i: u64| 1_000 + (worker * 7_919 + i * 104_729) % 5_000_000;
    let times: Vec<Vec<u64>> =
        (0..3).map(|worker| (0..5_000).map(|i| draw(worker, i)).collect()).collect();
    let mut merged = point(vec![operation("get", &times[0], 2.0)], 2 * S);
    for times in &times[1..] {
        merged.contribute(&point(vec![operation("get", times, 2.0)], 2 * S));
    }
    let whole = operation("get", &times.concat(), 2.0);
    let get = &merged.operations[0];
    assert_eq!((&get.service, &get.response), (&whole.service, &whole.response));
    assert_eq!(
        serde_json::to_string(&get.service).unwrap(),
        serde_json::to_string(&whole.service).unwrap()
    );
    assert_eq!((get.counts.ok, merged.clients), (15_000, 6));
    assert!((get.rate_per_s - 7_500.0).abs() < 1e-6, "{}", get.rate_per_s);
}

#[test]
fn a_rate_counts_over_the_longest_span() {
    let mut merged = point(vec![operation("get", &[1; 100], 1.0)], S);
    merged.contribute(&point(vec![operation("get", &[1; 300], 2.0)], 2 * S));
    assert!((merged.operations[0].rate_per_s - 200.0).abs() < 1e-9);
    assert_eq!(merged.length_ns, 2 * S);
}

#[test]
fn an_operation_of_one_contributor_comes_before_the_total() {
    let total = |n: usize| operation("mixed", &vec![5; n], 1.0);
    let mut merged = point(vec![operation("get", &[5; 2], 1.0), total(2)], S);
    merged.contribute(&point(vec![operation("set", &[5; 3], 1.0), total(3)], S));
    let names: Vec<&str> = merged.operations.iter().map(|o| &*o.operation).collect();
    assert_eq!(names, ["get", "set", "mixed"]);
    assert_eq!(merged.whole().unwrap().counts.ok, 5);
}

#[test]
fn the_slowest_of_all_contributors_remains() {
    let mut merged = point(vec![operation("get", &[1, 9, 3], 1.0)], S);
    merged.contribute(&point(vec![operation("get", &[4, 2, 1, u64::MAX], 1.0)], S));
    assert_eq!(merged.operations[0].slowest.as_ref().unwrap().service, [4, 9, 3, u64::MAX]);
}

#[test]
fn only_silences_of_all_contributors_remain() {
    let silence = |begun_ms: u64, length_ms: u64| Silence {
        operation: "get".into(),
        begun_ns: begun_ms * 1_000_000,
        length_ns: length_ms * 1_000_000,
    };
    let own = [silence(0, 500), silence(900, 300)];
    assert_eq!(common_silences(&own, &[silence(300, 650)]), [silence(300, 200)]);
    assert_eq!(common_silences(&own, &[]), []);
}

#[test]
fn due_requests_add_up() {
    let due = |numbers: &[u64], over: &[u64]| Due {
        due_per_interval: numbers.to_vec(),
        beyond: vec![Beyond { limit_ns: 7, over_per_interval: over.to_vec() }],
        late: 1,
    };
    let mut own = due(&[1, 2], &[0, 1]);
    own.contribute(&due(&[10, 20, 30], &[3]));
    assert_eq!(own, Due { late: 2, ..due(&[11, 22, 30], &[3, 1]) });
}

#[test]
fn overlapping_outages_of_a_server_are_one() {
    let outage = |server: &str, begun_ns, length_ns| Outage {
        phase: "mixed".into(),
        server: server.into(),
        begun_ns,
        length_ns,
        taken_over_by: None,
        to_the_end: false,
    };
    let mut all = vec![outage("a", 10, 20)];
    Outage::contribute(&mut all, vec![outage("a", 25, 15), outage("b", 25, 15)]);
    Outage::contribute(&mut all, vec![outage("a", 90, 5)]);
    assert_eq!(all, [outage("a", 10, 30), outage("b", 25, 15), outage("a", 90, 5)]);
}

#[test]
fn the_rate_of_clients_that_restored_follows_from_the_times_of_all() {
    let part = |restored: Vec<Restored>, times: &[u64], own_share| {
        let whole = operation("mixed", times, 1.0);
        let read = operation("read", &times[..times.len() / 2], 1.0);
        Point { own_share, restored, ..point(vec![read, whole], S) }
    };
    let client = |answered, free_ns| Restored { answered, free_ns, restoring_ns: S - free_ns };
    let mut merged = part(vec![client(4, S / 10), client(2, S / 10)], &[1; 6], 0.2);
    merged.contribute(&part(vec![client(10, S / 2), client(8, S / 2)], &[1; 18], 0.4));
    // Four clients, 24 operations in 1.2 s.
    let rates: Vec<f64> = merged.operations.iter().map(|o| o.rate_per_s.round()).collect();
    assert_eq!((merged.restored.len(), rates), (4, vec![40.0, 80.0]));
    assert!((merged.own_share - 0.3).abs() < 1e-9);
}
