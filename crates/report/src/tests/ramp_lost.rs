//! Ramps beside others that take CPUs: what that delays is no time of the store.

use model::{DisturbedStage, StageResult, Trial};
use stats::Histogram;

use super::ramp::{found, ramp_of, ramped};
use crate::judge;
use crate::view::{Validity, View};

const PAUSE_NS: u64 = 8_000_000;

/// Delays one request in twenty of each operation by a pause, which is known to be others' doing
/// where `is_known`.
fn delay(stage: &mut StageResult, is_known: bool) {
    let mut operations = Vec::new();
    for own in &mut stage.operations {
        let (mut slow, n) = (Histogram::new(), own.response.count() / 20);
        slow.record_many(PAUSE_NS, n);
        own.response.merge(&slow);
        own.service.merge(&slow);
        let mut part = own.clone();
        (part.response, part.service) = (slow.clone(), slow);
        operations.push(part);
    }
    let lost =
        DisturbedStage { times: 3, generator_ns: 2_000_000, server_ns: 6_000_000, operations };
    stage.disturbed = is_known.then_some(lost);
}

fn notes(view: &View) -> String {
    view.footnotes.join("\n")
}

fn p99_at_half(view: &View) -> f64 {
    found(view, "redis").at[1].metrics["ns_p99"].center
}

#[test]
fn what_others_delay_is_no_time_of_the_store() {
    let delayed = |is_known: bool| {
        let with = move |trial: &mut Trial| {
            ramp_of(trial).stages.iter_mut().for_each(|stage| delay(stage, is_known));
        };
        judge(&ramped(3, with))
    };
    let (quiet, known, unknown) = (judge(&ramped(3, |_| ())), delayed(true), delayed(false));
    assert!((p99_at_half(&known) / p99_at_half(&quiet) - 1.0).abs() < 0.01);
    assert!(p99_at_half(&unknown) > 7e6, "{}", p99_at_half(&unknown));
    let stage = &found(&known, "redis").stages[4];
    let share = stage.metrics["left_out_share"].center;
    assert!((share - 1.0 / 21.0).abs() < 1e-3, "{share}");
    let set = stage.time("set", "p99").unwrap().center;
    assert!(set < 1e6, "{set}");
    let told = "others took the CPU of the generator for 0.25 % of the time and that of the server \
        for 0.75 %: what that delayed, 4.7";
    assert!(notes(&known).contains(told), "{}", notes(&known));
    assert_eq!(known.validity, Validity::Valid, "{:?}", known.reasons);
    assert!(!notes(&unknown).contains("others took"), "{}", notes(&unknown));
}

#[test]
fn a_single_kind_of_request_may_have_been_delayed() {
    let only_gets = |trial: &mut Trial| {
        for stage in &mut ramp_of(trial).stages {
            delay(stage, true);
            let gets = |lost: &mut DisturbedStage| lost.operations.drain(..).nth(1);
            let gets = stage.disturbed.as_mut().and_then(gets);
            stage.disturbed.as_mut().unwrap().operations.extend(gets);
        }
    };
    let view = judge(&ramped(3, only_gets));
    let stage = &found(&view, "redis").stages[4];
    assert!(stage.time("get", "p99").unwrap().center < 1e6);
    assert!(stage.time("set", "p99").unwrap().center > 7e6);
}

#[test]
fn a_stage_may_miss_what_was_due_while_it_had_no_cpu() {
    let stumble = |server_ns: u64, answered: f64| {
        let with = move |trial: &mut Trial| {
            let stage = &mut ramp_of(trial).stages[5];
            delay(stage, true);
            stage.disturbed.as_mut().unwrap().server_ns = server_ns;
            stage.operations.last_mut().unwrap().rate_per_s *= answered;
        };
        found(&judge(&ramped(3, with)), "redis").stages[5].held
    };
    assert_eq!((stumble(32_000_000, 0.96), stumble(8_000_000, 0.96)), (3, 0), "of 0.8 s");
    assert_eq!(stumble(160_000_000, 0.85), 0, "a twentieth at most");
}

#[test]
fn with_too_much_taken_a_ramp_is_not_steady() {
    let starved = |trial: &mut Trial| {
        for stage in &mut ramp_of(trial).stages {
            delay(stage, true);
            stage.disturbed.as_mut().unwrap().server_ns = stage.length_ns / 15;
        }
    };
    let view = judge(&ramped(3, starved));
    assert_eq!(view.validity, Validity::NotSteady);
    let told = view.reasons.iter().find(|reason| reason.contains("others took the CPU")).unwrap();
    assert!(told.starts_with("`redis/open/64`: ") && told.ends_with("quieter machine"), "{told}");
}

#[test]
fn where_most_was_delayed_nothing_is_left_out() {
    let mostly = |trial: &mut Trial| {
        for stage in &mut ramp_of(trial).stages {
            delay(stage, true);
            let all = stage.operations.clone();
            stage.disturbed.as_mut().unwrap().operations = all;
        }
    };
    let view = judge(&ramped(3, mostly));
    assert!(p99_at_half(&view) > 7e6);
    assert!(!notes(&view).contains("is left out"), "{}", notes(&view));
}
