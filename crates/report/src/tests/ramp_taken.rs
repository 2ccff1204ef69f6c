//! Ramps with stolen CPU time: delayed requests count, and the delay is reported.

use model::{Disturbance, Point, Trial};
use stats::Histogram;

use super::ramp::{found, ramped, stages};
use crate::judge;
use crate::view::{Validity, View};

const PAUSE_NS: u64 = 8_000_000;

/// Delays one request in twenty of each operation by a pause, with this share of CPU time stolen
/// from generator and server.
fn delay(stage: &mut Point, (generator, server): (f64, f64)) {
    for own in &mut stage.operations {
        let (mut slow, n) = (Histogram::new(), own.response.count() / 20);
        slow.record_many(PAUSE_NS, n);
        own.response.merge(&slow);
        own.service.merge(&slow);
    }
    let ns = |share: f64| (stage.length_ns as f64 * share) as u64;
    stage.disturbance = Disturbance {
        generator_ns: ns(generator),
        server_ns: Some(ns(server)),
        ..Disturbance::default()
    };
}

fn delayed(taken: (f64, f64)) -> View {
    let with = move |trial: &mut Trial| {
        for stage in stages(trial) {
            delay(stage, taken);
        }
    };
    judge(&ramped(3, with))
}

fn notes(view: &View) -> String {
    view.footnotes.join("\n")
}

#[test]
fn delayed_requests_count_and_stolen_time_is_noted() {
    let (known, unknown) = (delayed((0.0025, 0.0075)), delayed((0.0, 0.0)));
    for view in [&known, &unknown] {
        let p99 = found(view, "redis").at[1].metrics["ns_p99"].center;
        assert!(p99 > 7e6, "{p99}");
        assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    }
    let share = found(&known, "redis").stages[4].metrics["taken_share"].center;
    assert!((share - 0.0075).abs() < 1e-6, "{share}");
    let expected = "other processes used the CPUs of generator or server for 0.75 % of the time up to \
        the knee, and for 0.75 % in the stage above it; all due requests count";
    assert!(notes(&known).contains(expected), "{}", notes(&known));
    assert!(!notes(&unknown).contains("other processes had"), "{}", notes(&unknown));
}

#[test]
fn too_much_stolen_time_makes_a_ramp_not_steady() {
    let view = delayed((0.0, 0.06));
    assert_eq!(view.validity, Validity::NotSteady);
    let text =
        view.reasons.iter().find(|reason| reason.contains("used the CPUs of generator")).unwrap();
    assert!(text.contains("`memcached/open/64` ramp in 3 of 3 trials"), "{text}");
    assert!(text.ends_with("quieter machine"), "{text}");
}

/// The stage above the knee determines it.
#[test]
fn a_stage_that_failed_with_stolen_cpu_time_does_not_determine_the_knee() {
    let knee = judge(&ramped(3, |_| ()));
    let held = found(&knee, "redis").stages.iter().take_while(|stage| stage.held == 3).count();
    let with = move |trial: &mut Trial| delay(&mut stages(trial)[held], (0.06, 0.0));
    let view = judge(&ramped(3, with));
    assert_eq!(view.validity, Validity::NotSteady, "{}", notes(&view));
    let text = notes(&view);
    assert!(text.contains("for 0 % of the time up to the knee, and for 6 %"), "{text}");
}
