//! Problems of ramps and their messages.

use model::study::claims::Figure;
use model::{Counts, ErrorClass, MemoryPlan, Trial, Workload};

use super::ramp::{found, ramped, sampled, stages};
use crate::recorded::Recorded;
use crate::view::{Validity, View};
use crate::{judge, text};

/// Reduces the answered requests of all stages from one up.
fn slow_down(trial: &mut Trial, from: usize, factor: f64) {
    for stage in stages(trial).iter_mut().skip(from) {
        stage.operations.last_mut().unwrap().rate_per_s *= factor;
    }
}

fn notes(view: &View) -> String {
    view.footnotes.join("\n")
}

#[test]
fn unsent_requests_count_as_failed() {
    let never_sent = |trial: &mut Trial| {
        stages(trial)[3].unsent = 5_000;
    };
    let view = judge(&ramped(3, never_sent));
    let stage = &found(&view, "redis").stages[3];
    assert_eq!((stage.unsent, stage.held), (15_000, 0));
    assert_eq!(found(&view, "redis").stages[4].held, 3);
    let expected = "15000 more operations were due and never sent";
    assert!(notes(&view).contains(expected), "{}", notes(&view));
    let shown = text::render(&view, 140, false);
    let row = shown.lines().find(|line| line.trim_start().starts_with('!')).unwrap();
    assert!(row.contains(" % "), "{row}");
}

#[test]
fn draining_a_queue_is_not_a_highest_rate() {
    let bursts = |trial: &mut Trial| {
        for stage in &mut stages(trial)[2..4] {
            stage.operations.last_mut().unwrap().rate_per_s *= 9.0;
        }
    };
    let reached = |view: &View| found(view, "redis").metrics["reached_per_s"].center;
    let (with, without) = (judge(&ramped(3, bursts)), judge(&ramped(3, |_| {})));
    assert!((reached(&with) - reached(&without)).abs() < 1.0, "{}", reached(&with));
}

#[test]
fn a_store_that_fails_in_the_lowest_stage_is_reported_with_its_error() {
    let full = |trial: &mut Trial| {
        for stage in stages(trial) {
            let mut counts = Counts::default();
            (0..100).for_each(|_| counts.fail(ErrorClass::Full, "OOM command not allowed"));
            stage.operations.last_mut().unwrap().counts = counts;
        }
    };
    let view = judge(&ramped(3, full));
    let redis = found(&view, "redis");
    assert_eq!((redis.outcome.name(), view.validity), ("never-held", Validity::Invalid));
    let expected = "redis failed even in the lowest stage: 300 of 300 operations";
    assert!(redis.sentence.starts_with(expected), "{}", redis.sentence);
    assert!(redis.sentence.contains("OOM command not allowed"), "{}", redis.sentence);
    assert!(!redis.sentence.contains("lower the rates"), "{}", redis.sentence);
}

/// Makes one in `every` gets of each ramp miss.
fn with_misses(every: u64) -> Recorded {
    ramped(3, |trial| {
        for stage in stages(trial) {
            let get = stage.operations.iter_mut().find(|o| o.operation == "get").unwrap();
            let missed = get.counts.ok / every;
            get.counts.ok -= missed;
            get.counts.miss += missed;
        }
    })
}

#[test]
fn a_get_that_misses_its_own_set_breaks_the_rule_of_misses() {
    let view = judge(&with_misses(100));
    assert_eq!(view.validity, Validity::Invalid);
    let expected = "`redis/open/64` ramp.get: ";
    let reason = view.reasons.iter().find(|r| r.starts_with(expected)).unwrap();
    assert!(reason.contains("keys that should exist were not found"), "{reason}");
    assert!(reason.contains("at most 0.1 % may"), "{reason}");
    assert_eq!(judge(&with_misses(5_000)).validity, Validity::Valid);
}

#[test]
fn evictions_and_short_ttls_explain_such_misses() {
    let mut recorded = with_misses(100);
    recorded.samples = ["redis/open/64", "memcached/open/64"]
        .into_iter()
        .flat_map(|cell| (0..3).map(move |block| (cell, block)))
        .map(|(cell, block)| {
            let (place, mut samples) = sampled(cell, block, 27);
            let all = samples.iter_mut().map(|sample| sample.store.as_mut().unwrap());
            all.enumerate().for_each(|(i, store)| store.evicted = Some(1_000 * i as u64));
            (place, samples)
        })
        .collect();
    assert_eq!(judge(&recorded).validity, Validity::Valid);
    let mut recorded = with_misses(100);
    for cell in &mut recorded.header.plan.cells {
        let Workload::Kv(kv) = &mut cell.workload else { panic!() };
        kv.ttl_s = 1;
    }
    assert_eq!(judge(&recorded).validity, Validity::Valid);
}

