//! When a server gave no service while it was measured: said beside the figures, which are then of
//! no one state.

use model::{Outage, PhaseResult, Trial};

use crate::notes::Notes;
use crate::series::MeasuredPhase;
use crate::show;
use crate::validity::Findings;

/// Outages that are told one by one among the reasons; of more their number.
const TOLD_MAX: usize = 3;

/// One of them as a clause.
fn clause(outage: &Outage) -> String {
    let Outage { server, length_ns, taken_over_by, to_the_end, .. } = outage;
    let length = show::ns(*length_ns as f64);
    let end = if *to_the_end { ", up to the end" } else { "" };
    let then = match taken_over_by {
        Some(by) => format!("; its slots were taken over by {by}"),
        None => String::new(),
    };
    format!("{server} gave no service for {length}{end}{then}")
}

/// All of a phase in all blocks, as clauses; `None` where there are none.
pub(crate) fn of_phase(phase: &MeasuredPhase<'_>) -> Option<String> {
    let outages = phase.trials.iter().flat_map(|(_, measured)| &measured.outages);
    let clauses: Vec<String> = outages.map(clause).collect();
    (!clauses.is_empty()).then(|| clauses.join(", "))
}

/// The footnotes that rows of a phase with outages carry.
pub(crate) fn notes(phase: &MeasuredPhase<'_>, notes: &mut Notes) -> Vec<usize> {
    let note = |(trial, measured): &(&Trial, &PhaseResult)| {
        let place = format!("{}, block {}", phase.label(), trial.block + 1);
        let outages = measured.outages.iter();
        outages.map(|o| notes.add(format!("{place}: {}", clause(o)))).collect::<Vec<_>>()
    };
    phase.trials.iter().flat_map(note).collect()
}

/// Finds fault with a run in which a server gave no service while it was measured.
pub(crate) fn check(trials: &[Trial], findings: &mut Findings) {
    let of_trial = |trial: &Trial| {
        let outages = trial.phases.iter().flat_map(|phase| &phase.outages);
        let told =
            |outage| format!("`{}`, block {}: {}", trial.cell, trial.block + 1, clause(outage));
        outages.map(told).collect::<Vec<_>>()
    };
    let mut told: Vec<String> = trials.iter().flat_map(of_trial).collect();
    let all = told.len();
    if all > TOLD_MAX {
        told.truncate(TOLD_MAX);
        told.push(format!("{} more outages", all - TOLD_MAX));
    }
    for outage in told {
        let sentence =
            format!("{outage}; the figures mix that time with what was before and after");
        findings.not_steady("a server gave no service for a while", sentence);
    }
}
