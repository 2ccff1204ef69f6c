//! Phases with too few answered cleans for a rate.

use crate::fixture::ratio;
use model::Restored;
use stats::Histogram;

use super::cache::{caches, rates};
use crate::fixture::rename;
use crate::recorded::Recorded;
use crate::standings::standings;
use crate::view::View;
use crate::{csv, judge};

/// Keeps this many cleans of a target in the first `blocks` blocks, each of 1 ms;
/// clients restore records for nearly the whole phase.
fn with_few(target: &str, operations: u64, blocks: u32) -> Recorded {
    with_few_of(target, operations, blocks, 1_000_000)
}

fn with_few_of(target: &str, operations: u64, blocks: u32, takes_ns: u64) -> Recorded {
    let mut recorded = caches(6, rates);
    let of_target = |cell: &str| cell.starts_with(target);
    for trial in recorded.trials.iter_mut().filter(|t| of_target(&t.cell) && t.block < blocks) {
        let clean = trial.points.iter_mut().find(|p| p.phase == "clean").unwrap();
        let free_ns = operations * takes_ns / 8;
        let restored_each =
            Restored { answered: operations / 8, free_ns, restoring_ns: 900_000_000 };
        clean.restored = vec![restored_each; 8];
        let clean = clean.operations.last_mut().unwrap();
        clean.counts.ok = operations;
        clean.service = Histogram::new();
        (0..operations).for_each(|n| clean.service.record(takes_ns + n));
        clean.response = clean.service.clone();
    }
    recorded.header.plan.claims = vec![ratio("redis", "files", "clean", 8, (10.0, f64::INFINITY))];
    recorded
}

fn cleans(view: &View, target: &str) -> (bool, u32, String) {
    let row = view.cells.iter().find(|r| r.operation == "clean" && r.target == target).unwrap();
    let notes = row.footnotes.iter().map(|n| view.footnotes[*n].as_str());
    let few: Vec<&str> = notes.filter(|n| n.contains("fewer than 10 operations")).collect();
    (row.metrics.contains_key("rate_per_s"), row.blocks, few.join(""))
}

#[test]
fn fewer_than_ten_operations_per_client_give_no_rate_star_or_comparison() {
    let view = judge(&with_few("redis", 79, 6));
    let (has_rate, blocks, note) = cleans(&view, "redis");
    assert!(!has_rate && blocks == 0);
    assert!(note.starts_with("`redis/steady/8` clean: in 6 of 6 blocks fewer than 10"), "{note}");
    assert!(!view.comparisons.iter().any(|c| c.operation == "clean"));
    assert_eq!(view.claims[0].verdict.name(), "not run", "{:?}", view.claims);
    let note = "redis and files have no block in common with a rate of both";
    assert_eq!(view.claims[0].note, note);
    let tables = standings(&view);
    let group = tables[0].groups.iter().find(|g| g.operation == "clean").unwrap();
    let verdict = |target: &str| {
        let found = group.standings.iter().find(|s| s.row.target == target).unwrap();
        (found.is_best(), group.verdict(found))
    };
    assert_eq!(verdict("redis"), (false, "not compared".into()));
    assert_eq!(verdict("files"), (true, "alone".into()));
    let row = view.cells.iter().find(|r| r.operation == "clean" && r.target == "redis").unwrap();
    assert!(row.metrics.contains_key("service_ns_p50"), "times were measured");
}

#[test]
fn blocks_with_too_few_operations_are_ignored() {
    let view = judge(&with_few("redis", 79, 2));
    let (has_rate, blocks, note) = cleans(&view, "redis");
    assert!(has_rate && blocks == 4, "{blocks}");
    assert!(note.contains("2 of 6 blocks"), "{note}");
    let compared = view.comparisons.iter().find(|c| c.operation == "clean").unwrap();
    assert_eq!(compared.blocks, 4);
    let (_, blocks, note) = cleans(&judge(&with_few("redis", 80, 6)), "redis");
    assert_eq!((blocks, &*note), (6, ""), "ten for each of eight clients");
    assert_eq!(csv::render_blocks(&view).matches(",clean,redis,").count(), 4);
}

#[test]
fn a_few_operations_that_last_as_long_as_the_phase_have_a_rate() {
    let (has_rate, blocks, note) =
        cleans(&judge(&with_few_of("redis", 8, 6, 600_000_000)), "redis");
    assert_eq!((has_rate, blocks, &*note), (true, 6, ""));
    let (has_rate, _, note) = cleans(&judge(&with_few_of("redis", 8, 6, 400_000_000)), "redis");
    assert!(!has_rate && note.contains("in less than 50 % of the clients' time"), "{note}");
}

#[test]
fn one_clean_of_a_mix_gives_no_rate_of_cleans() {
    let mut recorded = caches(6, rates);
    for cell in &mut recorded.header.plan.cells {
        let model::Workload::AppCache(cache) = &mut cell.workload else { panic!("no cache") };
        let phase = &mut cache.phases[2];
        phase.name = "mixed".into();
        phase.mix.insert("read".into(), 1.0);
    }
    recorded.trials.iter_mut().for_each(|trial| rename(trial, "clean", "mixed"));
    for phase in recorded.trials.iter_mut().flat_map(|t| &mut t.points) {
        if phase.phase == "mixed" {
            let mut whole = phase.operations.remove(0);
            whole.operation = "mixed".into();
            let mut clean = whole.clone();
            clean.operation = "clean".into();
            clean.counts.ok = 1;
            clean.service = Histogram::new();
            clean.service.record(337_000);
            (clean.rate_per_s, clean.calls_rate_per_s) = (11_100.0, Some(2_967.0));
            phase.operations = vec![clean, whole];
        }
    }
    let view = judge(&recorded);
    let of = |operation: &str| view.cells.iter().find(|r| r.operation == operation).unwrap();
    assert!(of("mixed").metrics.contains_key("rate_per_s"));
    let clean = of("mixed.clean");
    for rate in ["rate_per_s", "calls_rate_per_s"] {
        assert!(!clean.metrics.contains_key(rate), "{:?}", clean.metrics);
    }
    assert!(!view.comparisons.iter().any(|c| c.operation == "mixed.clean"));
    assert!(clean.metrics.contains_key("service_ns_mean"));
    let tables = standings(&view);
    let group = tables[0].groups.iter().find(|g| g.operation == "mixed.clean").unwrap();
    for standing in &group.standings {
        assert!(group.verdict(standing).is_empty(), "a star by time: {standing:?}");
    }
}
