//! Events and statistics of stores during a run.

use model::{
    Act, Action, Arrivals, ErrorClass, EventKind, Fact, Failure, Load, PEAK, ReadBack, Sample,
    Schedule, ThreadCpu, Trial, TrialEvent, Workload,
};

use super::validity::kv_run;
use crate::judge;
use crate::recorded::Recorded;
use crate::text;
use crate::view::{Row, ServerCourse, ServerRole, Validity, View};

/// A kill after a second with 100 intervals of 10 ms: no operations for half a second, and
/// then as many as before; `with` changes each trial.
pub(super) fn killed(with: impl Fn(&mut Trial)) -> Recorded {
    let mut recorded = kv_run();
    for cell in &mut recorded.header.plan.cells {
        let Workload::Kv(kv) = &mut cell.workload else { unreachable!("a key-value run") };
        let phase = kv.phases[0].name.clone();
        kv.actions =
            vec![Action { phase, at_ns: 1_000_000_000, what: Act::KillPrimary, by_command: false }];
    }
    for trial in &mut recorded.trials {
        let series = &mut trial.series[0];
        series.interval_ns = 10_000_000;
        let rates = [(100, 50), (50, 0), (150, 50)];
        let counts = rates.iter().flat_map(|(intervals, count)| vec![*count; *intervals]);
        series.done_per_interval = counts.collect();
        let at_ns = series.begun_ns + 1_000_000_000;
        let subject = "127.0.0.1:7001".to_string();
        trial.events = vec![TrialEvent { at_ns, kind: EventKind::Killed, subject }];
        with(trial);
    }
    recorded
}

/// Text of a fact; `None` if it is missing.
fn shown(view: &View, name: &str) -> Option<String> {
    view.happened.facts.iter().find(|fact| fact.name == name).map(|fact| fact.shown.clone())
}

#[test]
fn the_effect_of_a_kill_on_the_rate_is_reported() {
    let view = judge(&killed(|_| {}));
    assert_eq!(shown(&view, "rate_before_fault_per_s").unwrap(), "5.00 k/s");
    assert_eq!(shown(&view, "fault_lowest_rate_share").unwrap(), "0 %");
    assert_eq!(shown(&view, "fault_recovery_ns").unwrap(), "500 ms");
    assert_eq!((view.happened.events[0].what, view.happened.events[0].at_s), ("killed", 1.0));
}

/// A kill with roles of two servers, of which the second one takes over after half a second, and
/// failures in the fourth interval of each block.
fn with_roles() -> Recorded {
    let mut recorded = killed(|trial| {
        let begun_ns = trial.series[0].begun_ns;
        trial.series[0].failed_per_interval = vec![0, 0, 0, 2];
        trial.series[0].p99 = vec![(1_000_000_000, 1_000_000), (2_000_000_000, 5_000_000)];
        if trial.block == 3 {
            trial.series[0].p99[1].1 = 900_000_000;
        }
        let event = |at_ms: u64, kind, subject: &str| TrialEvent {
            at_ns: begun_ns + at_ms * 1_000_000,
            kind,
            subject: subject.into(),
        };
        trial.events.insert(0, event(0, EventKind::IsPrimary, "127.0.0.1:7001"));
        trial.events.insert(1, event(0, EventKind::IsReplica, "127.0.0.1:7002"));
        trial.events.push(event(1_500, EventKind::Promoted, "127.0.0.1:7002"));
        trial.points[0].length_ns = 3_000_000_000;
    });
    for trial in &recorded.trials {
        let sample = |i: u64| {
            let server = |id, name: &str, cpu_ns| ThreadCpu { id, name: name.into(), cpu_ns };
            let at_ns = trial.series[0].begun_ns + i * 100_000_000;
            // The killed process keeps its counters for a while.
            let own_ns = i.min(10) * 60_000_000;
            let first = (i <= 20).then(|| server(1, "127.0.0.1:7001", own_ns));
            let second = server(2, "127.0.0.1:7002", i * 20_000_000);
            Sample {
                at_ns,
                servers: first.into_iter().chain([second]).collect(),
                ..Sample::default()
            }
        };
        let key = (trial.block, trial.cell.clone());
        recorded.samples.insert(key, (0..=30).map(sample).collect());
    }
    recorded
}

