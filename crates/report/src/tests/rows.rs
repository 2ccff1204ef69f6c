//! Rows: names, metrics, their intervals and notes.

use crate::fixture::{OPERATIONS, change, pages, rename, run, sessions, usual};
use crate::judge;
use crate::recorded::Recorded;
use crate::view::{Row, View};
use model::Point;

fn row<'a>(view: &'a View, target: &str, operation: &str, clients: u32) -> &'a Row {
    let found =
        |r: &&Row| r.target == target && r.operation == operation && r.load.clients == clients;
    view.cells.iter().find(found).unwrap()
}

#[test]
fn rows_are_ordered_by_operation_and_by_target_as_planned() {
    let view = judge(&run(&["files", "redis"], 3, usual));
    let order: Vec<_> = view
        .cells
        .iter()
        .map(|r| format!("{} {} {}", r.load.clients, r.operation, r.target))
        .collect();
    assert_eq!(order[..4], ["1 write files", "1 write redis", "1 read files", "1 read redis"]);
    assert_eq!(order.len(), 12);
}

#[test]
fn metrics_are_complete_and_cpu_time_is_per_operation() {
    let view = judge(&run(&["files", "redis"], 3, usual));
    let redis = row(&view, "redis", "read", 8);
    for key in ["p50", "p90", "p95", "p99", "p999", "p9999", "max", "mean"] {
        for kind in ["service", "response"] {
            let value = redis.metrics[&format!("{kind}_ns_{key}")];
            let (lo, hi) = (value.lo.unwrap(), value.hi.unwrap());
            assert!(lo <= value.center && value.center <= hi && lo > 0.0, "{key}: {value:?}");
        }
    }
    assert!((redis.metrics["server_cpu_ns_per_op"].center - 5_000.0).abs() < 0.1);
    assert!((redis.metrics["generator_cpu_ns_per_op"].center - 3_000.0).abs() < 0.1);
    let files = row(&view, "files", "read", 8);
    assert!(!files.metrics.contains_key("server_cpu_ns_per_op"));
    assert!(!files.metrics.contains_key("lock_wait_share"));
    assert_eq!((files.blocks, files.counts.ok), (3, 3 * OPERATIONS));
}

#[test]
fn the_rate_is_the_geometric_mean_over_blocks_with_its_interval() {
    let mut recorded = run(&["files"], 4, usual);
    for trial in &mut recorded.trials {
        let rate = [100.0, 200.0, 200.0, 400.0][trial.block as usize];
        trial.points.iter_mut().for_each(|p| p.operations[0].rate_per_s = rate);
    }
    let view = judge(&recorded);
    let row = row(&view, "files", "read", 8);
    let rate = row.metrics["rate_per_s"];
    assert!((rate.center - 200.0).abs() < 1e-9, "{rate:?}");
    // Student's t with 3 degrees of freedom on logarithms with standard error ln 2 · √(2/3) / 2.
    let reach = (3.182_45 * 2f64.ln() * (2.0 / 3.0_f64).sqrt() / 2.0).exp();
    let (lo, hi) = rate.interval().unwrap();
    assert!(lo <= 200.0 / reach * 1.001 && hi >= 200.0 * reach * 0.999);
    // The shown bounds are within the observed range.
    assert_eq!((rate.lo, rate.hi), (Some(100.0), Some(400.0)));
    let by_block = row.charts.as_ref().unwrap().by_block.iter().map(|b| b.rate_per_s);
    assert_eq!(by_block.collect::<Vec<_>>(), [100.0, 200.0, 200.0, 400.0]);
}

