//! Each rule, broken under each schedule of a load that it can meet: steady, a ladder, a search.

use model::{Counts, ErrorClass, NullRate, Outage, Point, ReadBack, Trial};

use super::ramp::ramped;
use super::search::{STORE, searched};
use super::validity::kv_run;
use crate::judge;
use crate::recorded::Recorded;
use crate::view::{Validity, View};

/// A run of each schedule, VALID, and changed by `with` trial by trial.
fn each(with: &dyn Fn(&mut Trial)) -> [(&'static str, Recorded); 3] {
    let mut steady = kv_run();
    steady.trials.iter_mut().for_each(with);
    let mut search = searched(STORE, |_| {});
    search.trials.iter_mut().for_each(with);
    [("steady", steady), ("ladder", ramped(3, with)), ("search", search)]
}

/// The rule is broken under each schedule, and told in these words.
fn broken(with: impl Fn(&mut Trial), validity: Validity, words: &str) {
    for (schedule, recorded) in each(&with) {
        assert_told(schedule, &judge(&recorded), validity, words);
    }
}

fn assert_told(schedule: &str, view: &View, validity: Validity, words: &str) {
    let told = view.reasons.iter().any(|reason| reason.contains(words));
    assert!(told, "{schedule}: no `{words}` in {:?}", view.reasons);
    assert_eq!(view.validity, validity, "{schedule}: {:?}", view.reasons);
}

/// Changes the counts of every operation of a point, what stands for all included.
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
    let gone = |trial: &mut Trial| {
        trial.outages.push(Outage {
            phase: trial.points[0].phase.clone(),
            server: "127.0.0.1:7003".into(),
            begun_ns: 300_000_000,
            length_ns: 231_000_000,
            taken_over_by: None,
            to_the_end: false,
        });
    };
    broken(gone, Validity::NotSteady, "gave no service for 231 ms");
}

#[test]
fn disturbance() {
    let disturbed = |trial: &mut Trial| {
        for point in &mut trial.points {
            point.disturbance.generator_ns = point.length_ns / 10;
        }
    };
    broken(disturbed, Validity::NotSteady, "had the CPUs of generator or server");
}

/// About a third more than what the stores bear, and then less than that.
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
                // The least that the store bears is known, and said.
                assert_eq!(view.ramps[0].outcome, "generator", "{:?}", view.ramps[0].sentence);
                assert!(view.ramps[0].sentence.contains(words), "{}", view.ramps[0].sentence);
                continue;
            }
            assert_told(schedule, &view, validity, words);
        }
    }
}

#[test]
fn failures_where_all_must_be_served() {
    let failing = |trial: &mut Trial| {
        let point = trial.points.last_mut().unwrap();
        counts(point, |counts| {
            (0..50).for_each(|_| counts.fail(ErrorClass::Timeout, "no answer"));
        });
    };
    let [(_, steady), ladder, search] = each(&failing);
    assert_told("steady", &judge(&steady), Validity::Invalid, "operations failed");
    // Beyond its knee, or the limits of a search, failing is an answer.
    for (schedule, recorded) in [ladder, search] {
        let reasons = judge(&recorded).reasons;
        let is_told = |reason: &String| reason.contains("operations failed");
        assert!(!reasons.iter().any(is_told), "{schedule}: {reasons:?}");
    }
}

#[test]
fn failed_trials() {
    let failed = |trial: &mut Trial| {
        trial.failure =
            Some(model::Failure { class: ErrorClass::Closed, message: "the server died".into() });
    };
    for (schedule, recorded) in each(&failed) {
        let view = judge(&recorded);
        assert_eq!(view.validity, Validity::Invalid, "{schedule}: {:?}", view.reasons);
    }
}
