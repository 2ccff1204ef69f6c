//! CPU time stolen from a measurement by other processes or virtual machines, and its limit. No
//! measurement is discarded and no number corrected for it.

use model::{Disturbance, Disturber, Point, TAKEN_SHARE_MAX, Trial};
use std::collections::BTreeMap;

use crate::findings::Findings;
use crate::limits::NOISY_TRIALS_MAX;
use crate::measurement::Measurement;
use crate::notes::Notes;
use crate::ramp::{Ladder, Ramp};
use crate::recorded::Recorded;
use crate::show;

/// Remedy, unless kernel threads took most of the time.
const CURE: &str = "stop other processes on these CPUs, or measure on a quieter machine";
/// Remedy otherwise. Kernel threads also write the stores' own data to the disk.
const KERNEL_CURE: &str = "kernel threads also do the stores' own disk I/O, so stopping other \
                           processes may not help: use a machine with more CPUs, or a faster disk";

/// Total stolen CPU time of some points, and their total length.
fn sum<'a>(points: impl Iterator<Item = &'a Point>) -> (Disturbance, u64) {
    points.fold((Disturbance::default(), 0), |(sum, length_ns), point| {
        (sum.plus(point.disturbance), length_ns + point.length_ns)
    })
}

/// Stolen CPU time over all points of a trial, as shares of their length: of the generator and, if
/// known, of the server.
pub(crate) fn shares(trial: &Trial) -> (f64, Option<f64>) {
    let (taken, length_ns) = sum(trial.points.iter());
    let share = |ns: u64| (ns as f64 / length_ns.max(1) as f64).min(1.0);
    (share(taken.generator_ns), taken.server_ns.map(share))
}

/// Reports a run with a measurement that was disturbed in most of its trials: if only one target is
/// disturbed, it falls behind the others. For a ladder, both the stages up to the knee and the one
/// above it count, because they determine the knee.
pub(crate) fn check(_: &Recorded, all: &[Measurement<'_>], findings: &mut Findings) {
    let is_disturbed = |groups: &Vec<Vec<&Point>>| {
        groups.iter().any(|group| mean_share(group.iter().copied()) > TAKEN_SHARE_MAX)
    };
    let disturbed = |one: &Measurement<'_>| {
        one.decisive.iter().filter(|(_, groups)| is_disturbed(groups)).count()
    };
    let share = |one: &Measurement<'_>| disturbed(one) as f64 / one.decisive.len().max(1) as f64;
    let most = || all.iter().filter(|one| share(one) > NOISY_TRIALS_MAX);
    let Some(worst) = most().max_by(|a, b| share(a).total_cmp(&share(b))) else { return };
    let trials = worst.decisive.iter().filter(|(_, groups)| is_disturbed(groups));
    let trials: Vec<&Trial> = trials.map(|(trial, _)| *trial).collect();
    let cure = if is_mostly_kernel(&trials) { KERNEL_CURE } else { CURE };
    let text = format!(
        "other processes or virtual machines used the CPUs of generator or server, or stopped the \
         generator, for more than {} of the time in {} of {} phases, for example {} in {} of {} \
         trials{}: {cure}",
        show::percent(TAKEN_SHARE_MAX),
        most().count(),
        all.len(),
        worst.label(),
        disturbed(worst),
        worst.decisive.len(),
        who(trials.iter().copied())
    );
    findings.not_steady("CPU time stolen", text);
}

/// Adds a note on CPU time stolen in a ramp's stages up to the knee, and in the stage above it.
pub(crate) fn note_ramp(ramp: &Ramp<'_>, place: &str, notes: &mut Notes) {
    let below = mean_share(ramp.whole().flat_map(Ladder::up_to_knee).map(|seen| seen.result));
    let above = mean_share(ramp.whole().filter_map(Ladder::first_failing).map(|seen| seen.result));
    if below.max(above) > 0.0 {
        let has_above = ramp.whole().any(|ladder| ladder.first_failing().is_some());
        let above = format!(", and for {} in the stage above it", show::percent(above));
        notes.add(format!(
            "{place}: other processes used the CPUs of generator or server for {} of the time up \
             to the knee{}{}; all due requests count",
            show::percent(below),
            if has_above { &above } else { "" },
            who(ramp.ladders.iter().map(|ladder| ladder.trial))
        ));
    }
}

/// Maximum number of processes named.
const NAMED_MAX: usize = 5;
/// Smallest share of the time of all identified processes with which one is named.
const NAMED_SHARE_MIN: f64 = 0.05;

/// The other processes on the CPUs of generator and server in these trials, as part of a sentence;
/// empty if unknown.
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
    let least = NAMED_SHARE_MIN * all.iter().map(|(_, ns)| *ns as f64).sum::<f64>();
    let shown: Vec<String> = all
        .into_iter()
        .take(NAMED_MAX)
        .take_while(|(_, ns)| *ns as f64 >= least)
        .map(|(name, ns)| format!("{name} ({})", show::ns(ns as f64)))
        .collect();
    let more = if incomplete { ", and perhaps others" } else { "" };
    if shown.is_empty() {
        return String::new();
    }
    format!(", mostly by {}{more}", shown.join(", "))
}

/// Whether kernel threads used most of the CPU time of the disturbers that were identified.
fn is_mostly_kernel(trials: &[&Trial]) -> bool {
    let found = trials.iter().filter_map(|trial| trial.noise.disturbers.as_ref());
    let (kernel_ns, all_ns) =
        found.flat_map(|found| &found.most).fold((0, 0), |(kernel, all), one| {
            (kernel + if one.is_kernel { one.cpu_ns } else { 0 }, all + one.cpu_ns)
        });
    kernel_ns * 2 > all_ns
}

fn named(one: &Disturber) -> String {
    match &one.name {
        // The work that a kernel worker has at the moment follows its name.
        Some(name) if one.is_kernel && name.starts_with("kworker/") => {
            format!("{} of the kernel", name.split(['-', '+']).next().unwrap_or(name))
        }
        Some(name) if one.is_kernel => format!("{name} of the kernel"),
        Some(name) => name.clone(),
        None => format!("ended process {}", one.pid),
    }
}

/// Stolen CPU time of some points, as a share of their length.
fn mean_share<'a>(points: impl Iterator<Item = &'a Point>) -> f64 {
    let (sum, length_ns) = sum(points);
    sum.share_of(length_ns)
}