/// Student's interval of the three blocks would be 36 to 1,120 with a maximum of 400, and of these
/// four 10,900 to 306,000 with a maximum of 99,900.
#[test]
fn bounds_are_within_the_blocks_and_with_few_blocks_called_a_range() {
    for (rates, ends) in [
        (vec![100.0, 200.0, 400.0], (100.0, 400.0)),
        (vec![12_000.0, 99_900.0, 95_000.0, 98_000.0], (12_000.0, 99_900.0)),
    ] {
        let mut recorded = run(&["files"], rates.len() as u32, usual);
        for trial in &mut recorded.trials {
            let rate = rates[trial.block as usize];
            trial.points.iter_mut().for_each(|p| p.operations[0].rate_per_s = rate);
        }
        let view = judge(&recorded);
        let row = row(&view, "files", "read", 8);
        let rate = row.metrics["rate_per_s"];
        assert_eq!(rate.lo.zip(rate.hi), Some(ends));
        let (lo, hi) = rate.interval().unwrap();
        assert!(lo < ends.0 && ends.1 < hi, "{lo} {hi}");
        let is_range_note =
            |n: &&usize| view.footnotes[**n].contains("a range, not a 95 % interval");
        assert_eq!(row.footnotes.iter().filter(is_range_note).count(), 1, "{:?}", view.footnotes);
    }
}

#[test]
fn pages_have_a_row_for_the_whole_and_for_each_part() {
    let mut recorded = pages(&["files", "redis"], 5, usual);
    change(&mut recorded, "files", "open", |phase, i| {
        let open = &mut phase.operations[i];
        open.counts.lock_waits = OPERATIONS / 4;
        (0..500).for_each(|n| open.lock_wait.record(1_000_000 + n));
    });
    let view = judge(&recorded);
    let names: Vec<_> = view.cells.iter().map(|r| r.operation.as_str()).collect();
    assert_eq!(names, ["page", "page", "page.open", "page.open", "page.close", "page.close"]);
    let open = row(&view, "files", "page.open", 8);
    assert!((open.metrics["lock_wait_share"].center - 0.25).abs() < 1e-12);
    assert!((open.metrics["lock_wait_ns_p50"].center / 1e6 - 1.0).abs() < 0.01);
    assert!(!open.metrics.contains_key("generator_cpu_ns_per_op"), "CPU is the phase's");
    assert!(row(&view, "files", "page", 8).metrics.contains_key("generator_cpu_ns_per_op"));
    assert!(!open.charts.as_ref().unwrap().lock_wait_curve.is_empty());
    assert!(view.comparisons.iter().all(|c| c.metric == "service_ns_mean"));
    let page = view.comparisons.iter().find(|c| c.operation == "page").unwrap();
    // Time is clients divided by rate, so both ratios are equal.
    assert!((page.ratio.center - 1.0 / 2.1).abs() < 0.01, "{:?}", page.ratio);
    assert_eq!((page.a.as_str(), page.verdict.name()), ("files", "slower"));
}

/// A run with reads as a part of a mix.
fn mixed() -> Recorded {
    let mut recorded = run(&["files", "redis"], 5, usual);
    for cell in &mut recorded.header.plan.cells {
        sessions(cell).phases.iter_mut().for_each(|p| {
            if p.name == "read" {
                p.name = "mixed".into();
            }
        });
    }
    recorded.trials.iter_mut().for_each(|trial| rename(trial, "read", "mixed"));
    for phase in recorded.trials.iter_mut().flat_map(|t| &mut t.points) {
        if phase.phase == "mixed" {
            let mut all = phase.operations[0].clone();
            all.operation = "mixed".into();
            phase.operations.push(all);
        }
    }
    recorded
}

#[test]
fn notes_about_a_part_are_not_repeated_for_the_whole() {
    let mut recorded = mixed();
    let phases = recorded.trials.iter_mut().flat_map(|t| &mut t.points);
    for phase in phases.filter(|p| p.phase == "mixed") {
        for operation in &mut phase.operations {
            operation.counts.miss = 3;
        }
        let whole = phase.operations.iter_mut().find(|o| o.operation == "mixed").unwrap();
        whole.counts.lock_broken = 2;
    }
    let view = judge(&recorded);
    let notes_about = |what: &str| {
        let noted = |n: &&String| n.starts_with("`redis/steady/8`") && n.contains(what);
        view.footnotes.iter().filter(noted).collect::<Vec<_>>()
    };
    let missed = notes_about("did not find their session");
    assert!(matches!(&missed[..], [one] if one.contains("mixed.read")), "{missed:?}");
    let broken = notes_about("closed a session whose lock was gone");
    assert!(matches!(&broken[..], [one] if one.contains("` mixed: ")), "{broken:?}");
    let number = view.footnotes.iter().position(|n| n == missed[0]).unwrap();
    let rows = view.cells.iter().filter(|r| r.footnotes.contains(&number));
    let rows: Vec<&str> = rows.map(|r| r.operation.as_str()).collect();
    assert_eq!(rows, ["mixed", "mixed.read"]);
}

