//! A test per rule: at the limit the run is VALID, beyond it not, and the reason gives the figures.

use model::{
    Arrivals, Condition, ErrorClass, Failure, Generation, Kv, KvOperation, Load, NullRate, Program,
    Schedule, SealStatus, Stage, Workload,
};

use crate::fixture::{change, run, sessions, set_intervals, usual};
use crate::recorded::Recorded;
use crate::view::{Validity, View};
use crate::{judge, markdown, rules, text};

const ALL: [&str; 3] = ["files", "redis", "mysql"];

fn good() -> Recorded {
    run(&ALL, 5, usual)
}

fn noted(view: &View, part: &str) -> bool {
    view.footnotes.iter().any(|n| n.contains(part))
}

/// The only reason of a view with this validity.
fn reason(view: &View, validity: Validity) -> &str {
    assert_eq!(view.validity, validity, "{:?}", view.reasons);
    assert_eq!(view.reasons.len(), 1, "{:?}", view.reasons);
    &view.reasons[0]
}

#[test]
fn an_undisturbed_run_is_valid() {
    let view = judge(&good());
    assert_eq!((view.validity, view.reasons), (Validity::Valid, vec![]));
    assert_eq!(view.rules, rules());
}

#[test]
fn one_wrong_value_is_too_many() {
    let mut recorded = good();
    let mut once = false;
    for phase in recorded.trials.iter_mut().flat_map(|t| &mut t.points) {
        if phase.phase == "read" && !once {
            phase.operations[0].counts.wrong = 1;
            once = true;
        }
    }
    let view = judge(&recorded);
    let text = reason(&view, Validity::Invalid);
    assert!(text.starts_with("`files/steady/1` read: 1 wrong value in 10001 "), "{text}");
}

#[test]
fn one_error_in_a_thousand_is_allowed() {
    let with = |errors: u64| {
        let mut recorded = good();
        change(&mut recorded, "redis", "read", |phase, i| {
            let counts = &mut phase.operations[i].counts;
            counts.ok -= errors;
            counts.error = errors;
            counts.errors_by_class.insert(ErrorClass::Timeout, errors);
        });
        judge(&recorded)
    };
    assert_eq!(with(2).validity, Validity::Valid);
    assert!(noted(&with(2), "`redis/steady/8` read: 10 of 10000 failed"));
    let view = with(3);
    assert_eq!((view.validity, view.reasons.len()), (Validity::Invalid, 2));
    let text = &view.reasons[0];
    let failed = "15 of 10000 operations failed (0.15 %; at most 0.1 % is allowed)";
    assert!(text.contains(failed), "{text}");
    assert!(text.ends_with("15 timed out"), "{text}");
}

#[test]
fn one_miss_in_a_thousand_is_allowed_and_expiry_is_named() {
    let with = |misses: u64, ttl_s: u64| {
        let mut recorded = good();
        recorded.header.plan.cells.iter_mut().for_each(|c| sessions(c).ttl_s = ttl_s);
        change(&mut recorded, "redis", "read", |phase, i| phase.operations[i].counts.miss = misses);
        judge(&recorded)
    };
    assert_eq!(with(2, 1440).validity, Validity::Valid);
    let lost = with(20, 1440);
    assert_eq!(lost.validity, Validity::Invalid);
    assert!(lost.reasons[0].ends_with("may be missing)"), "{}", lost.reasons[0]);
    let expired = with(20, 2);
    assert!(expired.reasons[0].contains("sessions live 2 s and a trial took 8 s"));
}

#[test]
fn a_failed_trial_of_an_available_target_counts() {
    let mut recorded = good();
    let failed = recorded.trials.iter_mut().find(|t| t.cell == "redis/steady/8").unwrap();
    let message = "the server ended".to_string();
    failed.failure = Some(Failure { class: ErrorClass::Closed, message });
    let view = judge(&recorded);
    let text = reason(&view, Validity::Invalid);
    assert!(text.contains("`redis/steady/8`: 1 of 5 trials failed"), "{text}");
    assert_eq!(view.failures.len(), 1);
    assert_eq!(view.failures[0].reason, "the server ended");
    let row = view.cells.iter().find(|r| r.target == "redis" && r.load.clients == 8).unwrap();
    assert_eq!(row.blocks, 4, "a failed trial gives no numbers");
}