#[test]
fn servers_have_cpu_use_and_roles_over_time_around_a_fault() {
    let view = judge(&with_roles());
    let row =
        view.cells.iter().find(|row| row.charts.as_ref().is_some_and(|c| c.servers.is_some()));
    let charts = row.unwrap().charts.as_ref().unwrap();
    assert_eq!(charts.failed_series.len(), 5);
    let failed = &charts.failed_series[0];
    assert_eq!((failed.len(), failed[2], failed[3]), (300, 0.0, 200.0));
    let servers = charts.servers.as_ref().unwrap();
    assert_eq!((servers.interval_s, servers.worst, servers.blocks.len()), (0.5, 3, 5));
    let [first, second] = &servers.blocks[0][..] else { unreachable!("two servers") };
    assert_eq!((first.name.as_str(), second.name.as_str()), ("127.0.0.1:7001", "127.0.0.1:7002"));
    let percent = |share: &Option<f64>| share.map(|share| (share * 100.0).round());
    let of_first: Vec<_> = first.cpu_share.iter().map(percent).collect();
    assert_eq!(of_first, [Some(60.0), Some(60.0), None, None, None, None]);
    let roles = |server: &ServerCourse| -> Vec<_> {
        server.roles.iter().map(|span| (span.from_s, span.to_s, span.role)).collect()
    };
    assert_eq!(roles(first), [(0.0, 1.0, ServerRole::Primary), (1.0, 3.0, ServerRole::Gone)]);
    assert_eq!(roles(second), [(0.0, 1.5, ServerRole::Replica), (1.5, 3.0, ServerRole::Primary)]);
    let details = text::render(&view, 200, false);
    let promoted = "127.0.0.1:7002 promoted to primary in place of 127.0.0.1:7001 at 1.50 s";
    let flat: String = details.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("killed at 1.00 s") && flat.contains(promoted), "{details}");
    assert!(flat.contains("127.0.0.1:7001 is a primary, "), "{details}");
}

#[test]
fn without_a_fault_there_is_no_time_line_of_servers() {
    let view = judge(&kv_run());
    let has = |row: &Row| row.charts.as_ref().is_some_and(|c| c.servers.is_some());
    assert!(!view.cells.iter().any(has));
}

/// A kill at a share of the highest rate, after which p99 stays above 10 ms for `late_ms`.
pub(super) fn at_share(permille: u32, late_ms: u64) -> Recorded {
    let mut recorded = killed(|trial| {
        let series = &mut trial.series[0];
        // 3 s in intervals of 100 ms; the kill is after 1 s.
        series.p99 = (1..=30_u64)
            .map(|i| {
                let is_late = (11..11 + late_ms / 100).contains(&i);
                (i * 100_000_000, if is_late { 900_000_000 } else { 1_000_000 })
            })
            .collect();
        let mut peak = trial.points[0].clone();
        peak.phase = PEAK.into();
        trial.points.push(peak);
    });
    let plan = &mut recorded.header.plan;
    plan.limit_ns = Some(10_000_000);
    let name = format!("proof-{}", permille / 10);
    for cell in &mut plan.cells {
        let schedule = Schedule::Share(permille);
        cell.load = Load { arrivals: Arrivals::Poisson, schedule, ..cell.load.clone() };
        if let Workload::Kv(kv) = &mut cell.workload {
            kv.profile.clone_from(&name);
        }
    }
    recorded
}

#[test]
fn a_rate_survives_if_p99_is_back_within_the_limit_after_every_fault() {
    let view = judge(&at_share(500, 700));
    let one = &view.happened.failovers[0];
    assert_eq!((one.fault.as_str(), one.faults, one.survived), ("kill", 5, Some(5)));
    let back = one.p99_back_ns.as_ref().unwrap();
    assert_eq!((back.median, back.worst), (Some(7e8), Some(7e8)));
    let survival = &view.happened.survivals[0];
    assert_eq!(survival.share, Some(0.5));
    let sentence = &survival.sentence;
    for part in ["50 % of its highest rate", "700 ms later", "after each of 5 faults"] {
        assert!(sentence.contains(part), "{part}: {sentence}");
    }
    assert!(view.answer.summary[0].pieces.iter().any(|p| p.text.contains("death of its primary")));
}

#[test]
fn a_rate_does_not_survive_if_p99_stays_high() {
    let view = judge(&at_share(900, 1_900));
    let one = &view.happened.failovers[0];
    assert_eq!((one.faults, one.survived), (5, Some(0)));
    let back = one.p99_back_ns.as_ref().unwrap();
    assert_eq!((back.median, back.worst, back.all.len()), (None, None, 0));
    let survival = &view.happened.survivals[0];
    assert_eq!((survival.share, survival.rate_per_s.is_none()), (None, true));
    let words = "at 90 %, p99 was within 10.0 ms again after 0 of 5 faults;";
    assert!(survival.sentence.contains(words), "{}", survival.sentence);
}

