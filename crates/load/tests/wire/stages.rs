//! Open loads with a changing rate, and closed loads with a changing number of clients.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use cachedyno_load as load;
use load::wire::pacer::{Arrivals, Stage};
use load::wire::{Offer, Pacing, ThinkTime, Until};
use load::{Meter, Reading};
use model::Point;

use super::engine::{Lines, S, Server, offer, run_with, work};

fn constant(per_s: f64, length_ns: u64) -> Stage {
    Stage { rate_from_per_s: per_s, rate_to_per_s: per_s, length_ns }
}

/// Successful operations in a stage, including its warm-up.
fn in_all(point: &Point) -> u64 {
    point.whole().map_or(0, |whole| whole.counts.ok) + point.warmup.ok
}

#[test]
fn each_stage_counts_the_requests_due_in_it() {
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
    let all = outcome.recorder.whole().counts().ok;
    let points = outcome.into_phase("ask", &["ask"]).points;
    let counts: Vec<u64> = points.iter().map(in_all).collect();
    // Rounding may shift one request; those due just before the first stage may be answered in it.
    for (count, expected) in counts.iter().zip([100, 300, 250]) {
        assert!(count.abs_diff(expected) <= 8, "{counts:?}");
    }
    assert_eq!(counts.iter().sum::<u64>(), all, "{counts:?}");
    assert!((points[1].planned_per_s.unwrap() - 680.0).abs() < 1e-6, "in its settled part");
    let settled = &points[1].operations[0];
    assert!((settled.rate_per_s - 680.0).abs() < 50.0, "{}", settled.rate_per_s);
    assert_eq!(settled.response.count(), settled.counts.ok);
}

#[test]
fn a_single_stage_is_reported_as_one_point() {
    let stage = Stage { rate_from_per_s: 0.0, rate_to_per_s: 1_000.0, length_ns: S / 2 };
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages: vec![stage] };
    let offer = Offer { pacing, ..offer(2, 4, Until::AfterNs(S / 2)) };
    let outcome = run_with(&work(), &offer, &Server::good().servers());
    let points = outcome.into_phase("ask", &["ask"]).points;
    assert_eq!((points.len(), points[0].stage), (1, None));
    assert!((points[0].planned_per_s.unwrap() - 500.0).abs() < 1e-6);
    let counts = &points[0].operations[0].counts;
    assert!(counts.ok.abs_diff(250) <= 1, "{counts:?}");
}

#[test]
fn clients_are_activated_and_retired() {
    let stage = |from, to, length_ns| model::Stage { length_ns, from, to };
    let stages =
        vec![stage(2, 2, S / 5), stage(2, 2, S / 2), stage(2, 10, S / 2), stage(0, 0, S / 4)];
    let pacing = Pacing::Closed { think: ThinkTime { ns: S / 200, is_drawn: false }, stages };
    let until = Until::AfterNs(5 * S / 4);
    let offer = Offer { pacing, warmup_ns: S / 5, threads: 2, ..offer(10, 3, until) };
    let outcome = run_with(&work(), &offer, &Server::good().servers());
    assert_eq!(outcome.failure, None);
    let all = outcome.recorder.whole().counts().ok;
    let points = outcome.into_phase("ask", &["ask"]).points;
    assert_eq!(points.iter().map(|p| p.clients).collect::<Vec<_>>(), [2, 7, 0]);
    let counts: Vec<u64> = points.iter().map(in_all).collect();
    // Each round of three requests takes 5 ms plus the reply time: 2 clients for 0.5 s, then 6 on
    // average.
    for (count, most) in counts.iter().zip([600, 1_800]) {
        assert!((most / 4..=most + 30).contains(count), "{counts:?}");
    }
    assert!(counts[1] > counts[0] && counts[2] <= 30, "{counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), all, "{counts:?}");
    // Under a closed load the intended start is the send time.
    assert!(points.iter().flat_map(|p| &p.operations).all(|o| o.lag.count() == 0));
}

#[test]
fn a_stage_is_reported_without_its_settling_time() {
    let rising = Stage { rate_from_per_s: 200.0, rate_to_per_s: 1_200.0, length_ns: S / 2 };
    let stages = vec![constant(200.0, S / 5), constant(200.0, S / 2), rising];
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages };
    let offer = Offer { pacing, warmup_ns: S / 5, threads: 2, ..offer(8, 1, Until::AfterNs(S)) };
    let outcome = run_with(&work(), &offer, &Server::good().servers());
    assert_eq!(outcome.failure, None);
    let cpu_ns = outcome.generator_cpu_ns;
    let phase = outcome.into_phase("ask", &["ask"]);
    let times: Vec<_> = phase.points.iter().map(|p| (p.stage, p.begun_ns, p.length_ns)).collect();
    assert_eq!(times, [(Some(0), S / 10, 2 * S / 5), (Some(1), 3 * S / 5, 2 * S / 5)]);
    let planned: Vec<_> = phase.points.iter().map(|s| s.planned_per_s.unwrap()).collect();
    assert!((planned[0] - 200.0).abs() < 1e-6 && (planned[1] - 800.0).abs() < 1e-6, "{planned:?}");
    for stage in &phase.points {
        let [whole] = &stage.operations[..] else { panic!("{:?}", stage.operations) };
        let due = stage.planned_per_s.unwrap() * 0.4;
        assert!((whole.counts.ok as f64 - due).abs() <= 4.0, "{:?} of {due}", whole.counts);
        assert_eq!(whole.response.count(), whole.counts.ok);
        assert_eq!((stage.clients, stage.server_cpu_ns), (8, None));
    }
    assert!(phase.points[1].generator_cpu_ns <= cpu_ns);
}