#[test]
fn a_cell_for_which_the_machine_lacks_something_is_not_run() {
    let with = |lacks: fn(u32) -> bool| {
        let mut recorded = good();
        let own = recorded.trials.iter_mut().filter(|t| t.cell == "redis/steady/8");
        for trial in own.filter(|t| lacks(t.block)) {
            let message = "no network (expected root)".to_string();
            trial.points.clear();
            trial.failure = Some(Failure { class: ErrorClass::Missing, message });
        }
        judge(&recorded)
    };
    let view = with(|_| true);
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    assert!(view.failures.is_empty() && view.setup.cells_not_run.len() == 1);
    for output in [text::render(&view, 100, false), markdown::render(&view)] {
        let line = "redis/steady/8: not available: no network (expected root)";
        assert_eq!(output.matches(line).count(), 1, "{output}");
        assert!(!output.contains("ailed trials"), "{output}");
    }
    // Once it could run, a failure is one.
    let view = with(|block| block == 1);
    reason(&view, Validity::Invalid);
    assert!(view.failures.len() == 1 && view.setup.cells_not_run.is_empty());
}

#[test]
fn a_target_that_is_not_installed_matters_only_when_named() {
    let with = |named: bool| {
        let mut recorded = good();
        let message = "mariadbd is not on the path".to_string();
        recorded.trials.retain(|t| !t.cell.starts_with("mysql"));
        recorded.targets[2].unavailable = Some(Failure { class: ErrorClass::Missing, message });
        recorded.header.plan.targets[2].named = named;
        judge(&recorded)
    };
    let view = with(false);
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    assert!(view.setup.targets[2].not_run.as_ref().unwrap().contains("mariadbd"));
    let view = with(true);
    let reason = reason(&view, Validity::Invalid);
    assert!(reason.contains("cannot use target `mysql` (not available)"));
    for output in [text::render(&view, 100, false), markdown::render(&view)] {
        assert_eq!(output.matches("mariadbd is not on the path").count(), 1, "{output}");
    }
}

#[test]
fn a_run_without_trials_is_invalid_and_says_why() {
    let mut recorded = good();
    recorded.trials.clear();
    let view = judge(&recorded);
    assert!(reason(&view, Validity::Invalid).contains("no trial was measured (5 blocks"));
    recorded.seal = None;
    assert!(judge(&recorded).reasons[0].contains("killed"));
    for target in &mut recorded.targets {
        let message = "gone".to_string();
        target.unavailable = Some(Failure { class: ErrorClass::Missing, message });
    }
    assert!(judge(&recorded).reasons[0].contains("files not available, redis not available, "));
}

#[test]
fn a_cell_without_trials_in_a_complete_run_is_reported() {
    let mut recorded = good();
    recorded.trials.retain(|t| t.cell != "redis/steady/8");
    let view = judge(&recorded);
    assert!(reason(&view, Validity::Invalid).contains("`redis/steady/8` was never measured"));
    recorded.seal.as_mut().unwrap().status = SealStatus::Interrupted;
    let view = judge(&recorded);
    assert_eq!((view.validity, view.course.status.name()), (Validity::Valid, "interrupted"));
}

#[test]
fn the_generator_must_not_be_the_bottleneck() {
    let with = |target: &str, share: f64| {
        let mut recorded = good();
        change(&mut recorded, target, "read", |phase, _| phase.own_share = share);
        judge(&recorded)
    };
    let noted_rows = |view: &View| {
        let note = view.footnotes.iter().position(|n| n.contains("generator's own work")).unwrap();
        view.cells.iter().filter(|r| r.footnotes.contains(&note)).count()
    };
    assert!(!noted(&with("redis", 0.1), "generator's own work"));
    let view = with("redis", 0.15);
    assert_eq!((view.validity, noted_rows(&view)), (Validity::Valid, 1));
    let view = with("redis", 0.21);
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons[0].contains("generator-bound"), "{}", view.reasons[0]);
    assert_eq!(with("files", 0.5).validity, Validity::Valid, "files work in the generator");
}

