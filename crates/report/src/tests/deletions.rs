//! Deletion of expired sessions, without and with it.

use model::{Choices, Fact, OperationResult, Sample, Scale, StoreCounters, Study};

use crate::fixture::recorded;
use crate::recorded::Recorded;
use crate::view::{DeletionView, View};
use crate::{json, judge, markdown, text};

const SESSIONS: &str = include_str!("../../../../studies/sessions.toml");

/// Deletion costs a fifth of the rate of files, and nothing else.
fn rates(target: &str, operation: &str, _: u32) -> f64 {
    match (target, operation) {
        ("files", "with-gc") => 800.0,
        _ => 1_000.0,
    }
}

/// Profile `gc` with eight clients: in each block, handlers delete 100 sessions in 20 collections,
/// and Redis expires 50 in 0.8 s.
fn run() -> Recorded {
    let set = |key: &str, value: &str| (key.to_string(), value.to_string());
    let plan = Study::parse("sessions", SESSIONS).unwrap().plan(&Choices {
        sets: vec![set("profile", "gc"), set("clients", "8")],
        ..Choices::new(Scale::Quick, 7)
    });
    let mut recorded = recorded(plan.unwrap(), 4, rates);
    let mut samples = Vec::new();
    for trial in &mut recorded.trials {
        let by_server = trial.cell.starts_with("redis/");
        let with = trial.points.iter_mut().find(|point| point.phase == "with-gc").unwrap();
        if by_server {
            let sample = |tenth: u64| Sample {
                at_ns: tenth * 100_000_000,
                store: Some(StoreCounters {
                    expired: Some(10 + 50 * (tenth - 1) / 8),
                    ..StoreCounters::default()
                }),
                ..Sample::default()
            };
            samples.push(((trial.block, trial.cell.clone()), (1..10).map(sample).collect()));
        } else {
            let mut gc: OperationResult = with.operations[0].clone();
            gc.operation = "gc".into();
            (gc.counts.ok, gc.counts.deleted) = (20, 100);
            with.operations[0].counts.deleted = 100;
            with.operations.insert(0, gc);
        }
        let size =
            Fact { name: Fact::SESSION_DISK_BYTES.into(), value: 4_096.0, source: "host".into() };
        trial.facts.extend((!by_server).then_some(size));
    }
    recorded.samples.extend(samples);
    recorded
}

fn deletion<'a>(view: &'a View, target: &str) -> &'a DeletionView {
    view.happened.deletions.iter().find(|one| one.target == target).unwrap()
}

#[test]
fn a_phase_with_deletion_is_compared_with_one_without() {
    let view = judge(&run());
    assert_eq!(view.happened.deletions.len(), 3);
    let files = deletion(&view, "files");
    assert!((files.rate_ratio.unwrap().center - 0.8).abs() < 1e-9, "{files:?}");
    assert!((files.p99_ratio.unwrap().center - 1.25).abs() < 0.01, "{files:?}");
    assert_eq!(
        (files.without.phase.as_str(), files.with.phase.as_str()),
        ("without-gc", "with-gc")
    );
    assert_eq!((files.by_handler, files.collections), (true, 80));
    assert_eq!((files.without.deleted, files.with.deleted), (Some(0), Some(400)));
    let redis = deletion(&view, "redis");
    assert!((redis.rate_ratio.unwrap().center - 1.0).abs() < 1e-9, "{redis:?}");
    assert_eq!((redis.by_handler, redis.collections, redis.longest_ns), (false, 0, None));
    // 50 in 0.8 s of each second, in four blocks.
    assert_eq!(redis.with.deleted, Some(250));
    let mut unsampled = run();
    unsampled.samples.clear();
    assert_eq!(deletion(&judge(&unsampled), "redis").with.deleted, None);
}

#[test]
fn deletion_is_in_every_output_for_people() {
    let view = judge(&run());
    for columns in [80, 100, 140] {
        let whole = text::render(&view, columns, false);
        let from = whole.find("Deletion of expired sessions").unwrap();
        let part: &str = whole[from..].split("\n\n").next().unwrap();
        assert!(part.lines().all(|line| line.chars().count() <= columns), "{part}");
        if columns == 100 {
            insta::assert_snapshot!(part);
        }
    }
    assert!(text::render(&view, 100, false).contains("disk space of a session"));
    assert!(markdown::render(&view).contains("## Deletion of expired sessions"));
    let json: serde_json::Value = serde_json::from_str(&json::render(&view)).unwrap();
    assert_eq!(json["deletions"][0]["with"]["deleted"], 400);
}
