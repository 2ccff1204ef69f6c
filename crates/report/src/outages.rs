//! Outages of servers during a measurement. They are reported with the numbers, which then mix
//! several states.

use model::{Cell, EventKind, Outage, Point, Trial, TrialEvent};

use crate::findings::Findings;
use crate::measurement::Measurement;
use crate::notes::Notes;
use crate::recorded::Recorded;
use crate::series::MeasuredPoint;
use crate::show;

/// Maximum number of outages listed among the reasons; further ones are only counted.
const LISTED_MAX: usize = 3;

/// An outage as a clause.
fn clause(outage: &Outage) -> String {
    let Outage { server, length_ns, taken_over_by, to_the_end, .. } = outage;
    let length = show::ns(*length_ns as f64);
    let end = if *to_the_end { ", until the end of the run" } else { "" };
    let then = match taken_over_by {
        Some(by) => format!("; {by} took over from it"),
        None => String::new(),
    };
    format!("{server} was unavailable for {length}{end}{then}")
}

/// The outages in a phase.
fn within<'a>(trial: &'a Trial, phase: &str) -> impl Iterator<Item = &'a Outage> {
    trial.outages.iter().filter(move |outage| outage.phase == phase)
}

/// The outages in the phases of some points, as clauses; `None` without any.
pub(crate) fn of_points(points: &[(&Trial, &Point)]) -> Option<String> {
    let of = |(trial, point): &(&Trial, &Point)| {
        within(trial, &point.phase).map(clause).collect::<Vec<_>>()
    };
    let clauses: Vec<String> = points.iter().flat_map(of).collect();
    (!clauses.is_empty()).then(|| clauses.join(", "))
}

/// The footnotes on outages for the rows of a phase.
pub(crate) fn notes(phase: &MeasuredPoint<'_>, notes: &mut Notes) -> Vec<usize> {
    let mut note = |trial: &Trial| {
        let place = format!("{}, block {}", phase.label(), trial.block + 1);
        let outages = within(trial, phase.name);
        outages.map(|o| notes.add(format!("{place}: {}", clause(o)))).collect::<Vec<_>>()
    };
    phase.trials.iter().flat_map(|(trial, _)| note(trial)).collect()
}

/// Reports a run with outages during a measurement, except in cells whose plan interrupts service.
pub(crate) fn check(recorded: &Recorded, _: &[Measurement<'_>], findings: &mut Findings) {
    let of_trial = |trial: &Trial| {
        let line =
            |outage| format!("`{}`, block {}: {}", trial.cell, trial.block + 1, clause(outage));
        trial.outages.iter().map(line).collect::<Vec<_>>()
    };
    let cells = &recorded.header.plan.cells;
    let may_fail = |t: &&Trial| cells.iter().any(|c| c.id == t.cell && c.workload.may_fail());
    let trials = recorded.trials.iter().filter(|trial| !may_fail(trial));
    let mut lines: Vec<String> = trials.flat_map(of_trial).collect();
    let all = lines.len();
    if all > LISTED_MAX {
        lines.truncate(LISTED_MAX);
        lines.push(format!("{} more outages", all - LISTED_MAX));
    }
    for outage in lines {
        let sentence =
            format!("{outage}; the figures mix that time with what was before and after");
        findings.not_steady("a server was unavailable for a while", sentence);
    }
}

/// Reports trials in which a server stopped answering although the plan did not stop it.
pub(crate) fn silent_servers(
    _: &Recorded,
    cell: &Cell,
    trials: &[&Trial],
    findings: &mut Findings,
) {
    for trial in trials {
        let is_silence = |e: &&TrialEvent| matches!(e.kind, EventKind::Silent | EventKind::Ended);
        let mut silent = trial.events.iter().filter(is_silence);
        let Some(first) = silent.next() else { continue };
        let later = || trial.events.iter().filter(|event| event.at_ns >= first.at_ns);
        let of = |kind| move |event: &&TrialEvent| event.kind == kind;
        let back = later().filter(of(EventKind::Back)).find(|e| e.subject == first.subject);
        let then = match back {
            _ if first.kind == EventKind::Ended => "'s process ended".into(),
            Some(back) => {
                let length = show::ns((back.at_ns - first.at_ns) as f64);
                format!(" stopped answering for {length}")
            }
            None => " stopped answering until the end of the run".into(),
        };
        let promoted = |server: &str| {
            later().filter(of(EventKind::Promoted)).any(|event| event.subject == server)
        };
        let fault = later().find(|e| e.kind.is_fault()).filter(|e| promoted(&e.subject));
        let other = fault.map_or_else(String::new, |fault| {
            format!("; the plan then interrupted {}, which had taken over", fault.subject)
        });
        let more = match silent.count() {
            0 => String::new(),
            more => format!(" (and {more} more silences)"),
        };
        let sentence = format!(
            "`{}`, block {}: {}{then}{more}, which was not planned{other}: check whether it \
             was stopped, or measure on a quieter machine",
            cell.id,
            trial.block + 1,
            first.subject
        );
        findings.not_steady("a server stopped answering that the plan did not stop", sentence);
    }
}
