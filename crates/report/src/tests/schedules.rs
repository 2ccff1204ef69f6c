//! Violations of each rule under each kind of load it applies to: steady, ladder and search.

use model::{
    Counts, ErrorClass, Failure, Load, NullRate, Outage, Point, ReadBack, TargetState, Trial,
};

use super::ramp::ramped;
use super::search::{STORE, searched};
use super::validity::{as_kv, kv_run, open};
use crate::fixture::{run, usual};
use crate::recorded::Recorded;
use crate::view::{Validity, View};
use crate::{judge, text};

/// A VALID run of each kind of load, with each trial changed by `with`.
fn each(with: &dyn Fn(&mut Trial)) -> [(&'static str, Recorded); 3] {
    let mut steady = kv_run();
    steady.trials.iter_mut().for_each(with);
    let mut search = searched(STORE, |_| {});
    search.trials.iter_mut().for_each(with);
    [("steady", steady), ("ladder", ramped(3, with)), ("search", search)]
}

/// Asserts that the rule is violated under each kind of load, with a reason that contains `words`.
fn broken(with: impl Fn(&mut Trial), validity: Validity, words: &str) {
    for (schedule, recorded) in each(&with) {
        assert_reason(schedule, &judge(&recorded), validity, words);
    }
}

fn assert_reason(schedule: &str, view: &View, validity: Validity, words: &str) {
    let found = view.reasons.iter().any(|reason| reason.contains(words));
    assert!(found, "{schedule}: no `{words}` in {:?}", view.reasons);
    assert_eq!(view.validity, validity, "{schedule}: {:?}", view.reasons);
}

/// Asserts that the rule is violated under these kinds of load and no others.
fn broken_only(under: &[&str], with: impl Fn(&mut Trial), (validity, words): (Validity, &str)) {
    for (schedule, recorded) in each(&with) {
        let view = judge(&recorded);
        if under.contains(&schedule) {
            assert_reason(schedule, &view, validity, words);
        } else {
            let found = view.reasons.iter().any(|reason| reason.contains(words));
            assert!(!found, "{schedule}: {:?}", view.reasons);
        }
    }
}

/// Changes the counts of every operation of a point, including the total.
fn counts(point: &mut Point, change: impl Fn(&mut Counts)) {
    point.operations.iter_mut().for_each(|operation| change(&mut operation.counts));
}

#[test]
fn without_a_fault_each_is_valid() {
    for (schedule, recorded) in each(&|_| {}) {
        let view = judge(&recorded);
        assert_eq!(view.validity, Validity::Valid, "{schedule}: {:?}", view.reasons);
    }
}

#[test]
fn wrong_values() {
    let in_one_point = |trial: &mut Trial| {
        counts(trial.points.last_mut().unwrap(), |counts| counts.wrong = 1);
    };
    broken(in_one_point, Validity::Invalid, "wrong value");
    let in_the_warmup = |trial: &mut Trial| trial.points.last_mut().unwrap().warmup.wrong = 1;
    broken(in_the_warmup, Validity::Invalid, "warm-up: ");
}

#[test]
fn misses() {
    let missing = |trial: &mut Trial| {
        for point in &mut trial.points {
            counts(point, |counts| counts.miss = counts.ok / 100);
        }
    };
    broken(missing, Validity::Invalid, "that should exist were not found");
}

#[test]
fn lost_writes() {
    let lost = |trial: &mut Trial| {
        trial.read_back = Some(ReadBack { read: 1_000, older: 1, ..ReadBack::default() });
    };
    broken(lost, Validity::Invalid, "lost acknowledged writes");
}

#[test]
fn outages() {
    let outage = |trial: &mut Trial| {
        trial.outages.push(Outage {
            phase: trial.points[0].phase.clone(),
            server: "127.0.0.1:7003".into(),
            begun_ns: 300_000_000,
            length_ns: 231_000_000,
            taken_over_by: None,
            to_the_end: false,
        });
    };
    broken(outage, Validity::NotSteady, "was unavailable for 231 ms");
}

#[test]
fn disturbance() {
    let disturbed = |trial: &mut Trial| {
        for point in &mut trial.points {
            point.disturbance.generator_ns = point.length_ns / 10;
        }
    };
    broken(disturbed, Validity::NotSteady, "used the CPUs of generator or server");
}

/// A null rate about a third above the rate the stores sustain, and then below it.
#[test]
fn the_null_server() {
    let idle = |trial: &mut Trial| {
        for point in &mut trial.points {
            point.server_cpu_ns = Some(point.length_ns / 2);
        }
    };
    for (factor, validity, words) in [
        (1.3, Validity::Invalid, "on a null server"),
        (0.5, Validity::NotSteady, "its measurement was disturbed"),
    ] {
        for (schedule, mut recorded) in each(&idle) {
            let rate_per_s = factor * if schedule == "steady" { 10_000.0 } else { 100_000.0 };
            let plan = &recorded.header.plan;
            let of = |cell: &model::Cell| {
                let phases = cell.workload.phases().iter();
                let rate = |phase: &model::Phase| NullRate {
                    cell: cell.id.clone(),
                    phase: phase.name.clone(),
                    rate_per_s: Some(rate_per_s),
                    not_checked: None,
                    server_cpus: 1,
                };
                phases.map(rate).collect::<Vec<_>>()
            };
            recorded.header.null_rates = plan.cells.iter().flat_map(of).collect();
            let view = judge(&recorded);
            if validity == Validity::Invalid && schedule == "ladder" {
                // The sentence gives a lower bound.
                assert_eq!(
                    view.ramps[0].outcome.name(),
                    "generator",
                    "{:?}",
                    view.ramps[0].sentence
                );
                assert!(view.ramps[0].sentence.contains(words), "{}", view.ramps[0].sentence);
                continue;
            }
            assert_reason(schedule, &view, validity, words);
        }
    }
}

/// Above the knee and beyond the limits of a search, failures are a result.
#[test]
fn failures_at_points_that_must_hold() {
    let failing = |trial: &mut Trial| {
        let point = trial.points.last_mut().unwrap();
        counts(point, |counts| {
            (0..50).for_each(|_| counts.fail(ErrorClass::Timeout, "no answer"));
        });
    };
    broken_only(&["steady"], failing, (Validity::Invalid, "operations failed"));
}

/// Unanswered requests of a stage or a probe at a rate count as failed there; a peak has no planned
/// rate to compare with.
#[test]
fn shortened_points() {
    let found = (Validity::Invalid, "nothing was answered in the last");
    let shortened = |point: &mut Point| point.length_ns /= 2;
    let is_at_rate = |point: &Point| match point.probe {
        Some(step) => step.rate_per_s > 0,
        None => point.stage.is_some(),
    };
    let paced = |trial: &mut Trial| {
        trial.points.iter_mut().filter(|p| is_at_rate(p)).for_each(shortened);
    };
    broken_only(&[], paced, found);
    let others = |trial: &mut Trial| {
        trial.points.iter_mut().filter(|p| !is_at_rate(p)).for_each(shortened);
    };
    broken_only(&["steady", "ladder", "search"], others, found);
}

#[test]
fn the_generators_own_work() {
    let own = |trial: &mut Trial| trial.points.iter_mut().for_each(|point| point.own_share = 0.3);
    broken(own, Validity::Invalid, "of their time on the generator's own work");
}

/// A stage or probe above the capacity locates the limit.
#[test]
fn a_planned_rate_that_is_too_high() {
    let of = |with: &dyn Fn(&mut Point)| {
        let mut recorded = kv_run();
        as_kv(&mut recorded, &open(), 1.0);
        for trial in &mut recorded.trials {
            trial.points.iter_mut().for_each(with);
        }
        judge(&recorded)
    };
    let slower = |factor: f64| {
        move |point: &mut Point| {
            let seconds = point.length_ns as f64 / 1e9;
            for operation in &mut point.operations {
                let answered = operation.counts.total() - operation.counts.error;
                operation.rate_per_s = answered as f64 / seconds * factor;
            }
        }
    };
    let words = "to answer, so response times only reflect";
    assert_reason("steady", &of(&slower(0.9)), Validity::NotSteady, words);
    let view = of(&slower(0.97));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    let behind = |trial: &mut Trial| trial.points.iter_mut().for_each(slower(0.5));
    broken_only(&[], behind, (Validity::NotSteady, words));
}

/// In a stage or a probe they count as failed.
#[test]
fn unsent_requests() {
    let unsent = |trial: &mut Trial| trial.points.iter_mut().for_each(|point| point.unsent = 3);
    broken_only(
        &["steady"],
        unsent,
        (Validity::Invalid, "requests were due and could not be sent"),
    );
}

/// A search or ladder then gives a lower bound.
#[test]
fn busy_threads() {
    let busy = |trial: &mut Trial| {
        for point in &mut trial.points {
            point.generator_cpu_ns = point.length_ns;
            point.server_cpu_ns = Some(point.length_ns / 2);
        }
    };
    broken_only(&["steady"], busy, (Validity::Invalid, "generator-bound, its threads used"));
}

/// Under a closed load, clients are allowed to wait for a CPU.
#[test]
fn a_generator_that_waits_for_a_cpu() {
    let waits = |trial: &mut Trial| {
        for point in &mut trial.points {
            point.generator_run_delay_ns = point.length_ns / 5;
        }
    };
    let found = (Validity::NotSteady, "of the time for a CPU");
    broken_only(&["ladder", "search"], waits, found);
    let mut paced = run(&["redis"], 5, |_, _, _| 10_000.0);
    as_kv(&mut paced, &open(), 1.0);
    paced.trials.iter_mut().for_each(waits);
    assert_reason("steady at a rate", &judge(&paced), found.0, found.1);
}

/// A changing store contradicts the knee of a ladder and the answer of a search.
#[test]
fn drift() {
    let falling = |trial: &mut Trial| {
        for series in &mut trial.series {
            series.done_per_interval = (0..20).map(|i| 1_000 - 20 * i).collect();
        }
    };
    broken_only(&["steady"], falling, (Validity::NotSteady, "the rate falls by"));
}

#[test]
fn named_targets() {
    for (schedule, mut recorded) in each(&|_| {}) {
        let mut named = recorded.header.plan.targets[0].clone();
        (named.name, named.named) = ("another".into(), true);
        recorded.header.plan.targets.push(named);
        let failure = Failure { class: ErrorClass::Refused, message: "nobody listens".into() };
        let target = "another".into();
        recorded.targets.push(TargetState {
            target,
            unavailable: Some(failure),
            ..TargetState::default()
        });
        let words = "cannot use target `another`";
        assert_reason(schedule, &judge(&recorded), Validity::Invalid, words);
    }
}

/// A search repeats the rates around its answer as often as requested.
#[test]
fn repetitions() {
    for (schedule, mut recorded) in each(&|_| {}) {
        if schedule != "search" {
            recorded.trials.retain(|trial| trial.block < 2);
            let words = "2 blocks, but an interval";
            assert_reason(schedule, &judge(&recorded), Validity::Unreplicated, words);
        }
    }
}

#[test]
fn cells_without_a_trial() {
    for (schedule, mut recorded) in each(&|_| {}) {
        let mut cell = recorded.header.plan.cells[0].clone();
        cell.id += "-more";
        recorded.header.plan.cells.push(cell);
        let words = "-more` was never measured";
        assert_reason(schedule, &judge(&recorded), Validity::Invalid, words);
    }
}

#[test]
fn failed_trials() {
    let failed = |trial: &mut Trial| {
        trial.failure =
            Some(Failure { class: ErrorClass::Closed, message: "the server died".into() });
    };
    for (schedule, recorded) in each(&failed) {
        let view = judge(&recorded);
        assert_eq!(view.validity, Validity::Invalid, "{schedule}: {:?}", view.reasons);
    }
}

#[test]
fn figures_of_planned_rates_are_explained_beside_those_of_others() {
    let mut recorded = run(&["redis", "memcached"], 5, usual);
    as_kv(&mut recorded, &open(), 1.0);
    for cell in recorded.header.plan.cells.iter_mut().filter(|cell| cell.id.ends_with("/1")) {
        cell.load = Load::closed(1);
    }
    let view = judge(&recorded);
    let quick = text::summary(&view, 400, false);
    let words = "operations per second; at a planned rate, p99 of response times";
    assert!(quick.contains(words), "{quick}");
    let details = text::render(&view, 140, false);
    let details = details.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "times are service times, at a planned rate response times, from when a request was due;",
        "where the plan sets the rate by mean response time: × is then that of the best divided by \
         the target's own, which no column shows",
    ] {
        assert!(details.contains(words), "{details}");
    }
}