#[test]
fn a_fault_whose_trial_failed_is_not_survived() {
    let mut recorded = at_share(500, 700);
    for trial in recorded.trials.iter_mut().filter(|t| t.block < 2) {
        let message = "the server that was restored does not reply".to_string();
        trial.failure = Some(Failure { class: ErrorClass::Timeout, message });
        trial.fill = trial.points.first().cloned();
        trial.points.retain(|point| point.phase == PEAK);
        trial.series.clear();
    }
    let view = judge(&recorded);
    let one = &view.happened.failovers[0];
    assert_eq!((one.faults, one.survived, one.trouble.failed), (5, Some(3), 2));
    let own = &view.happened.survivals[0];
    assert_eq!(own.share, None);
    assert!(own.sentence.contains("after 3 of 5 faults; 2 trials failed"), "{}", own.sentence);
}

#[test]
fn a_limit_that_was_exceeded_before_the_fault_is_reported() {
    let mut recorded = at_share(500, 700);
    for trial in &mut recorded.trials {
        let at_ns = trial.events.iter().find(|e| e.kind == EventKind::Killed).unwrap().at_ns;
        for series in &mut trial.series {
            let before = at_ns - series.begun_ns;
            let early = series.p99.iter_mut().filter(|(until_ns, _)| *until_ns <= before);
            early.for_each(|(_, ns)| *ns = 90_000_000);
        }
    }
    let view = judge(&recorded);
    let one = &view.happened.failovers[0];
    assert_eq!((one.survived, one.trouble.above_limit_before), (Some(0), Some(5)));
    let sentence = &view.happened.survivals[0].sentence;
    let words = "and was above it before each of the faults already";
    assert!(sentence.contains(words), "{sentence}");
}

#[test]
fn lost_writes_are_reported_only_after_reading_back() {
    let read_back = ReadBack { read: 1_000, older: 3, ..ReadBack::default() };
    let view = judge(&killed(|trial| trial.read_back = Some(read_back.clone())));
    assert_eq!(shown(&view, "writes_read_back").unwrap(), "1,000 in each of 5 blocks");
    assert_eq!(
        shown(&view, "writes_lost").unwrap(),
        "15 of 5,000 checked, 3 of 1,000 of them in the worst of 5 blocks"
    );
    let unread = ReadBack { unread: Some("it was gone".into()), ..read_back };
    let view = judge(&killed(|trial| trial.read_back = Some(unread.clone())));
    assert_eq!(shown(&view, "writes_lost"), None);
    assert_eq!(shown(&judge(&killed(|_| {})), "writes_lost"), None);
}

#[test]
fn lost_writes_are_those_of_the_worst_block() {
    let view = judge(&killed(|trial| {
        let (read, older) = if trial.block == 1 { (900, 7) } else { (1_000, 0) };
        trial.read_back = Some(ReadBack { read, older, ..ReadBack::default() });
    }));
    assert_eq!(
        shown(&view, "writes_lost").unwrap(),
        "7 of 4,900 checked, 7 of 900 of them in the worst of 5 blocks"
    );
    assert_eq!(shown(&view, "writes_read_back").unwrap(), "900 or more in each of 5 blocks");
    let lost = view.happened.facts.iter().find(|fact| fact.name == "writes_lost").unwrap();
    assert!((lost.value.center - 7.0).abs() < 1e-9);
}

#[test]
fn keys_written_again_after_the_kill_do_not_count_for_lost_writes() {
    let with = |rewritten: u64| {
        judge(&killed(|trial| {
            let read_back = ReadBack { read: 500, rewritten, ..ReadBack::default() };
            trial.read_back = Some(read_back);
        }))
    };
    let view = with(480);
    assert_eq!(shown(&view, "writes_lost").unwrap(), "0 of 100 checked");
    assert_eq!(view.happened.failovers[0].writes_lost, Some((0, 100)));
    let view = with(500);
    assert_eq!(shown(&view, "writes_lost"), None);
    let note = "in 5 of 5 blocks lost writes are unknown";
    assert!(view.footnotes.iter().any(|n| n.contains(note)), "{:?}", view.footnotes);
}

#[test]
fn if_a_plan_removes_service_some_trials_may_fail_but_not_all() {
    let fail = |trial: &mut Trial| {
        let message = "the server ended".to_string();
        trial.failure = Some(Failure { class: ErrorClass::Closed, message });
        trial.points.clear();
    };
    let one = judge(&killed(|trial| {
        if trial.block == 0 && trial.cell.ends_with("/8") {
            fail(trial);
        }
    }));
    assert_eq!(one.validity, Validity::Valid, "{:?}", one.reasons);
    let all = judge(&killed(fail));
    assert_eq!(all.validity, Validity::Invalid);
    assert!(all.reasons.iter().any(|reason| reason.contains("5 of 5 trials failed")));
    // The highest rate before the fault is not a result of the fault.
    let mut recorded = at_share(500, 700);
    for trial in &mut recorded.trials {
        trial.points.retain(|point| point.phase == PEAK);
        trial.failure = Some(Failure { class: ErrorClass::Closed, message: "gone".into() });
    }
    assert_eq!(judge(&recorded).validity, Validity::Invalid);
}

