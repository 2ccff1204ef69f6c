//! What others took of the CPUs of a measurement, and where it is too much. Nothing is left out and
//! no figure is corrected for it.

use model::{Disturbance, TAKEN_SHARE_MAX, Trial};

use crate::notes::Notes;
use crate::ramp::{Climb, Ramp, Seen};
use crate::rules::NOISY_TRIALS_MAX;
use crate::show;
use crate::validity::Findings;

/// What to do about it.
const CURE: &str = "stop what else runs there, or measure on a quieter machine";

/// What was taken over all phases of a trial, and how long these were.
fn of_trial(trial: &Trial) -> (Disturbance, u64) {
    let sum = |(sum, length_ns): (Disturbance, u64), phase: &model::PhaseResult| {
        (sum.plus(phase.disturbance), length_ns + phase.wall_ns)
    };
    trial.phases.iter().fold((Disturbance::default(), 0), sum)
}

/// The same as shares of the time: of the generator, and of the server where that is known.
pub(crate) fn shares(trial: &Trial) -> (f64, Option<f64>) {
    let (taken, length_ns) = of_trial(trial);
    let share = |ns: u64| (ns as f64 / length_ns.max(1) as f64).min(1.0);
    (share(taken.generator_ns), taken.server_ns.map(share))
}

/// Finds fault with a run of which most trials were disturbed.
pub(crate) fn check_trials(trials: &[Trial], findings: &mut Findings) {
    let is_disturbed = |trial: &&Trial| {
        let (taken, length_ns) = of_trial(trial);
        taken.share_of(length_ns) > TAKEN_SHARE_MAX
    };
    let disturbed = trials.iter().filter(is_disturbed).count();
    if disturbed as f64 > NOISY_TRIALS_MAX * trials.len() as f64 {
        let text = format!(
            "other processes or virtual machines had the CPUs of generator or server for more than \
             {} of the time in {disturbed} of {} trials: {CURE}",
            show::percent(TAKEN_SHARE_MAX),
            trials.len()
        );
        findings.not_steady("others took the CPUs", text);
    }
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
         and for {} in the stage above it",
        show::percent(below),
        show::percent(above)
    );
    if below.max(above) > TAKEN_SHARE_MAX {
        let words = format!("{text}, so the store may bear more: {CURE}");
        findings.not_steady("others took the CPUs", words);
    } else {
        notes.add(text + "; all that was due counts");
    }
}

fn mean_share<'a, 'b: 'a>(stages: impl Iterator<Item = &'a Seen<'b>>) -> f64 {
    let (sum, length_ns) = stages.fold((Disturbance::default(), 0), |(sum, length_ns), seen| {
        (sum.plus(seen.result.disturbance), length_ns + seen.result.length_ns)
    });
    sum.share_of(length_ns)
}
