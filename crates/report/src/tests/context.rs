//! Notes about the whole run.

use crate::fixture::{run, usual};
use crate::recorded::Recorded;
use crate::view::View;
use crate::{judge, text};
use model::{Busy, Disturber, Disturbers};

fn note(view: &View, start: &str) -> Option<String> {
    view.footnotes.iter().find(|note| note.starts_with(start)).cloned()
}

#[test]
fn a_step_of_the_wall_clock_is_noted_and_excluded_from_the_duration() {
    let mut recorded = run(&["files", "redis"], 3, usual);
    let before = judge(&recorded);
    let start = "the wall clock was set by ";
    assert_eq!(note(&before, start), None);
    recorded.trials[7].clock_step_ms = Some(3_600_250);
    recorded.seal.as_mut().unwrap().finished_unix_ms += 3_600_250;
    let after = judge(&recorded);
    let text = note(&after, start).unwrap();
    let cell = &recorded.trials[7].cell;
    assert!(
        text.starts_with(&format!("{start}+3,600 s during trial {cell} of block 2,")),
        "{text}"
    );
    assert_eq!(after.course.took_s.to_bits(), before.course.took_s.to_bits());
    assert_eq!(after.cells[0].metrics, before.cells[0].metrics, "what was measured stays");
    recorded.trials[7].clock_step_ms = Some(-61_000);
    assert!(note(&judge(&recorded), &format!("{start}-61 s")).is_some());
}

#[test]
fn possible_leftovers_of_a_killed_run_are_noted_for_existing_stores() {
    let note_of = |recorded: &Recorded| note(&judge(recorded), "the run was killed");
    let mut recorded = run(&["files", "redis"], 3, usual);
    recorded.seal = None;
    assert_eq!(note_of(&recorded), None, "private servers are cleared by the guard");
    recorded.header.plan.targets[1].address = Some("10.0.0.5:6379 database 9".into());
    let note = note_of(&recorded).unwrap();
    assert!(
        note.contains("`cachedyno clean 0123abcd --target redis=redis://10.0.0.5:6379/9`"),
        "{note}"
    );
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text::render(&judge(&recorded), 80, false)).contains(&words(&note)));
    recorded.seal = run(&["files"], 3, usual).seal;
    assert_eq!(note_of(&recorded), None);
}

#[test]
fn stolen_cpu_time_is_noted_with_its_processes_and_changes_no_verdict() {
    let mut recorded = run(&["files", "redis"], 3, usual);
    let note_of = |recorded: &Recorded| note(&judge(recorded), "other processes used the CPUs of");
    let disturber = |name: Option<&str>, is_kernel, cpu_ns| Disturber {
        name: name.map(Into::into),
        pid: 4711,
        processes: 1,
        is_kernel,
        cpu_ns,
    };
    for trial in &mut recorded.trials {
        let most = vec![
            disturber(Some("rsync"), false, 70_000_000),
            disturber(Some("kworker/1:2-events"), true, 4_000_000),
            disturber(Some("kworker/1:2+events"), true, 6_000_000),
            disturber(None, false, 5_000_000),
        ];
        trial.noise.disturbers = Some(Disturbers { most, incomplete: false });
    }
    // No CPU time was stolen, so other processes did not disturb.
    assert_eq!(note_of(&recorded), None);
    let validity = |recorded: &Recorded| judge(recorded).validity;
    let before = validity(&recorded);
    for phase in recorded.trials.iter_mut().flat_map(|trial| &mut trial.points) {
        phase.disturbance.server_ns = Some(phase.length_ns / 50);
    }
    let sum = "other processes used the CPUs of generator and server, mostly by rsync (840 ms), \
               kworker/1:2 of the kernel (120 ms), ended process 4711 (60.0 ms)";
    assert_eq!(note_of(&recorded).as_deref(), Some(sum));
    assert_eq!(validity(&recorded), before);
    recorded.trials[0].noise.disturbers.as_mut().unwrap().incomplete = true;
    assert!(note_of(&recorded).unwrap().ends_with(", and perhaps others"));
    // If it was too much, the reason names the processes.
    for phase in recorded.trials.iter_mut().flat_map(|trial| &mut trial.points) {
        phase.disturbance.server_ns = Some(phase.length_ns / 5);
    }
    let view = judge(&recorded);
    let named = |reason: &String| reason.contains("mostly by rsync (210 ms)");
    assert!(view.reasons.iter().any(named), "{:?}", view.reasons);
    let advises = |view: &View, cure: &str| view.reasons.iter().any(|r| r.ends_with(cure));
    assert!(advises(&view, "measure on a quieter machine"), "{:?}", view.reasons);
    // Other processes are not to blame for the work of kernel threads.
    for trial in &mut recorded.trials {
        trial.noise.disturbers.as_mut().unwrap().most[1].cpu_ns = 90_000_000;
    }
    let view = judge(&recorded);
    assert!(advises(&view, "more CPUs, or a faster disk"), "{:?}", view.reasons);
}

#[test]
fn other_busy_processes_are_noted() {
    let mut recorded = run(&["files", "redis"], 3, usual);
    let note_of = |recorded: &Recorded| note(&judge(recorded), "other processes on this machine");
    assert_eq!(note_of(&recorded), None);
    for trial in &mut recorded.trials {
        let busy = |name: &str, share: f64| Busy {
            name: name.into(),
            cpu_ns: (trial.took_ns as f64 * share) as u64,
        };
        trial.noise.busiest =
            vec![busy("backup", 0.12), busy("kdamond.0", 0.02), busy("top", 0.001)];
    }
    let note =
        "other processes on this machine: backup (12 % of one CPU), kdamond.0 (2 % of one CPU)";
    assert_eq!(note_of(&recorded).as_deref(), Some(note));
    // The total noise has a different base, which is shown with it.
    let noise = judge(&recorded).setup.noise;
    let others = noise.iter().find(|noise| noise.name == "other processes").unwrap();
    assert_eq!((&*others.median, &*others.worst), ("0 % of all CPUs", "0 %"));
}