#[test]
fn trials_without_points_measured_nothing() {
    let view = judge(&killed(|trial| trial.points.clear()));
    assert_eq!(view.validity, Validity::Invalid);
    assert!(view.reasons.iter().any(|reason| reason.contains("was never measured")));
}

#[test]
fn a_summary_omits_details() {
    let view = judge(&killed(|trial| {
        let fact = Fact { name: "fork_ns".into(), value: 2e6, source: "INFO".into() };
        trial.facts.push(fact);
        trial.fill = Some(trial.points[0].clone());
    }));
    assert!(shown(&view, "fill_ns").is_some(), "the page and the JSON have it");
    let text = text::render(&view, 100, false);
    assert!(text.contains("fork") && !text.contains("filling"), "{text}");
}

#[test]
fn only_a_server_stopped_by_the_plan_may_be_silent() {
    let silent = |back: bool| {
        judge(&killed(|trial| {
            let event = |at_ns, kind| {
                let at_ns = trial.series[0].begun_ns + at_ns;
                TrialEvent { at_ns, kind, subject: "127.0.0.1:7002".into() }
            };
            let after = back.then(|| event(1_700_000_000, EventKind::Back));
            let events = [event(500_000_000, EventKind::Silent)].into_iter().chain(after);
            trial.events.extend(events);
        }))
    };
    for (back, words) in
        [(false, "stopped answering until the end of the run"), (true, "answering for 1.2")]
    {
        let view = silent(back);
        assert_eq!(view.validity, Validity::NotSteady, "{:?}", view.reasons);
        let is_about =
            |reason: &String| reason.contains(words) && reason.contains("127.0.0.1:7002");
        assert!(view.reasons.iter().any(is_about), "{:?}", view.reasons);
    }
}

#[test]
fn the_end_of_another_server_explains_which_one_the_plan_killed() {
    let view = judge(&killed(|trial| {
        let before = trial.series[0].begun_ns + 100_000_000;
        let died = trial.events.iter().find(|event| event.kind == EventKind::Killed).unwrap();
        let event = |(kind, subject): (EventKind, &str)| TrialEvent {
            at_ns: before,
            kind,
            subject: subject.into(),
        };
        let events =
            [(EventKind::Ended, "127.0.0.1:7002"), (EventKind::Promoted, died.subject.as_str())];
        let events = events.map(event);
        trial.events.extend(events);
    }));
    let is_about = |reason: &String| {
        reason.contains(
            "127.0.0.1:7002's process ended, which was not planned; the plan then interrupted",
        )
    };
    assert!(view.reasons.iter().any(is_about), "{:?}", view.reasons);
}

#[test]
fn a_resync_after_a_kill_is_not_a_save() {
    let saving = |trial: &mut Trial| {
        let begun_ns = trial.series[0].begun_ns;
        let event =
            |(at_ns, kind)| TrialEvent { at_ns: begun_ns + at_ns, kind, subject: String::new() };
        let times = [(1_600_000_000, EventKind::SaveBegan), (1_900_000_000, EventKind::SaveEnded)];
        trial.events.extend(times.map(event));
    };
    let view = judge(&killed(saving));
    let of_save = |name: &str| name.contains("save");
    assert!(!view.happened.facts.iter().any(|fact| of_save(&fact.name)));
    let began = view.happened.events.iter().find(|e| e.kind == EventKind::SaveBegan).unwrap();
    assert_eq!(began.what, "save or resync began");
    // Under a plan that removes nothing, an automatic save counts.
    let mut recorded = killed(saving);
    for cell in &mut recorded.header.plan.cells {
        let Workload::Kv(kv) = &mut cell.workload else { unreachable!("a key-value run") };
        kv.actions.clear();
    }
    let view = judge(&recorded);
    assert_eq!(
        shown(&view, "save_recovery_ns").unwrap(),
        "never fell below 95 % of it, chance aside"
    );
}

#[test]
fn a_value_from_fewer_blocks_says_so() {
    let view = judge(&killed(|trial| {
        if trial.block == 0 {
            let fact = Fact { name: "fork_ns".into(), value: 2e6, source: "INFO".into() };
            trial.facts.push(fact);
        }
    }));
    assert_eq!(shown(&view, "fork_ns").unwrap(), "2.00 ms; from 1 of 5 blocks");
}
