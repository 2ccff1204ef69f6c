//! Rules on completeness: whether everything planned was measured.

use model::{Cell, ErrorClass, Scale, SealStatus, Trial};
use stats::compare::FEWEST_BLOCKS;

use super::served;
use crate::ending::{unsealed, whole_blocks};
use crate::findings::Findings;
use crate::measurement::Measurement;
use crate::recorded::Recorded;
use crate::view::RampOutcome;

/// Targets named by the user that cannot be used.
pub(super) fn named_targets(recorded: &Recorded, _: &[Measurement<'_>], findings: &mut Findings) {
    for target in recorded.header.plan.targets.iter().filter(|t| t.named) {
        if let Some(failure) = recorded.unavailable(&target.name) {
            findings.invalid.push(format!(
                "cannot use target `{}` ({}), see under Not run",
                target.name, failure.class
            ));
        }
    }
}

/// Number of complete blocks.
pub(super) fn blocks(recorded: &Recorded, _: &[Measurement<'_>], findings: &mut Findings) {
    if recorded.trials.is_empty() && !recorded.running {
        findings.invalid.push(format!("no trial was measured{}", why_no_trial(recorded)));
        return;
    }
    let blocks = recorded.seal.as_ref().map_or_else(|| whole_blocks(recorded), |s| s.blocks);
    if recorded.running {
        let text = format!("the run is in progress, with {blocks} complete blocks so far");
        findings.unreplicated(text);
    } else if blocks == 0 {
        let text = "the run ended before every cell was measured once: continue it with --resume";
        findings.invalid.push(text.into());
    }
    findings.invalid.extend(lost_between_trials(recorded));
    let has_workers = recorded.header.plan.places.workers > 0;
    if has_workers && recorded.seal.as_ref().is_some_and(|seal| seal.resumed) {
        findings.footnotes.push(
            "the run was resumed with new workers; the conditions describe those of its start"
                .into(),
        );
    }
}

/// The end of a run that lost a worker, or the machine of its servers, while no trial ran. A loss
/// during a trial fails that trial.
fn lost_between_trials(recorded: &Recorded) -> Option<String> {
    let seal = recorded.seal.as_ref().filter(|seal| seal.lost)?;
    let is_told = recorded.trials.iter().any(Trial::is_lost);
    (!is_told).then(|| {
        format!("the run ended early: {}; --resume measures the rest", seal.stopped_because)
    })
}

/// Why nothing was measured, if the record says so.
fn why_no_trial(recorded: &Recorded) -> String {
    let missing: Vec<String> = recorded
        .targets
        .iter()
        .filter_map(|t| Some(format!("{} {}", t.target, t.unavailable.as_ref()?.class)))
        .collect();
    if !missing.is_empty() {
        return format!(" ({}; see what was not run)", missing.join(", "));
    }
    match &recorded.seal {
        Some(seal) => format!(" ({})", seal.stopped_because),
        None => format!(" ({})", unsealed(recorded)),
    }
}

/// Failed trials. Failed probes are points instead, since they show the limit of a search, and
/// cells for which this machine lacks something are listed as not run.
pub(super) fn failed_trials(
    recorded: &Recorded,
    cell: &Cell,
    trials: &[&Trial],
    findings: &mut Findings,
) {
    if recorded.lacking(&cell.id).is_some() {
        return;
    }
    measured_again(cell, trials, findings);
    stalled(cell, trials, findings);
    let failures: Vec<_> = trials.iter().filter_map(|t| t.failure.as_ref()).collect();
    let Some(first) = failures.first() else { return };
    let is_lost = trials.iter().any(|trial| trial.is_lost());
    let cure = (first.class == ErrorClass::Full).then(|| served::room(recorded, &cell.target));
    let sentence = format!(
        "`{}`: {} of {} trials failed, first: {}{}",
        cell.id,
        failures.len(),
        trials.len(),
        first.described(),
        cure.unwrap_or_default()
    );
    // If the plan removes service or memory, a failure is a result, unless all trials failed. That
    // a store with too little memory is killed or stops answering always is one.
    let measured = |trial: &Trial| !trial.points.is_empty();
    let is_of_limit = || {
        cell.workload.memory().is_some()
            && failures.iter().all(|failure| failure.is_a_result())
            && recorded.trials.iter().any(measured)
    };
    // What was measured before the action, such as the highest rate, does not count.
    let actions = cell.workload.actions();
    let acted = |trial: &Trial| {
        let mut points = trial.points.iter();
        points.any(|p| actions.is_empty() || actions.iter().any(|a| a.phase == p.phase))
    };
    // A tier refuses more clients than it has connections for.
    let is_of_tier = || {
        let connections = recorded.header.plan.target(&cell.target).map(|t| t.tier.connections);
        connections.flatten().is_some_and(|most| cell.load.clients > most)
            && failures.iter().all(|failure| failure.class == ErrorClass::Refused)
    };
    if is_lost {
        findings.invalid.push(sentence + "; --resume measures the lost trial again");
    } else if cell.workload.may_fail() && trials.iter().copied().any(acted) {
        findings.footnotes.push(format!("{sentence}; means cover the other trials"));
    } else if is_of_limit() || is_of_tier() {
        findings.footnotes.push(sentence);
    } else {
        findings.invalid.push(sentence);
    }
}

/// Trials of which an earlier attempt was lost.
fn measured_again(cell: &Cell, trials: &[&Trial], findings: &mut Findings) {
    let again: Vec<_> = trials.iter().filter_map(|trial| trial.lost_before.first()).collect();
    if let Some(first) = again.first() {
        let (all, many) = (trials.len(), again.len());
        let were = if many == 1 { "was" } else { "were" };
        findings.footnotes.push(format!(
            "`{}`: {many} of {all} trials {were} measured again after a loss, the first: {first}",
            cell.id
        ));
    }
}

/// Phases that ended early because the store stopped answering, although its plan takes nothing
/// from it.
fn stalled(cell: &Cell, trials: &[&Trial], findings: &mut Findings) {
    if cell.workload.may_fail() || cell.workload.memory().is_some() {
        return;
    }
    let points = trials.iter().flat_map(|trial| &trial.points).filter(|p| p.probe.is_none());
    let ends = points.filter_map(|point| point.failure.as_ref()).filter(|f| f.is_a_result());
    let ends: Vec<_> = ends.collect();
    if let Some(first) = ends.first() {
        findings.invalid.push(format!(
            "`{}`: {} of {} trials ended early, first: {}",
            cell.id,
            ends.len(),
            trials.len(),
            first.described()
        ));
    }
}

/// Cells of a complete run without a trial.
pub(super) fn missing_cells(
    recorded: &Recorded,
    cell: &Cell,
    trials: &[&Trial],
    findings: &mut Findings,
) {
    let complete = recorded.seal.as_ref().is_some_and(|s| s.status == SealStatus::Complete);
    // A failed trial is reported elsewhere.
    let measured = |trial: &&Trial| trial.failure.is_some() || !trial.points.is_empty();
    if complete && !trials.iter().any(measured) && !recorded.trials.is_empty() {
        let why = if trials.is_empty() {
            ""
        } else {
            ": no request was due in its time, or the warm-up used that up: measure longer, or \
             change the planned rate"
        };
        findings.invalid.push(format!("`{}` was never measured{why}", cell.id));
    }
}

/// Planned phases without a point in complete trials, because an earlier phase used up the time.
pub(super) fn missing_phases(
    _: &Recorded,
    cell: &Cell,
    trials: &[&Trial],
    findings: &mut Findings,
) {
    let ended = trials.iter().filter(|t| t.failure.is_none() && !t.points.is_empty());
    let ended: Vec<&Trial> = ended.copied().collect();
    for phase in cell.workload.phases() {
        let has = |trial: &Trial| trial.points.iter().any(|point| point.phase == phase.name);
        let lacking: Vec<&Trial> = ended.iter().filter(|trial| !has(trial)).copied().collect();
        if lacking.is_empty() {
            continue;
        }
        let mut points = lacking.iter().flat_map(|trial| &trial.points);
        let why = points.find_map(|point| point.failure.as_ref());
        let why = why.map_or_else(String::new, |failure| format!(": {}", failure.reason()));
        let sentence = format!(
            "`{}` {}: not measured in {} of {} trials{why}",
            cell.id,
            phase.name,
            lacking.len(),
            ended.len()
        );
        if cell.workload.may_fail() {
            findings.footnotes.push(sentence);
        } else {
            findings.invalid.push(sentence);
        }
    }
}

/// Minimum repetitions for a VALID run. A single search repeats the rates around its answer as
/// often as requested. If a trial failed or the run ended early, more blocks are not the remedy.
pub(super) fn repetitions(recorded: &Recorded, all: &[Measurement<'_>], findings: &mut Findings) {
    let plan = &recorded.header.plan;
    let ended = |(trial, _): &&(&Trial, _)| plan.next_probe(trial).is_none();
    let repetitions = all.iter().filter_map(|one| {
        let least = if one.cell.load.search().is_some() { 2 } else { 1 };
        Some(one.decisive.iter().filter(ended).count()).filter(|have| *have >= least)
    });
    let Some(have) = repetitions.min().filter(|have| *have < FEWEST_BLOCKS) else { return };
    let plural = if have == 1 { "" } else { "s" };
    let is_interrupted = recorded.seal.as_ref().is_none_or(|s| s.status != SealStatus::Complete);
    let failed = |trial: &Trial| trial.failure.is_some() && recorded.lacking(&trial.cell).is_none();
    let cure = if recorded.running {
        "more are still to come"
    } else if is_interrupted {
        "the run ended early, continue it with --resume"
    } else if recorded.trials.iter().any(failed) {
        "a trial failed, see why"
    } else if ["bench", "find-max"].contains(&plan.study.as_str()) {
        "--blocks 3"
    } else if (plan.effort.blocks_max as usize) < FEWEST_BLOCKS {
        "--set blocks_max=3"
    } else if plan.scale != Scale::Quick && plan.effort.budget_ns > 0 {
        "a longer --budget, or --scale quick"
    } else {
        "a longer --budget, or --set blocks_min=3"
    };
    findings.unreplicated(format!(
        "{have} block{plural}, but an interval or a ranking needs {FEWEST_BLOCKS}: {cure}"
    ));
}

/// A ramp without a passing stage in some block.
pub(super) fn never_passed(measurement: &Measurement<'_>, findings: &mut Findings) {
    if let Some((_, view)) =
        measurement.ramp.filter(|(_, view)| view.outcome == RampOutcome::NeverHeld)
    {
        findings.invalid.push(view.sentence.clone());
    }
}