#[test]
fn drift_is_judged_by_the_kind_of_phase() {
    let falling: Vec<u64> = (0..20).map(|i| 1_000 - 20 * i + i % 3).collect();
    let mut recorded = good();
    set_intervals(&mut recorded, &falling);
    let view = judge(&recorded);
    assert_eq!(view.validity, Validity::NotSteady);
    assert_eq!(view.reasons.len(), 12, "reads and changes of 3 targets at 2 loads");
    assert_eq!(view.unsteady, ["rates drifted during the measurement"], "once");
    let first = &view.reasons[0];
    assert!(first.contains("the rate falls by 4"), "{first}");
    assert!(first.contains("in every block: warm up longer"), "{first}");
    assert!(view.reasons.iter().all(|r| !r.contains(" write:")));
    assert!(noted(&view, "write: the rate falls"), "writes grow their data");

    for phase in recorded.trials.iter_mut().flat_map(|t| &mut t.points) {
        phase.operations[0].service.record(phase.length_ns / 3);
    }
    let long = judge(&recorded);
    assert_eq!(long.validity, Validity::Valid, "{:?}", long.reasons);
    assert!(noted(&long, "one operation took 33"), "{:?}", long.footnotes);

    let mut some = good();
    for trial in some.trials.iter_mut().filter(|t| t.block < 2) {
        trial.series.iter_mut().for_each(|s| s.done_per_interval.clone_from(&falling));
    }
    let open = judge(&some);
    assert_eq!(open.validity, Validity::Valid, "2 of 5 blocks can be the host's fault");
    assert!(noted(&open, "stability is not established"), "{:?}", open.footnotes);
    set_intervals(&mut some, &[100, 90]);
    let short = judge(&some);
    let text = reason(&short, Validity::Unreplicated);
    assert!(text.contains("at least 600 ms are needed: --duration"), "{text}");
}

/// On a machine with many CPUs a process on one of them is harmless, unless it is a CPU of the
/// server.
#[test]
fn stolen_cpu_time_makes_a_run_unsteady_but_other_cpu_usage_does_not() {
    let with = |(target, blocks): (&str, u32), of_server: f64, of_generator: f64| {
        let mut recorded = good();
        let is_disturbed = |t: &&mut model::Trial| t.cell.starts_with(target) && t.block < blocks;
        for trial in recorded.trials.iter_mut().filter(is_disturbed) {
            (trial.noise.steal_share, trial.noise.other_cpu_share) = (0.4, 0.4);
            for phase in &mut trial.points {
                let ns = |share: f64| (phase.length_ns as f64 * share) as u64;
                phase.disturbance.generator_ns = ns(of_generator);
                phase.disturbance.server_ns = Some(ns(of_server));
            }
        }
        judge(&recorded)
    };
    assert_eq!(with(("", 5), 0.05, 0.05).validity, Validity::Valid, "at the limit");
    assert_eq!(with(("", 2), 0.5, 0.5).validity, Validity::Valid, "two of five blocks");
    // One target with mostly disturbed trials is enough.
    for view in [with(("redis", 3), 0.06, 0.0), with(("redis", 3), 0.0, 0.06)] {
        let text = reason(&view, Validity::NotSteady);
        assert!(text.contains("`redis/steady/") && text.contains(" in 3 of 5 trials"), "{text}");
        assert!(text.contains("stop other processes"), "{text}");
        assert_eq!(view.unsteady, ["CPU time stolen"]);
    }
}

#[test]
fn too_few_blocks_have_neither_interval_nor_ranking_and_say_so() {
    for blocks in [1, 2] {
        let view = judge(&run(&ALL, blocks, usual));
        let text = reason(&view, Validity::Unreplicated);
        assert!(text.contains("ranking needs 3") && text.contains("--budget"), "{text}");
        assert!(view.cells.iter().all(|r| r.metrics.values().all(|v| v.lo.is_none())));
        let open =
            |c: &crate::view::Comparison| c.verdict.name() == "undecided" && c.ratio.lo.is_none();
        assert!(view.comparisons.iter().all(open));
        let text = crate::text::render(&view, 140, false);
        assert!(text.contains("UNREPLICATED") && !text.contains("* redis"), "{text}");
    }
    // One cell has fewer trials than the others.
    let mut recorded = good();
    recorded.trials.retain(|t| t.cell != "redis/steady/8" || t.block < 2);
    recorded.seal.as_mut().unwrap().status = model::SealStatus::Interrupted;
    assert_eq!(judge(&recorded).validity, Validity::Unreplicated);
    // The worst comes first.
    let mut wrong = run(&ALL, 1, usual);
    wrong.trials[0].points[0].operations[0].counts.wrong = 1;
    assert_eq!(judge(&wrong).validity, Validity::Invalid);
}