#[test]
fn a_store_that_evicts_has_less_data_than_planned() {
    let mut recorded = ramped(3, |_| {});
    let (place, mut samples) = sampled("redis/open/64", 0, 27);
    for (i, sample) in samples.iter_mut().enumerate() {
        sample.store.as_mut().unwrap().evicted = Some(3 * i as u64);
    }
    recorded.samples = [(place, samples)].into();
    assert_eq!(judge(&recorded).validity, Validity::Valid);
    for cell in &mut recorded.header.plan.cells {
        let Workload::Kv(kv) = &mut cell.workload else { panic!() };
        kv.memory = Some(MemoryPlan { limit_bytes: 256 << 20, swap_bytes: 0 });
    }
    let view = judge(&recorded);
    assert_eq!(view.validity, Validity::Invalid);
    let expected = "`redis/open/64`: the store evicted 810 keys";
    assert!(view.reasons.iter().any(|reason| reason.starts_with(expected)), "{:?}", view.reasons);
    assert!(!notes(&view).contains("removed 810 keys"));
}

#[test]
fn evictions_refusals_and_swap_are_noted() {
    let mut recorded = ramped(3, |_| {});
    let (place, mut samples) = sampled("redis/open/64", 0, 27);
    for (i, sample) in samples.iter_mut().enumerate() {
        let store = sample.store.as_mut().unwrap();
        store.evicted = Some(1_000 + 3 * i as u64);
        store.refused = Some(if i > 100 { 4 } else { 0 });
        sample.server.as_mut().unwrap().swapped_bytes = if i == 50 { 3 << 20 } else { 0 };
    }
    recorded.samples = [(place, samples)].into();
    let notes = notes(&judge(&recorded));
    for expected in ["removed 810 keys", "refused 4 connections", "up to 3 MiB"] {
        assert!(notes.contains(expected), "{expected}: {notes}");
    }
    assert!(!notes.contains("`memcached/open/64`: the server"), "{notes}");
}

#[test]
fn a_block_without_a_passing_stage_leaves_no_lower_bound() {
    let view = judge(&ramped(3, |trial| {
        if trial.block == 1 {
            slow_down(trial, 0, 0.7);
        }
    }));
    let redis = found(&view, "redis");
    assert_eq!((redis.outcome.name(), view.validity), ("never-held", Validity::Invalid));
    let expected = "redis sustained no stage in 1 of 3 blocks, so no lower bound is known";
    assert!(view.reasons.iter().any(|reason| reason.starts_with(expected)), "{:?}", view.reasons);
}

#[test]
fn comparisons_of_lower_bounds_name_the_bound_as_the_reason() {
    let starved = |trial: &mut Trial| {
        // Neither target is decidedly better.
        if trial.block.is_multiple_of(2) == trial.cell.starts_with("redis") {
            slow_down(trial, 5, 0.7);
        }
        for stage in stages(trial) {
            stage.server_cpu_ns = stage.server_cpu_ns.map(|ns| ns / 2);
            stage.generator_cpu_ns = stage.length_ns * 97 / 100;
        }
    };
    let view = judge(&ramped(4, starved));
    assert_eq!(found(&view, "redis").outcome.name(), "generator");
    let knees = view.comparisons.iter().find(|c| c.metric == "knee_per_s").unwrap();
    let doubt = knees.doubt.as_deref().unwrap_or_default();
    assert!(
        knees.verdict.name() == "undecided" && doubt.contains("sustains more than measured"),
        "{doubt}"
    );
}

#[test]
fn claims_with_few_usable_blocks_say_which() {
    let mut recorded = ramped(3, |trial| {
        if trial.block == 1 {
            slow_down(trial, 0, 0.7);
        }
    });
    let expect = super::ramp::at_shares(Figure::Cpu, &[0.5], 1.25);
    recorded.header.plan.claims = vec![super::ramp::claim(expect)];
    let view = judge(&recorded);
    let note = &view.claims[0].note;
    assert!(
        note.contains("50 % of the lower knee was measured in 2 blocks; 3 are needed"),
        "{note}"
    );
}
