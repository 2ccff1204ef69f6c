//! Rules on the workers of a fleet, and what the others measured without one.

use model::{Contributor, OperationResult, Point};

use super::validity::{as_kv, kv_run, open};
use crate::fixture::{run, usual};
use crate::judge;
use crate::recorded::Recorded;
use crate::view::{Validity, View};

/// Planned rate of the open load, and of each worker.
const PLANNED_PER_S: f64 = 1_000.0;

/// Divides each point evenly between three workers, which `with` may change by their number.
fn divided(mut recorded: Recorded, with: impl Fn(usize, &mut Contributor)) -> View {
    recorded.header.plan.places.workers = 3;
    let is_open = recorded.header.plan.cells[0].load.is_planned();
    for point in recorded.trials.iter_mut().flat_map(|trial| &mut trial.points) {
        let whole = point.whole().unwrap().clone();
        let part = |number: usize| {
            let mut part = whole.clone();
            // As planned, so that a worker that is changed differs from the others only.
            part.counts.ok = (PLANNED_PER_S / 3.0) as u64;
            part.rate_per_s /= 3.0;
            let own = Point {
                phase: point.phase.clone(),
                length_ns: point.length_ns,
                planned_per_s: is_open.then_some(PLANNED_PER_S / 3.0),
                clients: 3,
                operations: vec![OperationResult { slowest: None, ..part }],
                generator_cpu_ns: point.length_ns / 10,
                ..Point::default()
            };
            let name = format!("worker {} on host", number + 1);
            let mut one = Contributor {
                name,
                start_skew_ns: 50_000,
                threads: 1,
                shares_cpus: false,
                point: own,
            };
            with(number, &mut one);
            one
        };
        point.contributors = (0..3).map(part).collect();
    }
    judge(&recorded)
}

fn closed(with: impl Fn(usize, &mut Contributor)) -> View {
    divided(kv_run(), with)
}

fn planned(with: impl Fn(usize, &mut Contributor)) -> View {
    let mut recorded = run(&["redis"], 5, usual);
    as_kv(&mut recorded, &open(), 1.0);
    divided(recorded, with)
}

/// Asserts that worker 2, and no other, is named with these words and the result without it.
#[track_caller]
fn assert_named(view: &View, validity: Validity, words: &str) {
    let about: Vec<&String> = view.reasons.iter().filter(|r| r.contains("worker ")).collect();
    assert!(about.iter().any(|r| r.contains("worker 2 on host") && r.contains(words)), "{about:?}");
    assert!(about.iter().all(|r| r.contains("(without it: ")), "{about:?}");
    assert!(!about.iter().any(|r| r.contains("worker 1 ") || r.contains("worker 3 ")), "{about:?}");
    assert_eq!(view.validity, validity, "{:?}", view.reasons);
}

fn of_second(change: impl Fn(&mut Contributor)) -> impl Fn(usize, &mut Contributor) {
    move |number, one| {
        if number == 1 {
            change(one);
        }
    }
}

#[test]
fn workers_that_do_their_parts_are_not_named() {
    for view in [closed(|_, _| {}), planned(|_, _| {})] {
        assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
        assert!(view.happened.workers.len().is_multiple_of(3) && !view.happened.workers.is_empty());
        for one in &view.happened.workers {
            let without = one.rate_per_s_without.unwrap();
            assert!((without - 2.0 * one.rate_per_s).abs() < 1e-6 * without, "{one:?}");
            assert_eq!(one.response_ns_p99_without, one.response_ns_p99, "{one:?}");
        }
    }
}

#[test]
fn a_late_start_is_invalid_above_a_tenth_of_an_interval() {
    let late = |ns| move |one: &mut Contributor| one.start_skew_ns = ns;
    let view = closed(of_second(late(10_000_001)));
    assert_named(&view, Validity::Invalid, "may have started 10.0 ms too early or too late");
    assert_eq!(closed(of_second(late(10_000_000))).validity, Validity::Valid);
}

#[test]
fn a_share_is_off_by_more_than_two_percent_and_four_deviations() {
    let answers = |share: f64| {
        move |one: &mut Contributor| {
            let counts = &mut one.point.operations[0].counts;
            counts.ok = (counts.ok as f64 * share) as u64;
        }
    };
    // Five trials of 333 planned requests: four deviations are 164 of 1,665, or 9.8 %.
    let view = planned(of_second(answers(0.8)));
    assert_named(&view, Validity::Invalid, "of what all workers answered");
    assert_eq!(planned(of_second(answers(0.95))).validity, Validity::Valid);
    // A server that does not keep up with any of them is not the fault of a worker.
    let view = planned(|_, one| answers(0.5)(one));
    assert!(!view.reasons.iter().any(|r| r.contains("worker ")), "{:?}", view.reasons);
}

#[test]
fn a_busy_worker_is_generator_bound_unless_all_are() {
    let busy = |one: &mut Contributor| one.point.generator_cpu_ns = one.point.length_ns * 95 / 100;
    assert_named(&closed(of_second(busy)), Validity::Invalid, "is generator-bound");
    let view = closed(|_, one| busy(one));
    assert!(!view.reasons.iter().any(|r| r.contains("worker ")), "{:?}", view.reasons);
    // Two threads have twice the CPU time.
    let of_two = move |one: &mut Contributor| {
        one.threads = 2;
        busy(one);
    };
    assert_eq!(closed(of_second(of_two)).validity, Validity::Valid);
}