#[test]
fn warnings_of_pinning_and_generation_are_in_the_footnotes_of_rows() {
    let mut recorded = good();
    recorded.header.conditions.facts.push(Condition {
        group: "pinning".into(),
        name: "CPUs".into(),
        value: "1".into(),
        warning: Some("generator and server share it".into()),
    });
    recorded.header.plan.cells.iter_mut().for_each(|c| {
        sessions(c).generation = Generation::Inside;
    });
    let view = judge(&recorded);
    for part in ["generator and server share it", "drawn inside the timed span"] {
        let note = view.footnotes.iter().position(|n| n.contains(part)).unwrap();
        assert!(view.cells.iter().all(|r| r.footnotes.contains(&note)), "{part}");
    }
    assert_eq!(view.asked.generation["steady"], "inside");
}

#[test]
fn durability_is_derived_from_reported_settings() {
    let mut recorded = good();
    let text = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect::<Vec<_>>()
    };
    assert!(!noted(&judge(&recorded), "durability"), "nothing is claimed without a setting");
    recorded.targets[1].configuration = text(&[("appendonly", "no"), ("save", "")]);
    let commit = "innodb-flush-log-at-trx-commit";
    recorded.header.plan.targets[2].settings.insert(commit.into(), "1".into());
    let view = judge(&recorded);
    assert!(noted(&view, "durability of redis: nothing is stored on disk"));
    assert!(noted(&view, "durability of mysql: each commit is flushed to disk"));
    recorded.targets[2].configuration =
        text(&[("innodb_flush_log_at_trx_commit", "2"), ("log_bin", "ON"), ("sync_binlog", "1")]);
    recorded.targets[1].configuration = text(&[("appendonly", "yes"), ("appendfsync", "always")]);
    let view = judge(&recorded);
    assert!(noted(&view, "appendfsync always"));
    assert!(noted(
        &view,
        "flushed once a second (innodb_flush_log_at_trx_commit 2, sync_binlog 1)"
    ));
}

#[test]
fn the_control_is_judged_and_never_the_best() {
    let view = judge(&run(&["files", "redis", "redis-again"], 5, usual));
    assert!(noted(&view, "A/A control: redis measured twice is nowhere faster"), "{view:?}");
    let biased = |target: &str, operation: &str, clients: u32| {
        usual(target, operation, clients) * if target == "redis-again" { 1.5 } else { 1.0 }
    };
    let view = judge(&run(&["files", "redis", "redis-again"], 5, biased));
    assert!(noted(&view, "differs from itself in 6 of 6"));
}

#[test]
fn complete_blocks_of_a_killed_run_are_counted() {
    let mut recorded = good();
    recorded.seal = None;
    recorded.trials.pop();
    let view = judge(&recorded);
    assert_eq!((view.course.status.name(), view.course.blocks), ("unsealed", 4));
    let of_trials: f64 = recorded.trials.iter().map(|trial| trial.took_ns as f64 / 1e9).sum();
    assert!((view.course.took_s - of_trials).abs() < 1e-9, "{}", view.course.took_s);
    recorded.trials.truncate(5);
    let view = judge(&recorded);
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons[0].contains("before every cell was measured once"), "{view:?}");
}

#[test]
fn a_phase_without_replies_at_its_end_is_invalid() {
    let shortened = |share: f64, operations: u64| {
        let mut recorded = good();
        for trial in recorded.trials.iter_mut().filter(|t| t.block == 1) {
            for phase in &mut trial.points {
                phase.length_ns = (phase.length_ns as f64 * share) as u64;
                let whole = phase.operations.last_mut().unwrap();
                whole.counts = model::Counts { ok: operations, ..model::Counts::default() };
            }
        }
        let planned = recorded.header.plan.cells[0].workload.phases()[0].stop;
        assert!(matches!(planned, model::Stop::AfterNs(_)), "{planned:?}");
        judge(&recorded)
    };
    assert_eq!(shortened(0.85, 2_000).validity, Validity::Valid);
    // A phase with only a few operations.
    assert_eq!(shortened(0.7, 4).validity, Validity::Valid);
    let view = shortened(0.5, 2_000);
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons[0].contains("nothing was answered in the last 500 ms"), "{view:?}");
}

