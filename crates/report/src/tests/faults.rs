//! Words for what clients noticed of faults.

use model::{EventKind, Schedule, Trial, TrialEvent};

use super::happened::{at_share, killed};
use crate::view::View;
use crate::{judge, text};

/// Everything that the terminal shows of a run, with all white space as single blanks.
fn flat(view: &View) -> String {
    let details = text::render(view, 400, false);
    details.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a fact.
fn shown(view: &View, name: &str) -> String {
    view.happened.facts.iter().find(|fact| fact.name == name).unwrap().shown.clone()
}

#[test]
fn two_primaries_may_last_until_the_end() {
    let view = judge(&killed(|trial: &mut Trial| {
        let fault = &mut trial.events[0];
        fault.kind = EventKind::Partitioned;
        let at_ns = fault.at_ns + 500_000_000;
        let kind = EventKind::Promoted;
        trial.events.push(TrialEvent { at_ns, kind, subject: "127.0.0.1:7002".into() });
    }));
    assert_eq!(shown(&view, "two_primaries_ns"), "until the end");
    let all = flat(&view);
    assert!(all.contains(" two primaries at once until the end "), "{all}");
    assert!(all.contains(" – – until the end – 0 ") && !all.contains("not at all"), "{all}");
}

#[test]
fn a_planned_rate_that_exceeded_the_limit_before_the_fault_is_explained() {
    let mut recorded = at_share(500, 700);
    for cell in &mut recorded.header.plan.cells {
        cell.load.schedule = Schedule::Steady(300);
    }
    for trial in &mut recorded.trials {
        trial.series[0].p99[..10].iter_mut().for_each(|(_, ns)| *ns = 90_000_000);
    }
    let view = judge(&recorded);
    let one = &view.happened.failovers[0];
    assert_eq!((one.survived, one.trouble.above_limit_before), (Some(0), Some(5)));
    let all = flat(&view);
    let why = "proof-50: p99 was above the limit before 5 of 5 faults already (too high a rate, or \
               a disturbed machine), so these do not count as within the limit again";
    assert!(all.contains(why), "{all}");
}

#[test]
fn one_fault_of_several_is_told_as_such() {
    let mut recorded = at_share(500, 700);
    for trial in recorded.trials.iter_mut().filter(|trial| trial.block == 0) {
        trial.series[0].p99[..10].iter_mut().for_each(|(_, ns)| *ns = 90_000_000);
    }
    let sentence = &judge(&recorded).happened.survivals[0].sentence;
    let words = "again after 4 of 5 faults, and was above it before one of the faults already";
    assert!(sentence.contains(words), "{sentence}");
}

#[test]
fn a_run_without_trials_took_no_time() {
    let mut recorded = killed(|_| {});
    recorded.trials.clear();
    recorded.seal = None;
    let shown = text::summary(&judge(&recorded), 400, false);
    assert!(shown.contains(" no complete block, 0 s of trials"), "{shown}");
}

#[test]
fn a_fault_without_silence_is_shown_alike_among_facts_and_faults() {
    let mut recorded = killed(|_| {});
    for trial in &mut recorded.trials {
        let mut get = trial.points[0].operations[0].clone();
        get.operation = "get".into();
        trial.points[0].operations.push(get);
    }
    let view = judge(&recorded);
    assert_eq!(shown(&view, "get.unavailable_ns"), "< 100 ms");
    let all = flat(&view);
    assert!(all.contains("< 100 ms (< 100 ms)") && !all.contains(" 0 ns"), "{all}");
    assert!(all.contains("the table of faults has medians"), "{all}");
}
