//! Open loads whose rate changes, and closed ones whose clients do.

use cachedyno_load as load;
use load::wire::pacer::{Arrivals, Stage};
use load::wire::{Offer, Pacing, Until};
use model::ClientStage;

use super::engine::{S, Server, offer, run_with, work};

#[test]
fn each_stage_has_what_was_due_in_it() {
    let stage = |from: f64, to: f64, length_ns| Stage {
        rate_from_per_s: from,
        rate_to_per_s: to,
        length_ns,
    };
    let stages = vec![
        stage(200.0, 200.0, S / 5),
        stage(200.0, 200.0, S / 2),
        stage(200.0, 1_000.0, S / 2),
        stage(1_000.0, 0.0, S / 2),
    ];
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages };
    let until = Until::AfterNs(3 * S / 2);
    let offer = Offer { pacing, warmup_ns: S / 5, threads: 2, ..offer(8, 4, until) };
    let outcome = run_with(&work(), &offer, &Server::good().servers());
    assert_eq!((&outcome.failure, outcome.unsent), (&None, 0));
    let results = outcome.recorder.results("ask", &["ask"], 1.5);
    let names: Vec<&str> = results.iter().map(|r| r.operation.as_str()).collect();
    assert_eq!(names, ["stage-1", "stage-2", "stage-3", "ask"]);
    let counts: Vec<u64> = results.iter().map(|r| r.counts.ok).collect();
    // One more or less by rounding; what was due just before the first may be answered in it.
    for (count, expected) in counts.iter().zip([100, 300, 250, 650]) {
        assert!(count.abs_diff(expected) <= 8, "{counts:?}");
    }
    assert_eq!(counts[..3].iter().sum::<u64>(), counts[3]);
    assert!((results[1].rate_per_s - 600.0).abs() < 10.0, "{}", results[1].rate_per_s);
    assert_eq!(results[1].response.count(), counts[1]);
}

#[test]
fn a_single_stage_is_the_whole() {
    let stage = Stage { rate_from_per_s: 0.0, rate_to_per_s: 1_000.0, length_ns: S / 2 };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let offer = Offer { pacing, ..offer(2, 4, Until::AfterNs(S / 2)) };
    let outcome = run_with(&work(), &offer, &Server::good().servers());
    let results = outcome.recorder.results("ask", &["ask"], 0.5);
    assert_eq!(results.len(), 1);
    assert!(results[0].counts.ok.abs_diff(250) <= 1, "{:?}", results[0].counts);
}

#[test]
fn clients_come_and_go() {
    let stage =
        |from_clients, to_clients, length_ns| ClientStage { length_ns, from_clients, to_clients };
    let stages =
        vec![stage(2, 2, S / 5), stage(2, 2, S / 2), stage(2, 10, S / 2), stage(0, 0, S / 4)];
    let pacing = Pacing::Closed { think_ns: S / 200, stages };
    let until = Until::AfterNs(5 * S / 4);
    let offer = Offer { pacing, warmup_ns: S / 5, threads: 2, ..offer(10, 3, until) };
    let outcome = run_with(&work(), &offer, &Server::good().servers());
    assert_eq!(outcome.failure, None);
    let results = outcome.recorder.results("ask", &["ask"], 1.25);
    let names: Vec<&str> = results.iter().map(|r| r.operation.as_str()).collect();
    assert_eq!(names, ["stage-1", "stage-2", "stage-3", "ask"]);
    let counts: Vec<u64> = results.iter().map(|r| r.counts.ok).collect();
    // Three requests each 5 ms and what the reply takes: 2 clients for 0.5 s, then 6 on average.
    for (count, most) in counts.iter().zip([600, 1_800]) {
        assert!((most / 4..=most + 30).contains(count), "{counts:?}");
    }
    assert!(counts[1] > counts[0] && counts[2] <= 30, "{counts:?}");
    assert_eq!(counts[..3].iter().sum::<u64>(), counts[3]);
    // In a closed load a request is intended when it is sent.
    assert!(results.iter().all(|r| r.lag.count() == 0));
}