#[test]
fn a_run_in_progress_is_neither_killed_nor_valid() {
    let mut recorded = good();
    (recorded.seal, recorded.running) = (None, true);
    let view = judge(&recorded);
    assert_eq!((view.course.status.name(), view.course.blocks), ("running", 5));
    assert_eq!(view.course.stopped_because, "the run is in progress");
    assert_eq!(view.validity, Validity::Unreplicated);
    assert!(view.reasons[0].contains("in progress, with 5 complete blocks"), "{:?}", view.reasons);
    recorded.trials.truncate(5);
    assert_eq!(judge(&recorded).validity, Validity::Unreplicated);
}

/// Turns the run into a key-value run under a closed load of one thread.
pub(super) fn as_kv(recorded: &mut Recorded, load: &Load, filled_share: f64) {
    for cell in &mut recorded.header.plan.cells {
        let phases = cell.workload.phases().to_vec();
        cell.load = load.clone();
        cell.workload = Workload::Kv(Kv {
            profile: cell.workload.profile().into(),
            operations: vec![KvOperation { name: "get".into(), command: None }],
            keys: 1_000,
            distribution: "uniform".into(),
            key_prefix: "key:".into(),
            key_bytes: None,
            value_bytes: "1024".into(),
            ttl_s: 0,
            filled_share,
            verify_one_in: 64,
            threads: 1,
            think_ns: 0,
            phases,
            ..Kv::default()
        });
    }
}

/// A key-value run under a closed load with 10,000 operations per second for each operation.
pub(super) fn kv_run() -> Recorded {
    let mut recorded = run(&["redis"], 5, |_, _, _| 10_000.0);
    as_kv(&mut recorded, &Load::closed(8), 1.0);
    recorded
}

pub(super) fn open() -> Load {
    Load::planned(Arrivals::Poisson, Schedule::Steady(1_000), 8)
}

#[test]
fn a_busy_generator_is_the_bottleneck_only_with_a_partly_idle_server() {
    let judged = |own: f64, server: Option<f64>, load: &Load| {
        let mut recorded = run(&["redis"], 5, usual);
        as_kv(&mut recorded, load, 1.0);
        change(&mut recorded, "redis", "read", |phase, _| {
            let length_ns = phase.length_ns as f64;
            phase.generator_cpu_ns = (length_ns * own) as u64;
            phase.server_cpu_ns = server.map(|share| (length_ns * share) as u64);
        });
        judge(&recorded)
    };
    let closed = Load::closed(8);
    let view = judged(0.97, Some(0.5), &closed);
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons.iter().any(|r| r.contains("generator-bound")), "{:?}", view.reasons);
    assert_eq!(judged(0.97, Some(0.98), &closed).validity, Validity::Valid);
    assert_eq!(judged(0.5, Some(0.5), &closed).validity, Validity::Valid);
    let view = judged(0.97, None, &closed);
    assert_eq!(view.validity, Validity::Valid);
    assert!(view.footnotes.iter().any(|n| n.contains("may be faster than measured")));
    assert_eq!(judged(0.97, Some(0.5), &open()).validity, Validity::Valid);
}

#[test]
fn unsent_requests_make_a_run_invalid() {
    let mut recorded = run(&["redis"], 5, usual);
    let load = open();
    as_kv(&mut recorded, &load, 1.0);
    assert_eq!(judge(&recorded).validity, Validity::Valid);
    change(&mut recorded, "redis", "read", |phase, _| phase.unsent = 3);
    let view = judge(&recorded);
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons[0].contains("15 requests were due"), "{:?}", view.reasons);
}

#[test]
fn a_run_with_only_its_first_trial_in_progress_is_not_invalid() {
    let mut recorded = run(&["redis"], 1, usual);
    recorded.trials.clear();
    (recorded.seal, recorded.running) = (None, true);
    let view = judge(&recorded);
    assert_eq!((view.validity, view.course.status.name()), (Validity::Unreplicated, "running"));
    let expected = "the run is in progress, with 0 complete blocks so far";
    assert_eq!(view.reasons, [expected]);
}

