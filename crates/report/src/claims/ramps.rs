//! Ramps, read for a claim.

use stats::Doubt;

use super::context::Context;
use super::judged::{Judged, all_cases, not_run, undecided};
use crate::blocks::ratio_over_blocks;
use crate::cases::Case;
use crate::ramp::{Ladder, Ramp, paired};
use crate::view::{RampView, Value};

impl Context<'_> {
    pub(super) fn ramp(&self, target: &str) -> Result<(&Ramp<'_>, &RampView), Judged> {
        let found = self.ramps.iter().find(|(_, view)| view.target == target);
        let missing = || not_run(format!("{target} was not measured"));
        found.map(|(ramp, view)| (ramp, view)).ok_or_else(missing)
    }

    /// The first of both targets whose result is only a lower bound.
    pub(super) fn lower_bound(&self, (a, b): (&str, &str)) -> Option<String> {
        let mut views = [a, b].into_iter().filter_map(|target| Some(self.ramp(target).ok()?.1));
        views.find(|view| view.is_lower_bound()).map(|view| view.target.clone())
    }

    /// A ratio over blocks; undecided with too few blocks for a comparison.
    pub(super) fn over_blocks(&self, values: Vec<f64>, what: &str) -> Result<Value, Judged> {
        let seed = self.plan.seed;
        let blocks = values.len();
        let Some(value) = ratio_over_blocks(values.into_iter(), seed) else {
            return Err(not_run(format!("{what} was not reached in any block")));
        };
        match Doubt::about(blocks) {
            Some(doubt) => Err(undecided(Some(value), format!("{what} was measured in {doubt}"))),
            None => Ok(value),
        }
    }

    /// Ratio of `read` of `a` to that of `b`.
    pub(super) fn ratio_of_ramps(
        &self,
        (a, b): (&str, &str),
        read: impl Fn(&Ladder<'_>) -> Option<f64>,
    ) -> Result<Value, Judged> {
        let (values, others) = paired(self.ramp(a)?.0, self.ramp(b)?.0, read);
        let ratios = values.iter().zip(&others).map(|(a, b)| a / b).collect();
        self.over_blocks(ratios, &format!("this rate of both {a} and {b}"))
    }

    /// Values of `read` over both ramps of each block.
    pub(super) fn each(
        &self,
        (a, b): (&str, &str),
        what: &str,
        read: impl Fn(&Ladder<'_>, &Ladder<'_>) -> Option<f64>,
    ) -> Result<Value, Judged> {
        let (one, two) = (self.ramp(a)?.0, self.ramp(b)?.0);
        let values = one.whole().filter_map(|ladder| {
            let twin = two.whole().find(|other| other.trial.block == ladder.trial.block)?;
            read(ladder, twin)
        });
        self.over_blocks(values.collect(), what)
    }
}

/// A case whose interval decides.
pub(super) fn plain(ratio: Value, place: String) -> Case {
    Case { ratio, ends: ratio.interval(), place, caveat: String::new() }
}

/// Judges all cases together; `describe` explains the deciding one.
pub(super) fn judged(
    cases: impl Iterator<Item = Result<Case, Judged>>,
    range: (f64, f64),
    of_each: &str,
    describe: impl Fn(&Case) -> String,
) -> Result<Judged, Judged> {
    let cases: Vec<Case> = cases.collect::<Result<_, _>>()?;
    all_cases(&cases, range, (None, of_each), |case| format!(", where {}", describe(case)))
}
