//! Purchases at which one application cache overtakes another.

use model::Workload;
use stats::Histogram;
use std::collections::BTreeMap;

use super::cache::{caches, rates};
use crate::recorded::Recorded;
use crate::view::BreakEvenView;
use crate::{json, judge, text};

/// Mean times of an operation on a target, nanoseconds, by block.
type Cost = fn(target: &str, operation: &str, block: u32) -> u64;

/// A run of files and Redis with page views and purchases.
fn shop(blocks: u32, cost: Cost) -> Recorded {
    let mut recorded = caches(blocks, rates);
    for cell in &mut recorded.header.plan.cells {
        let Workload::AppCache(cache) = &mut cell.workload else { panic!("no cache") };
        cache.phases.truncate(2);
        for (phase, name) in cache.phases.iter_mut().zip(["page", "purchase"]) {
            phase.name = name.into();
            phase.mix = BTreeMap::from([(name.into(), 1.0)]);
        }
    }
    for trial in &mut recorded.trials {
        let target = trial.cell.split('/').next().unwrap_or_default().to_string();
        for (from, to) in [("read", "page"), ("write", "purchase")] {
            crate::fixture::rename(trial, from, to);
            let block = trial.block;
            for point in trial.points.iter_mut().filter(|p| p.phase == to) {
                for operation in &mut point.operations {
                    operation.operation = to.into();
                    operation.service = Histogram::new();
                    operation.service.record(cost(&target, to, block));
                    operation.response = operation.service.clone();
                }
            }
        }
    }
    recorded
}

fn only(recorded: &Recorded) -> BreakEvenView {
    let view = judge(recorded);
    assert_eq!(view.advised.break_even.len(), 1);
    view.advised.break_even[0].clone()
}

/// Files: pages of 1 ms, purchases of 500 ms. Redis: 2 ms and 100 ms.
fn usual(target: &str, operation: &str, block: u32) -> u64 {
    let ms = match (target, operation) {
        ("files", "page") => 1_000_000,
        ("files", _) => 500_000_000,
        (_, "page") => 2_000_000,
        _ => 100_000_000,
    };
    ms + u64::from(block % 3) * ms / 100
}

#[test]
fn it_is_where_both_take_the_same_time() {
    let found = only(&shop(5, usual));
    assert_eq!((found.faster_pages.as_str(), found.other.as_str()), ("files", "redis"));
    let value = found.purchases_per_page.unwrap();
    // (2 - 1) / (500 - 100), the same in each block, since all of its times vary alike.
    assert!((value.center - 1.0 / 400.0).abs() < 1e-4, "{value:?}");
    let start = "redis takes less time than files from 1 purchase in 400 [";
    assert!(found.sentence.starts_with(start), "{}", found.sentence);
    let end = "page views on (page views 2.00× [2.00, 2.00], purchases 0.200× [0.200, 0.200] as long \
               on redis as on files)";
    assert!(found.sentence.ends_with(end), "{}", found.sentence);
    let view = judge(&shop(5, usual));
    let shown = text::render(&view, 200, true);
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert!(words.join(" ").contains(&found.sentence), "{shown}");
    assert!(json::render(&view).contains("\"purchases_per_page\""));
}

#[test]
fn a_target_can_be_ahead_of_another_in_both() {
    let found = only(&shop(5, |target, operation, block| match (target, operation) {
        ("redis", "page") => 500_000,
        _ => usual(target, operation, block),
    }));
    let start = "redis takes less time than files for page views and for purchases (page views";
    assert!(found.sentence.starts_with(start), "{}", found.sentence);
    assert_eq!((found.purchases_per_page, found.blocks, found.of_blocks), (None, 0, 5));
}

#[test]
fn without_a_significant_difference_there_is_none() {
    let found = only(&shop(5, |target, operation, block| match (target, operation, block) {
        ("redis", "page", 0 | 3) => 500_000,
        _ => usual(target, operation, block),
    }));
    assert_eq!((found.purchases_per_page, found.blocks, found.of_blocks), (None, 3, 5));
    let start = "files and redis do not differ significantly in page views (";
    assert!(found.sentence.starts_with(start), "{}", found.sentence);
    let few = only(&shop(2, usual));
    assert!(few.sentence.ends_with("on (too few blocks to be sure)"), "{}", few.sentence);
    assert!(few.purchases_per_page.unwrap().lo.is_none());
}