#[test]
fn an_outage_is_reported_and_not_steady() {
    let mut recorded = run(&["redis"], 5, usual);
    let load = open();
    as_kv(&mut recorded, &load, 1.0);
    let outage = model::Outage {
        phase: "read".into(),
        server: "127.0.0.1:7003".into(),
        begun_ns: 300_000_000,
        length_ns: 231_000_000,
        taken_over_by: Some("127.0.0.1:7006".into()),
        to_the_end: false,
    };
    let trial = recorded.trials.iter_mut().find(|t| t.block == 1).unwrap();
    trial.outages.push(outage);
    let view = judge(&recorded);
    let expected =
        "block 2: 127.0.0.1:7003 was unavailable for 231 ms; 127.0.0.1:7006 took over from it";
    assert_eq!(view.validity, Validity::NotSteady);
    assert!(view.reasons.len() == 1 && view.reasons[0].contains(expected), "{:?}", view.reasons);
    let row = view.cells.iter().find(|row| row.operation == "read").unwrap();
    let notes: Vec<&String> = row.footnotes.iter().map(|n| &view.footnotes[*n]).collect();
    assert!(notes.iter().any(|note| note.contains(expected)), "{notes:?}");
    // A lower rate would not bring the server back.
    let trial = recorded.trials.iter_mut().find(|t| !t.outages.is_empty()).unwrap();
    trial.points.iter_mut().find(|p| p.phase == "read").unwrap().unsent = 3;
    let view = judge(&recorded);
    assert_eq!(view.validity, Validity::Invalid);
    let unsent = "3 requests were due and could not be sent within the timeout: 127.0.0.1:7003";
    assert!(view.reasons[0].contains(unsent), "{:?}", view.reasons);
    assert!(!view.reasons.iter().any(|r| r.contains("lower rate")), "{:?}", view.reasons);
}

#[test]
fn a_planned_change_of_rate_is_not_drift() {
    let view = |schedule: Schedule| {
        let mut recorded = run(&["redis"], 5, usual);
        as_kv(&mut recorded, &Load { schedule, ..open() }, 1.0);
        let rising: Vec<u64> = (0..20).map(|i| 100 + 50 * i).collect();
        set_intervals(&mut recorded, &rising);
        judge(&recorded)
    };
    assert_eq!(view(Schedule::Steady(1_000)).validity, Validity::NotSteady);
    let ladder = Stage { length_ns: 2_000_000_000, from: 100, to: 1_000 };
    assert_eq!(view(Schedule::Stages(vec![ladder])).validity, Validity::Valid);
}

#[test]
fn misses_of_unfilled_keys_are_allowed() {
    for (filled_share, expected) in [(1.0, Validity::Invalid), (0.5, Validity::Valid)] {
        let mut recorded = run(&["redis"], 5, usual);
        as_kv(&mut recorded, &Load::closed(8), filled_share);
        change(&mut recorded, "redis", "read", |phase, i| {
            let counts = &mut phase.operations[i].counts;
            (counts.miss, counts.ok) = (counts.ok / 2, counts.ok / 2);
        });
        assert_eq!(judge(&recorded).validity, expected, "{filled_share}");
    }
}

/// A key-value run with this rate on the null server in each phase.
fn with_null_rate(load: &Load, null: Result<f64, &str>) -> View {
    judge(&recorded_with_null_rate(load, null))
}

fn recorded_with_null_rate(load: &Load, null: Result<f64, &str>) -> Recorded {
    let mut recorded = run(&["redis"], 5, |_, _, _| 10_000.0);
    as_kv(&mut recorded, load, 1.0);
    let header = &mut recorded.header;
    for cell in &header.plan.cells {
        let rates = cell.workload.phases().iter().map(|phase| NullRate {
            cell: cell.id.clone(),
            phase: phase.name.clone(),
            rate_per_s: null.ok(),
            not_checked: null.err().map(Into::into),
            server_cpus: 2,
        });
        header.null_rates.extend(rates);
    }
    recorded
}

