use super::*;
use model::{Choices, OperationResult, Point, Scale, Study};

fn plan() -> Plan {
    let study = Study::parse("s", include_str!("../../../studies/sessions.toml")).unwrap();
    let choices = Choices {
        budget_s: Some(100.0),
        sets: vec![("blocks_min".into(), "3".into())],
        ..Choices::new(Scale::Quick, 1)
    };
    study.plan(&choices).unwrap()
}

fn trial(block: u32, cell: &str, rate_per_s: f64) -> Trial {
    let operation = OperationResult {
        operation: "read".into(),
        counts: model::Counts::default(),
        rate_per_s,
        calls_rate_per_s: None,
        service: stats::Histogram::new(),
        response: stats::Histogram::new(),
        lag: stats::Histogram::new(),
        lock_wait: stats::Histogram::new(),
        slowest: None,
    };
    let point = Point {
        phase: "read".into(),
        length_ns: 1,
        operations: vec![operation],
        ..Point::default()
    };
    Trial {
        block,
        cell: cell.into(),
        took_ns: 10_000_000_000,
        points: vec![point],
        ..Trial::default()
    }
}

fn blocks(count: u32, spread: f64) -> Vec<Trial> {
    (0..count)
        .map(|b| trial(b, "files/steady/1", 1000.0 * (1.0 + spread * f64::from(b % 2))))
        .collect()
}

#[test]
fn the_minimum_number_of_blocks_ignores_the_budget() {
    let mut long = blocks(2, 0.0);
    for trial in &mut long {
        trial.took_ns *= 1_000;
    }
    assert_eq!(stop_reason(&plan(), &long, 2), None);
}

#[test]
fn narrow_intervals_do_not_end_a_run() {
    assert_eq!(stop_reason(&plan(), &blocks(4, 0.5), 4), None);
    assert_eq!(stop_reason(&plan(), &blocks(4, 0.001), 4), None);
}

#[test]
fn the_first_block_decides_how_many_fit() {
    let mut trials = blocks(5, 0.5);
    trials[0].took_ns = 24_000_000_000;
    assert_eq!(stop_reason(&plan(), &trials[..3], 3), None);
    let over = stop_reason(&plan(), &trials[..4], 4);
    assert_eq!(over, Some(StopReason::Budget(100_000_000_000)));
    let words = "as many blocks as fit into the budget of 100 s, judging by the first block";
    assert_eq!(over.unwrap().to_string(), words);
    // The duration of later blocks does not matter.
    trials[1].took_ns = 500_000_000_000;
    assert_eq!(stop_reason(&plan(), &trials[..3], 3), None);
    assert_eq!(stop_reason(&plan(), &trials[..4], 4), over);
}

#[test]
fn the_maximum_number_of_blocks_ends_a_run() {
    assert_eq!(stop_reason(&plan(), &blocks(6, 0.5), 6), Some(StopReason::Blocks(6)));
}

#[test]
fn the_remaining_time_shrinks_to_zero() {
    let plan = plan();
    let ready = BTreeSet::from(["files".to_string()]);
    let all: Vec<Trial> = (0..6).flat_map(|b| [trial(b, "a", 1.0), trial(b, "b", 1.0)]).collect();
    let (half, left) = estimate_remaining(&plan, &ready, &all[..6], 40_000_000_000);
    assert!((half - 0.5).abs() < 0.01 && left == 39_999_999_996, "{half} {left}");
    assert_eq!(estimate_remaining(&plan, &ready, &all, 80_000_000_000), (1.0, 0));
}

#[test]
fn before_the_first_trial_the_estimate_is_the_lesser_of_budget_and_plan() {
    let ready = BTreeSet::from(["files".to_string()]);
    let mut plan = plan();
    (plan.effort.blocks_min, plan.effort.blocks_max) = (1, 1);
    let measured = plan.cells.iter().filter(|cell| cell.target == "files");
    let timed_ns: u64 = measured.map(|cell| measured_ns(cell) + STARTING_NS).sum();
    assert!(timed_ns < plan.effort.budget_ns, "{timed_ns}");
    assert_eq!(estimate_remaining(&plan, &ready, &[], 0), (0.0, timed_ns));
    plan.effort.blocks_max = 1_000;
    assert_eq!(estimate_remaining(&plan, &ready, &[], 0), (0.0, plan.effort.budget_ns));
    // The required blocks are measured even if they exceed the budget.
    plan.effort.budget_ns = timed_ns / 2;
    plan.effort.blocks_min = 2;
    assert_eq!(estimate_remaining(&plan, &ready, &[], 0), (0.0, 2 * timed_ns));
}

#[test]
fn a_budget_below_three_blocks_is_too_small() {
    let mut plan = plan();
    let block_ns = plan.cells.iter().map(|cell| measured_ns(cell) + STARTING_NS).sum();
    let mut with = |budget_ns, blocks_min, blocks_max| {
        plan.effort = Effort { budget_ns, blocks_min, blocks_max };
        too_small_a_budget(&plan)
    };
    assert_eq!(with(3 * block_ns, 1, 10), None);
    assert_eq!(with(3 * block_ns - 1, 1, 10), Some((2, block_ns)));
    assert_eq!(with(1, 1, 10), Some((1, block_ns)));
    // The budget does not matter if it is unlimited or enough blocks are required, and is not the
    // reason if the plan limits the blocks.
    assert_eq!((with(0, 1, 10), with(1, 3, 10), with(1, 1, 2)), (None, None, None));
}

#[test]
fn orders_differ_by_block_and_repeat_by_seed() {
    let plan = plan();
    let ids = |block| -> Vec<String> {
        crate::schedule::order(&plan, block).iter().map(|c| c.id.clone()).collect()
    };
    assert_eq!(ids(0), ids(0));
    assert!((1..5).any(|b| ids(b) != ids(0)));
    let mut sorted = ids(3);
    sorted.sort();
    let mut all: Vec<String> = plan.cells.iter().map(|c| c.id.clone()).collect();
    all.sort();
    assert_eq!(sorted, all);
}