#[test]
fn a_saturated_store_answers_the_requests_of_a_stage_later() {
    // One request at a time, 5 ms each: at most 200 per second.
    let slow = Server::start(Arc::new(|_, _| {
        thread::sleep(Duration::from_millis(5));
        Some("+\n".into())
    }));
    let stages =
        vec![constant(50.0, 0), constant(50.0, S / 2), constant(600.0, S / 2), constant(50.0, S)];
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages };
    let offer = Offer { pacing, timeout_ns: 60 * S, ..offer(1, 1, Until::AfterNs(2 * S)) };
    let outcome = run_with(&work(), &offer, &slow.servers());
    assert_eq!((&outcome.failure, outcome.unsent), (&None, 0));
    let phase = outcome.into_phase("ask", &["ask"]);
    let over = &phase.points[1].operations[0];
    assert!(over.counts.ok.abs_diff(240) <= 2, "all due requests count: {:?}", over.counts);
    assert!(over.rate_per_s <= 205.0, "but fewer were answered in it: {}", over.rate_per_s);
    assert!(over.response.quantile_ns(0.5) > over.service.quantile_ns(0.5));
    // The next stage works off the backlog.
    let after = &phase.points[2].operations[0];
    assert!(after.rate_per_s > after.counts.ok as f64 / 0.8 + 10.0, "{}", after.rate_per_s);
}

#[test]
fn unsent_requests_count_in_the_stage_they_were_due_in() {
    // The server answers twenty requests per second, but two hundred are due.
    let slow = Server::start(Arc::new(|_, _| {
        thread::sleep(Duration::from_millis(50));
        Some("+\n".into())
    }));
    let stages = vec![constant(200.0, 0), constant(200.0, S / 2), constant(200.0, S / 2)];
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages };
    let offer = Offer { pacing, timeout_ns: S / 5, ..offer(1, 1, Until::AfterNs(S)) };
    let outcome = run_with(&work(), &offer, &slow.servers());
    let unsent = outcome.unsent;
    let phase = outcome.into_phase("ask", &["ask"]);
    // Eighty requests are due in the settled part of each stage, and those of a stage wait for the
    // backlog of the previous ones.
    let counted = |point: &Point| point.unsent + point.whole().map_or(0, |ask| ask.counts.total());
    assert!(phase.points.iter().all(|stage| counted(stage).abs_diff(80) <= 1), "{phase:?}");
    assert!(phase.points[1].unsent >= 79, "{phase:?}");
    let in_stages: u64 = phase.points.iter().map(|stage| stage.unsent).sum();
    assert!(in_stages < unsent && unsent < 200, "{in_stages} of {unsent}");
}

#[test]
fn a_failed_load_still_reports_its_complete_stages() {
    let server = Server::start(Arc::new(|n, _| {
        Some(if n < 60 { "+\n" } else { "-DEAD of a test\n" }.into())
    }));
    let stages = vec![constant(100.0, 0), constant(100.0, S / 2), constant(100.0, S / 2)];
    let pacing = Pacing::Open { arrivals: Arrivals::Constant, stages };
    let offer = Offer { pacing, stop_on_error_reply: true, ..offer(4, 1, Until::AfterNs(S)) };
    let outcome = run_with(&work(), &offer, &server.servers());
    assert!(outcome.failure.as_ref().unwrap().message.contains("DEAD of a test"));
    let phase = outcome.into_phase("ask", &["ask"]);
    assert_eq!(phase.points.iter().map(|p| p.stage).collect::<Vec<_>>(), [Some(0)]);
    assert_eq!(phase.points[0].operations[0].counts.ok, 40);
}

/// Increases by a fixed amount with each reading.
struct Steps(u64);

impl Meter for Steps {
    fn read(&mut self) -> Reading {
        self.0 += 1_000_000;
        Reading { server_cpu_ns: Some(self.0), ..Reading::default() }
    }
}

#[test]
fn the_clients_of_a_closed_load_are_reported_by_stage() {
    let stage = model::Stage::level;
    let stages = vec![stage(2, 0), stage(2, S / 4), stage(6, S / 4)];
    let think = ThinkTime { ns: S / 250, is_drawn: true };
    let pacing = Pacing::Closed { think, stages };
    let offer = Offer { pacing, threads: 2, ..offer(6, 1, Until::AfterNs(S / 2)) };
    let (stop, mut meter) = (AtomicBool::new(false), Steps(0));
    let servers = Server::good();
    let outcome = load::wire::run::<Lines>(
        &offer,
        &work(),
        &servers.servers(),
        &stop,
        &mut meter,
        &mut |_| {},
    );
    assert_eq!(outcome.failure, None);
    let phase = outcome.into_phase("ask", &["ask"]);
    assert_eq!(phase.points.iter().map(|s| s.clients).collect::<Vec<_>>(), [2, 6]);
    for stage in &phase.points {
        let whole = &stage.operations[0];
        assert!(whole.counts.ok > 0 && stage.planned_per_s.is_none(), "{stage:?}");
        let answered = whole.rate_per_s * stage.length_ns as f64 / 1e9;
        assert!((answered - whole.counts.ok as f64).abs() < 0.01, "{answered}");
        // One step between two readings, scaled to the stage by their lateness.
        assert!(stage.server_cpu_ns.unwrap() > 0);
    }
}

#[test]
fn random_think_times_precede_the_first_request_too() {
    let asked = |is_drawn| {
        let pacing =
            Pacing::Closed { think: ThinkTime { ns: 1_000 * S, is_drawn }, stages: Vec::new() };
        let offer = Offer { pacing, ..offer(20, 1, Until::AfterNs(S / 10)) };
        let outcome = run_with(&work(), &offer, &Server::good().servers());
        outcome.recorder.whole().counts().ok
    };
    assert_eq!((asked(false), asked(true)), (20, 0));
}
