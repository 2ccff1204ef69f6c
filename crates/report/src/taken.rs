//! What others took of the CPUs of a measurement, and where it is too much. Nothing is left out and
//! no figure is corrected for it.

use model::{Disturbance, Disturber, Point, TAKEN_SHARE_MAX, Trial};
use std::collections::BTreeMap;

use crate::notes::Notes;
use crate::ramp::{Climb, Ramp, Seen};
use crate::rules::NOISY_TRIALS_MAX;
use crate::show;
use crate::validity::Findings;

/// What to do about it.
const CURE: &str = "stop what else runs there, or measure on a quieter machine";

/// What was taken over all points of a trial, and how long these were.
fn of_trial(trial: &Trial) -> (Disturbance, u64) {
    let sum = |(sum, length_ns): (Disturbance, u64), point: &Point| {
        (sum.plus(point.disturbance), length_ns + point.length_ns)
    };
    trial.points.iter().fold((Disturbance::default(), 0), sum)
}

/// The same as shares of the time: of the generator, and of the server where that is known.
pub(crate) fn shares(trial: &Trial) -> (f64, Option<f64>) {
    let (taken, length_ns) = of_trial(trial);
    let share = |ns: u64| (ns as f64 / length_ns.max(1) as f64).min(1.0);
    (share(taken.generator_ns), taken.server_ns.map(share))
}

/// A phase of a cell in all of its trials.
type Measured<'a> = Vec<(&'a Trial, &'a Point)>;

/// Finds fault with a run in which a phase of a cell was disturbed in most of its trials: a target
/// that is disturbed alone is behind the others for that.
pub(crate) fn check_trials(trials: &[Trial], findings: &mut Findings) {
    let mut measured: BTreeMap<(&str, &str), Measured<'_>> = BTreeMap::new();
    for trial in trials {
        for point in trial.points.iter().filter(|point| point.stage.is_none()) {
            measured.entry((&trial.cell, &point.phase)).or_default().push((trial, point));
        }
    }
    let is_disturbed = |(_, point): &&(&Trial, &Point)| {
        point.disturbance.share_of(point.length_ns) > TAKEN_SHARE_MAX
    };
    let share = |measured: &Measured<'_>| {
        measured.iter().filter(is_disturbed).count() as f64 / measured.len() as f64
    };
    let all = measured.len();
    let mut disturbed: Vec<_> = measured.into_iter().collect();
    disturbed.retain(|(_, measured)| share(measured) > NOISY_TRIALS_MAX);
    let worst = disturbed.iter().max_by(|(_, a), (_, b)| share(a).total_cmp(&share(b)));
    let Some(((cell, phase), worst)) = worst else { return };
    let text = format!(
        "other processes or virtual machines had the CPUs of generator or server for more than {} \
         of the time in {} of {all} phases, for example `{cell}` {phase} in {} of {} trials{}: \
         {CURE}",
        show::percent(TAKEN_SHARE_MAX),
        disturbed.len(),
        worst.iter().filter(is_disturbed).count(),
        worst.len(),
        who(worst.iter().filter(is_disturbed).map(|(trial, _)| *trial))
    );
    findings.not_steady("others took the CPUs", text);
}

/// Notes what was taken in a ramp's stages up to the knee, and finds fault where it was too much
/// there, or in the stage above it, by which the knee is known.
pub(crate) fn check_ramp(ramp: &Ramp<'_>, place: &str, findings: &mut Findings, notes: &mut Notes) {
    let below = mean_share(ramp.whole().flat_map(Climb::up_to_knee));
    let above = mean_share(ramp.whole().filter_map(Climb::missed));
    if below.max(above) <= 0.0 {
        return;
    }
    let text = format!(
        "{place}: others had the CPUs of generator or server for {} of the time up to the knee, \
         and for {} in the stage above it{}",
        show::percent(below),
        show::percent(above),
        who(ramp.climbs.iter().map(|climb| climb.trial))
    );
    if below.max(above) > TAKEN_SHARE_MAX {
        let words = format!("{text}, so the store may bear more: {CURE}");
        findings.not_steady("others took the CPUs", words);
    } else {
        notes.add(text + "; all that was due counts");
    }
}

/// Most that are named.
const NAMED_MAX: usize = 5;

/// Who else ran on the CPUs of generator and server in these trials, as a part of a sentence; empty
/// where it is not known.
pub(crate) fn who<'a>(trials: impl Iterator<Item = &'a Trial>) -> String {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    let mut incomplete = false;
    for found in trials.filter_map(|trial| trial.noise.disturbers.as_ref()) {
        incomplete |= found.incomplete;
        for one in &found.most {
            *all.entry(named(one)).or_default() += one.cpu_ns;
        }
    }
    let mut all: Vec<(String, u64)> = all.into_iter().collect();
    all.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let told: Vec<String> = all
        .into_iter()
        .take(NAMED_MAX)
        .map(|(name, ns)| format!("{name} ({})", show::ns(ns as f64)))
        .collect();
    let more = if incomplete { ", and perhaps others" } else { "" };
    if told.is_empty() {
        return String::new();
    }
    format!(", mostly by {}{more}", told.join(", "))
}

fn named(one: &Disturber) -> String {
    match &one.name {
        Some(name) if one.is_kernel => format!("{name} of the kernel"),
        Some(name) => name.clone(),
        None => format!("ended process {}", one.pid),
    }
}

fn mean_share<'a, 'b: 'a>(stages: impl Iterator<Item = &'a Seen<'b>>) -> f64 {
    let (sum, length_ns) = stages.fold((Disturbance::default(), 0), |(sum, length_ns), seen| {
        (sum.plus(seen.result.disturbance), length_ns + seen.result.length_ns)
    });
    sum.share_of(length_ns)
}
