//! Comparison of the highest rates of two targets by block, with the rules of all comparisons.

use model::study::claims::Figure;

use super::ladder::{Ladder, Ramp};
use crate::highest::{Highest, Side, compared};
use crate::recorded::Recorded;
use crate::view::{Comparison, RampOutcome, RampView};

/// Compared metrics, each with its kind of highest rate.
const COMPARED: [(&str, Figure); 3] = [
    ("reached_per_s", Figure::Reached),
    ("knee_per_s", Figure::Knee),
    ("within_limit_per_s", Figure::WithinLimit),
];

/// One of the highest rates of a ramp; `None` for another figure.
pub(crate) fn highest(ladder: &Ladder<'_>, which: Figure, limit_ns: Option<u64>) -> Option<f64> {
    match which {
        Figure::Reached => Some(ladder.reached()),
        Figure::Knee => Some(ladder.last_passing()?.rate()),
        Figure::WithinLimit => Some(ladder.within(limit_ns?)?.rate()),
        _ => None,
    }
}

/// Values of `read` for both targets in the blocks in which both have one.
pub(crate) fn paired(
    a: &Ramp<'_>,
    b: &Ramp<'_>,
    read: impl Fn(&Ladder<'_>) -> Option<f64>,
) -> (Vec<f64>, Vec<f64>) {
    let twin = |ladder: &Ladder<'_>| {
        let other = b.whole().find(|other| other.trial.block == ladder.trial.block)?;
        Some((read(ladder)?, read(other)?))
    };
    a.whole().filter_map(twin).unzip()
}

/// All pairs of targets of a profile.
pub(crate) fn comparisons(recorded: &Recorded, ramps: &[(Ramp<'_>, RampView)]) -> Vec<Comparison> {
    let plan = &recorded.header.plan;
    let mut pairs = Vec::new();
    for (i, (a, of_a)) in ramps.iter().enumerate() {
        for (b, of_b) in &ramps[i + 1..] {
            if of_a.workload != of_b.workload || a.phase != b.phase {
                continue;
            }
            let sides = [(a, of_a), (b, of_b)];
            let sides = sides.map(|(a, view)| Side {
                cell: a.cell,
                lower_bound_reason: lower_bound_reason(view),
            });
            pairs.extend(COMPARED.map(|(metric, which)| {
                let values = paired(a, b, |ladder| highest(ladder, which, plan.limit_ns));
                Highest { metric, operation: a.phase, sides, values }
            }));
        }
    }
    compared(plan, pairs)
}

/// Why the result of a ramp is only a lower bound; `None` if the ramp found the limit, or nothing.
pub(crate) fn lower_bound_reason(view: &RampView) -> Option<&'static str> {
    match view.outcome {
        RampOutcome::Generator => Some("the generator was the limit"),
        RampOutcome::NeverMissed => Some("it was never saturated"),
        RampOutcome::Found | RampOutcome::NeverHeld | RampOutcome::Broken => None,
    }
}