#[test]
fn the_generator_must_be_twice_as_fast_on_the_null_server() {
    let closed = Load::closed(8);
    // The median block is within a few percent of 10,000/s.
    let view = with_null_rate(&closed, Ok(21_000.0));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    let null = view.cells[0].metrics["null_rate_per_s"];
    assert_eq!((null.center, null.lo, null.hi), (21_000.0, None, None));

    // This close to the limit a single measurement decides nothing.
    for near in [19_000.0, 21_000.0] {
        let view = with_null_rate(&closed, Ok(near));
        assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
        assert!(noted(&view, "too near to 2× to say"), "{:?}", view.footnotes);
    }
    assert!(!noted(&with_null_rate(&closed, Ok(23_000.0)), "too near"));

    let view = with_null_rate(&closed, Ok(17_000.0));
    assert_eq!((view.validity, view.reasons.len()), (Validity::Invalid, 6));
    let text = &view.reasons[0];
    assert!(text.starts_with("`redis/steady/1` write: generator-bound, the server "), "{text}");
    for part in ["reaches 17.0 k/s on a null server", "at least 2× is needed", "--threads"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_saturated_server_needs_no_null_server_twice_as_fast() {
    let judged_with = |program, own: f64, server: Option<f64>| {
        let mut recorded = recorded_with_null_rate(&Load::closed(8), Ok(15_000.0));
        recorded.header.plan.targets[0].program = program;
        for operation in ["write", "read", "change"] {
            change(&mut recorded, "redis", operation, |phase, _| {
                let length_ns = phase.length_ns as f64;
                phase.generator_cpu_ns = (length_ns * own) as u64;
                phase.server_cpu_ns = server.map(|share| (length_ns * share) as u64);
            });
        }
        judge(&recorded)
    };
    let judged = |own, server| judged_with(None, own, server);
    let view = judged(0.7, Some(0.96));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    assert!(noted(&view, "the target used 96 % of the CPUs it can use"), "{:?}", view.footnotes);
    for (own, server) in [(0.7, Some(0.8)), (0.95, Some(0.96)), (0.7, None)] {
        assert_eq!(judged(own, server).validity, Validity::Invalid, "{own} {server:?}");
    }
    // With two I/O threads Redis can use both CPUs.
    let mut threaded = recorded_with_null_rate(&Load::closed(8), Ok(15_000.0));
    let settings = &mut threaded.header.plan.targets[0].settings;
    settings.insert("io-threads".into(), "2".into());
    for operation in ["write", "read", "change"] {
        change(&mut threaded, "redis", operation, |phase, _| {
            phase.generator_cpu_ns = phase.length_ns / 2;
            phase.server_cpu_ns = Some(phase.length_ns * 96 / 100);
        });
    }
    assert_eq!(judge(&threaded).validity, Validity::Invalid);
    // Both have two CPUs: Valkey can use one of them, KeyDB both.
    let view = judged_with(Program::of_target("valkey"), 0.7, Some(0.96));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    assert_eq!(
        view.setup.targets[0].place,
        "a private valkey-server, started fresh for each trial"
    );
    for (server, validity) in [(0.96, Validity::Invalid), (1.92, Validity::Valid)] {
        let view = judged_with(Program::of_target("keydb"), 0.7, Some(server));
        assert_eq!(view.validity, validity, "{:?}", view.reasons);
    }
}

#[test]
fn a_planned_rate_up_to_half_the_null_rate_is_allowed() {
    let open = |rate| Load::planned(Arrivals::Constant, Schedule::Steady(rate), 8);
    assert_eq!(with_null_rate(&open(10_000), Ok(20_000.0)).validity, Validity::Valid);
    let view = with_null_rate(&open(11_200), Ok(20_000.0));
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons[0].contains("the plan is 11.2 k/s"), "{:?}", view.reasons);
    assert!(view.reasons[0].contains("plan a lower --rate"), "{:?}", view.reasons);
}

#[test]
fn commands_unknown_to_the_null_server_give_a_footnote() {
    let view = with_null_rate(&Load::closed(8), Err("unknown command"));
    assert_eq!(view.validity, Validity::Valid, "{:?}", view.reasons);
    assert!(noted(&view, "not checked against the null server: unknown command"));
    assert!(view.cells.iter().all(|r| !r.metrics.contains_key("null_rate_per_s")));
}
