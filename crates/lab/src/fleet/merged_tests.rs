use super::*;
use load::wire::row::INTERVAL_NS;
use model::{Counts, Series, Slowest};
use stats::{Histogram, SplitMix64};
use std::time::Duration;

const S: u64 = 1_000_000_000;

fn operation(
    name: &str,
    random: &mut SplitMix64,
    (count, intervals): (u64, u64),
) -> OperationResult {
    let mut service = Histogram::default();
    for _ in 0..count {
        let magnitude = random.below(14);
        service.record(20_000 + random.below(1 << (10 + magnitude)));
    }
    let slowest = (0..intervals).map(|_| 100_000 + random.below(5_000_000)).collect();
    OperationResult {
        operation: name.into(),
        counts: Counts { ok: count, ..Counts::default() },
        rate_per_s: count as f64 * S as f64 / (intervals * INTERVAL_NS) as f64,
        calls_rate_per_s: None,
        response: service.clone(),
        lag: service.clone(),
        lock_wait: Histogram::default(),
        service,
        slowest: Some(Slowest {
            interval_ns: INTERVAL_NS,
            service: slowest,
            response: (0..intervals).map(|_| 100_000 + random.below(9_000_000)).collect(),
        }),
    }
}

/// What a worker sends after a load of so many operations and intervals.
fn end(random: &mut SplitMix64, count: u64, intervals: u64) -> SentEnd {
    let operations = vec![
        operation("get", random, (count, intervals)),
        operation("set", random, (count / 9, intervals)),
        operation("mixed", random, (count + count / 9, intervals)),
    ];
    let done = (0..intervals).map(|_| random.below(2_000)).collect();
    SentEnd {
        points: vec![Point {
            phase: "mixed".into(),
            length_ns: intervals * INTERVAL_NS,
            planned_per_s: Some(1_000.0),
            clients: 3,
            operations,
            generator_cpu_ns: 7,
            ..Point::default()
        }],
        series: Series {
            phase: "mixed".into(),
            interval_ns: INTERVAL_NS,
            done_per_interval: done,
            ..Series::default()
        },
        ..SentEnd::default()
    }
}

fn read_at(from: Instant, us: u64, round_trip_us: u64) -> Reading {
    let sent = from + Duration::from_micros(us);
    let middle_ns = (us + round_trip_us / 2) * 1_000;
    Reading::new(sent, sent + Duration::from_micros(round_trip_us), middle_ns)
}

#[test]
fn a_fleet_equals_one_histogram_in_every_bucket() {
    let zero = Instant::now();
    let (mut random, mut sum) = (SplitMix64::new(5), Sum::default());
    let (mut whole, mut contributions) = (Histogram::default(), Vec::new());
    for worker in 0..3 {
        let mut ended = end(&mut random, 3_000 + worker, 20);
        whole.merge(&ended.points[0].whole().unwrap().response);
        ended.late_ns = 500;
        // As it arrives.
        let text = serde_json::to_string(&ended).unwrap();
        let mut ended: SentEnd = serde_json::from_str(&text).unwrap();
        sum.take(&mut ended);
        let (before, after) = (Some(read_at(zero, 0, 40)), Some(read_at(zero, 9_000, 60)));
        contributions.push(Contribution {
            before,
            after,
            ready: true,
            ended: Some(ended),
            gone: false,
        });
    }
    let by = ["a", "b", "c"].map(|name| By { name: name.into(), threads: 2, shares_cpus: false });
    let offered = sum.complete(by.into_iter().zip(contributions), (zero, zero));
    let point = &offered.phase.points[0];
    let merged = &point.whole().unwrap().response;
    // Every bucket; the header of the stored form also has the range, which depends on the order.
    assert_eq!(merged, &whole);
    assert_eq!((point.clients, point.generator_cpu_ns), (9, 21));
    let parts = &point.contributors;
    assert_eq!(parts.iter().map(|part| &*part.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(parts.iter().all(|part| part.start_skew_ns == 30_500), "{parts:?}");
    assert!(parts.iter().all(|part| part.point.operations.len() == 1));
}

/// Highest memory of this process, bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
#[ignore = "takes some seconds and prints figures (make soak)"]
fn an_hour_of_a_thousand_workers_is_merged() {
    const WORKERS: usize = 1_000;
    let zero = Instant::now();
    let mut random = SplitMix64::new(7);
    // Some different ones, since making a thousand takes longer than merging them.
    let sent: Vec<String> = (0..10)
        .map(|_| serde_json::to_string(&end(&mut random, 200_000, 36_000)).unwrap())
        .collect();
    let bytes = sent.iter().map(String::len).sum::<usize>() / sent.len();
    let (begun, mut sum) = (Instant::now(), Sum::default());
    let mut contributions = Vec::new();
    // Like the driver, whose connections have threads of their own: they read what arrives, and one
    // thread adds it up.
    let readers = std::thread::available_parallelism().map_or(1, usize::from);
    let (arrivals, arrived) = std::sync::mpsc::sync_channel::<SentEnd>(readers);
    std::thread::scope(|scope| {
        for reader in 0..readers {
            let (arrivals, sent) = (arrivals.clone(), &sent);
            scope.spawn(move || {
                for worker in (reader..WORKERS).step_by(readers) {
                    let text = sent[worker % sent.len()].as_bytes();
                    arrivals.send(serde_json::from_slice(text).unwrap()).unwrap();
                }
            });
        }
        drop(arrivals);
        for mut ended in arrived {
            sum.take(&mut ended);
            let (before, after) = (Some(read_at(zero, 0, 40)), Some(read_at(zero, 9_000, 60)));
            contributions.push(Contribution {
                before,
                after,
                ready: true,
                ended: Some(ended),
                gone: false,
            });
        }
    });
    let by = |worker| By { name: format!("worker {worker}"), threads: 1, shares_cpus: worker > 1 };
    let offered = sum.complete((0..WORKERS).map(by).zip(contributions), (zero, zero));
    let took = begun.elapsed();
    let whole = offered.phase.points[0].whole().unwrap();
    assert_eq!(whole.service.count(), whole.counts.ok);
    assert_eq!(offered.phase.points[0].contributors.len(), WORKERS);
    let peak = peak_bytes();
    assert!(peak < 2_000_000_000, "{peak} bytes");
    println!("{WORKERS} workers of {bytes} bytes: {took:.2?}, at most {peak} bytes of memory");
}

/// The rest of a load in which a worker was lost: nothing is known of its clock afterwards.
#[test]
fn a_worker_without_a_second_reading_of_its_clock_is_no_contributor() {
    let mut random = SplitMix64::new(3);
    let mut sum = Sum::default();
    let (mut parts, zero) = (Vec::new(), Instant::now());
    for number in 0..2 {
        let mut ended = end(&mut random, 100, 10);
        sum.take(&mut ended);
        let before = Some(read_at(zero, 0, 40));
        let after = (number == 0).then(|| read_at(zero, 9_000, 60));
        let by = By { name: number.to_string(), threads: 1, shares_cpus: false };
        let contribution =
            Contribution { before, after, ready: true, ended: Some(ended), gone: number == 1 };
        parts.push((by, contribution));
    }
    let offered = sum.complete(parts.into_iter(), (zero, zero));
    let names: Vec<&str> =
        offered.phase.points[0].contributors.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["0"]);
}
