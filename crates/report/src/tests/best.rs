//! Which target is starred as the best of an operation.

use stats::Histogram;

use crate::fixture::{change, pages, run, usual};
use crate::standings::standings;
use crate::view::View;
use crate::{csv, judge};

/// The best of an operation, and the verdicts of the others.
fn best_and_others(view: &View, operation: &str) -> (Option<String>, Vec<String>) {
    let tables = standings(view);
    let group = tables[0].groups.iter().find(|g| g.operation == operation).unwrap();
    let best = group.best().map(|s| s.row.target.clone());
    let others = group.standings.iter().filter(|s| !s.is_best()).map(|s| group.verdict(s));
    (best, others.collect())
}

/// Asserts that no ratio to the best is above 1.
fn assert_best_is_first(view: &View) {
    let csv = csv::render(view);
    let at = csv.lines().next().unwrap().split(',').position(|name| name == "ratio_to_best");
    for line in csv.lines().skip(1) {
        let ratio = line.split(',').nth(at.unwrap()).unwrap();
        assert!(ratio.is_empty() || ratio.parse::<f64>().unwrap() <= 1.0, "{line}");
    }
}

#[test]
fn the_star_and_the_ratios_follow_one_rule() {
    let mut recorded = pages(&["files", "redis"], 5, usual);
    // By the mean over all blocks files are faster, because of a single slow block of Redis;
    // by the mean of the blocks' ratios Redis is.
    for (target, times_us) in [("files", [100; 5]), ("redis", [60, 60, 60, 60, 300])] {
        let block = std::cell::Cell::new(0);
        change(&mut recorded, target, "page", |phase, i| {
            let mut service = Histogram::new();
            (0..1_000).for_each(|_| service.record(times_us[block.get()] * 1_000));
            block.set(block.get() + 1);
            phase.operations[i].service = service;
        });
    }
    let view = judge(&recorded);
    let mean = |target: &str| {
        let row = view.cells.iter().find(|r| r.operation == "page" && r.target == target);
        row.unwrap().metrics["service_ns_mean"].center
    };
    assert!(mean("files") < mean("redis"));
    let (best, others) = best_and_others(&view, "page");
    assert_eq!(best.as_deref(), Some("redis"));
    assert_eq!(others, ["undecided 0.828×"]);
    assert_best_is_first(&view);
}

#[test]
fn a_target_without_the_slow_blocks_is_not_the_best_because_of_that() {
    let mut recorded =
        run(
            &["files", "redis"],
            6,
            |target, _, _| {
                if target == "files" { 1_000.0 } else { 1_100.0 }
            },
        );
    for trial in &mut recorded.trials {
        if trial.block < 3 {
            let slowly = |p: &mut model::Point| p.operations[0].rate_per_s /= 4.0;
            trial.points.iter_mut().for_each(slowly);
        }
    }
    recorded.trials.retain(|t| t.block >= 3 || t.cell.starts_with("redis"));
    let view = judge(&recorded);
    let rate = |target: &str| {
        let row = view.cells.iter().find(|r| r.operation == "read" && r.target == target);
        row.unwrap().metrics["rate_per_s"].center
    };
    assert!(rate("files") > rate("redis"));
    assert_eq!(best_and_others(&view, "read").0.as_deref(), Some("redis"));
    assert_best_is_first(&view);
}

#[test]
fn a_control_is_never_the_best_but_may_be_ahead() {
    let view = judge(&run(&["files", "redis", "redis-again"], 5, |target, _, _| match target {
        "files" => 1_000.0,
        "redis" => 2_000.0,
        _ => 3_000.0,
    }));
    assert_eq!(best_and_others(&view, "read").0.as_deref(), Some("redis"));
}
