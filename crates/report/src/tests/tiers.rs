//! Targets with the limits of a tier.

use model::{ErrorClass, Failure, NetworkUse, ProcessUse, Sample, Trial};

use super::quick;
use crate::fixture::recorded;
use crate::recorded::Recorded;
use crate::view::Validity;
use crate::{judge, text};

/// These profiles in three blocks, 10,000 operations in each second.
fn run(profiles: &str) -> Recorded {
    recorded(quick::plan(quick::SIZING, profiles), 3, |_, _, _| 10_000.0)
}

/// Samples of a trial every 100 ms, with a part of the CPU, of it stopped, and a bandwidth.
fn sampled(trial: &Trial, stopped: f64, mbit: f64) -> Vec<Sample> {
    let end_ns = trial.points.iter().map(|point| point.begun_ns + point.length_ns).max().unwrap();
    let sample = |at_ns: u64| Sample {
        at_ns,
        server: Some(ProcessUse::default()),
        group_throttled_ns: Some((at_ns as f64 * stopped) as u64),
        network: Some(NetworkUse {
            interface: "cd-1-0".into(),
            received_bytes: (at_ns as f64 * mbit / 8e3) as u64,
            ..NetworkUse::default()
        }),
        ..Sample::default()
    };
    (0..=end_ns / 100_000_000).map(|number| sample(number * 100_000_000)).collect()
}

fn limited(cpus: f64, mbit: f64) -> Recorded {
    let mut recorded = run("tiers");
    let mut samples = Vec::new();
    for trial in recorded.trials.iter_mut().filter(|trial| trial.cell.starts_with("redis-C0/")) {
        for point in &mut trial.points {
            point.server_cpu_ns = Some((point.length_ns as f64 * cpus) as u64);
        }
        samples.push(((trial.block, trial.cell.clone()), sampled(trial, 0.4, mbit)));
    }
    recorded.samples.extend(samples);
    recorded
}

#[test]
fn a_reached_limit_is_in_the_answer_and_beside_the_published_figure() {
    let view = judge(&limited(0.49, 50.0));
    let own = view.happened.tiers.iter().find(|tier| tier.target == "redis-C0").unwrap();
    let get = own.phases.iter().find(|phase| phase.operation == "get").unwrap();
    assert_eq!(get.published_per_s, Some(15_000.0));
    let [reached] = &get.reached[..] else { panic!("{:?}", get.reached) };
    assert_eq!(reached.shown, "0.49 of 0.5 CPUs, stopped for 40 % of the time");
    let text = text::summary(&view, 100, false);
    for part in [
        "redis-C0: its CPU time is the limit (0.49 of 0.5 CPUs, ",
        "redis-C0: 238 MiB of memory, 1 CPU, 0.5 CPUs of CPU time, 100 Mbit/s in each direction",
        "a comparison of equal machines",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(!text.contains("its bandwidth is the limit"), "{text}");
    let set = own.phases.iter().find(|phase| phase.operation == "set").unwrap();
    assert_eq!(set.published_per_s, None, "the figure is about gets");
}

#[test]
fn bandwidth_counts_from_nine_tenths() {
    for (mbit, is_reached) in [(89.0, false), (91.0, true)] {
        let view = judge(&limited(0.1, mbit));
        let text = text::summary(&view, 100, false);
        assert_eq!(text.contains("its bandwidth is the limit (91.0 of 100 Mbit/s"), is_reached);
    }
}

#[test]
fn refused_clients_beyond_a_tiers_connections_are_a_result() {
    let with = |cell: &str| {
        let mut recorded = run("connections,latency");
        for trial in recorded.trials.iter_mut().filter(|trial| trial.cell == cell) {
            let message = "ERR max number of clients reached".to_string();
            trial.failure = Some(Failure { class: ErrorClass::Refused, message });
            trial.points.clear();
        }
        judge(&recorded)
    };
    let beyond = with("redis-C0/connections/300");
    assert_eq!(beyond.validity, Validity::Valid, "{:?}", beyond.reasons);
    assert!(
        beyond.footnotes.iter().any(|note| note.contains("3 of 3 trials failed, first: refused"))
    );
    assert_eq!(beyond.failures.len(), 3);
    let within = with("redis-C0/connections/240");
    assert_eq!(within.validity, Validity::Invalid);
}