#[test]
fn operations_of_a_mix_are_compared_by_time() {
    let view = judge(&mixed());
    let metric = |operation: &str| {
        let found = view.comparisons.iter().find(|c| c.operation == operation).unwrap();
        found.metric.clone()
    };
    assert_eq!(metric("mixed"), "rate_per_s");
    assert_eq!(metric("mixed.read"), "service_ns_mean");
    let names: Vec<_> = view.cells.iter().map(|r| r.operation.as_str()).take(6).collect();
    assert_eq!(names[2..], ["mixed", "mixed", "mixed.read", "mixed.read"]);
}

#[test]
fn percentiles_with_too_few_samples_have_no_interval_and_a_reason() {
    let changed = |with: &dyn Fn(&mut Point)| {
        let mut recorded = run(&["files"], 4, usual);
        recorded.trials.iter_mut().flat_map(|t| &mut t.points).for_each(with);
        judge(&recorded)
    };
    let is_noted = |view: &View, start: &str| view.footnotes.iter().any(|n| n.starts_with(start));
    let has =
        |view: &View, metric: &str| row(view, "files", "read", 8).metrics[metric].lo.is_some();

    // Four seconds in total; every tenth interval has a slow operation.
    let short = changed(&|_| ());
    assert!(is_noted(
        &short,
        "p99 and higher percentiles are based on less than 20 s of measurement"
    ));
    assert!(has(&short, "service_ns_p95") && !has(&short, "service_ns_p99"));

    let long = changed(&|phase| phase.length_ns = 30_000_000_000);
    assert!(is_noted(&long, "p99.9 and higher percentiles are based on less than 200 s of"));
    assert!(has(&long, "service_ns_p99") && !has(&long, "service_ns_p999"));

    // The same number of slow operations in one stall.
    let stalled = changed(&|phase| {
        phase.length_ns = 60_000_000_000;
        for slowest in phase.operations.iter_mut().filter_map(|o| o.slowest.as_mut()) {
            slowest.service.sort_unstable();
        }
    });
    assert!(is_noted(
        &stalled,
        "p99 and higher percentiles are based on fewer than 10 slow episodes"
    ));
    assert!(has(&stalled, "service_ns_p90") && !has(&stalled, "service_ns_p99"));

    // An older record without these data.
    let old = changed(&|phase| phase.operations.iter_mut().for_each(|o| o.slowest = None));
    assert!(is_noted(&old, "percentiles have no interval: the record does not contain"));
    assert!(!has(&old, "service_ns_p50") && has(&old, "service_ns_mean"));
}

#[test]
fn only_common_blocks_are_compared_and_a_later_trial_replaces_an_earlier() {
    let mut recorded = run(&["files", "redis"], 5, usual);
    recorded.trials.retain(|t| t.cell != "redis/steady/8" || t.block < 2);
    recorded.trials.retain(|t| t.cell != "files/steady/8" || t.block > 0);
    let again = recorded.trials.iter().find(|t| t.cell == "files/steady/1").unwrap().clone();
    recorded.trials.push(again);
    let view = judge(&recorded);
    assert_eq!(row(&view, "files", "read", 1).blocks, 5);
    let one = view.comparisons.iter().find(|c| c.load.clients == 8).unwrap();
    assert_eq!((one.blocks, one.doubt.as_deref()), (1, Some("1 block; 3 are needed")));
}

#[test]
fn equal_records_give_equal_views_and_the_summary_has_no_charts() {
    let recorded = run(&["files", "redis"], 4, usual);
    let (one, two) = (judge(&recorded), judge(&recorded));
    assert_eq!(crate::json::render(&one), crate::json::render(&two));
    assert!(one.cells.iter().all(|r| r.charts.is_some()));
    assert!(one.without_charts().cells.iter().all(|r| r.charts.is_none()));
}