#[test]
fn a_worker_whose_blocking_clients_do_much_else_is_generator_bound() {
    let own = |one: &mut Contributor| one.point.own_share = 0.3;
    let of = |target: &str| run(&[target], 5, usual);
    let view = divided(of("redis"), of_second(own));
    assert_named(&view, Validity::Invalid, "spent 30 % of their time on the generator's own work");
    let is_named = |view: &View| view.reasons.iter().any(|r| r.contains("worker "));
    assert!(!is_named(&divided(of("redis"), |_, one| own(one))), "as all are");
    assert!(!is_named(&divided(of("files"), of_second(own))), "without a server");
}

#[test]
fn workers_that_share_a_cpu_are_busy_while_they_wait_for_it() {
    // Half of a CPU each, and runnable all the time.
    let half = |one: &mut Contributor| {
        let half_ns = one.point.length_ns / 2;
        (one.point.generator_cpu_ns, one.point.generator_run_delay_ns) = (half_ns, half_ns);
    };
    assert_eq!(closed(of_second(half)).validity, Validity::Valid);
    let sharing = move |one: &mut Contributor| {
        one.shares_cpus = true;
        half(one);
    };
    assert_named(&closed(of_second(sharing)), Validity::Invalid, "is generator-bound");
}

#[test]
fn clients_that_are_half_as_fast_as_others_make_a_closed_load_not_steady() {
    let slower =
        |share: f64| move |one: &mut Contributor| one.point.operations[0].rate_per_s *= share;
    let view = closed(of_second(slower(0.45)));
    assert_named(&view, Validity::NotSteady, "per client and the others");
    assert_eq!(closed(of_second(slower(0.6))).validity, Validity::Valid);
}

#[test]
fn a_worker_that_waits_for_cpus_is_disturbed() {
    let taken = |one: &mut Contributor| {
        one.point.disturbance.generator_ns = one.point.length_ns / 4;
    };
    assert_named(&closed(of_second(taken)), Validity::NotSteady, "could not use its CPUs for 25 %");
    let waited = |one: &mut Contributor| {
        one.point.generator_run_delay_ns = one.point.length_ns / 5;
    };
    let view = planned(of_second(waited));
    assert_named(&view, Validity::NotSteady, "waited 20 % of the time for a CPU");
    // Clients of a closed load only send less.
    assert_eq!(closed(of_second(waited)).validity, Validity::Valid);
    let view = planned(of_second(|one| {
        one.shares_cpus = true;
        waited(one);
    }));
    assert_named(&view, Validity::NotSteady, "for a CPU that it shares with other workers");
}

/// A single stop moves p99 of its trial, and so the mean over trials.
#[test]
fn a_generator_that_is_stopped_in_one_trial_makes_a_planned_load_not_steady() {
    let of = |share: f64, is_open: bool| {
        let mut recorded = run(&["redis"], 5, usual);
        if is_open {
            as_kv(&mut recorded, &open(), 1.0);
        }
        let point = &mut recorded.trials[2].points[0];
        point.disturbance.paused_ns = (point.length_ns as f64 * share) as u64;
        recorded
    };
    let view = judge(&of(0.02, true));
    assert_eq!(view.validity, Validity::NotSteady, "{:?}", view.reasons);
    let words = "the generator was stopped, frozen or throttled for 2 % of the time in 1 of 5";
    assert!(view.reasons[0].contains(words), "{:?}", view.reasons);
    let view = judge(&of(0.009, true));
    assert_eq!(view.validity, Validity::Valid);
    let is_about = |view: &View| view.footnotes.iter().any(|note| note.contains("decide p99.9"));
    assert!(is_about(&view), "{:?}", view.footnotes);
    assert!(!is_about(&judge(&of(0.000_9, true))));
    assert_eq!(judge(&of(0.02, false)).validity, Validity::Valid, "clients wait for each answer");

    let stopped = of_second(|one| one.point.disturbance.paused_ns = one.point.length_ns / 50);
    let view = divided(of(0.02, true), stopped);
    assert!(view.reasons[0].contains("worker 2 on host was stopped"), "{:?}", view.reasons);
}

#[test]
fn a_rule_names_the_worst_worker_once_and_counts_the_others() {
    let view = closed(|number, one| {
        one.point.disturbance.generator_ns = one.point.length_ns * (number as u64 + 1) / 8;
    });
    let about: Vec<&String> = view.reasons.iter().filter(|r| r.contains("worker ")).collect();
    let [only] = about[..] else { panic!("{about:?}") };
    assert!(only.contains("worker 3 on host could not use its CPUs for 37.5 %"), "{only}");
    let others = ", and in 5 other phases as well; also worker 1 on host in 6 phases and worker 2";
    assert!(only.contains(others), "{only}");
}

#[test]
fn a_run_that_lost_a_worker_between_trials_is_not_valid() {
    let ended = |because: &str, lost: bool| {
        let mut recorded = kv_run();
        if let Some(seal) = &mut recorded.seal {
            seal.status = model::SealStatus::Interrupted;
            (seal.stopped_because, seal.lost) = (because.into(), lost);
        }
        divided(recorded, |_, _| {})
    };
    let view = ended("worker 2 on host left the fleet: the connection was closed", true);
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons[0].contains("ended early: worker 2 on host left"), "{:?}", view.reasons);
    assert_eq!(ended("interrupted", false).validity, Validity::Valid, "by the user");
}
