//! What an operation costs near the answer of a search.

use stats::search::{Purpose, Seen};
use std::collections::BTreeMap;

use super::Judged;
use crate::metrics::{Whole, over_points};
use crate::view::Value;

/// How far from the answer probes may be, as a share of it.
const NEAR: f64 = 0.1;

impl Judged<'_> {
    /// What points tell as a whole: over the probes of the confirmation near a rate. Empty without
    /// any.
    pub(super) fn costs(&self, rate_per_s: f64) -> BTreeMap<String, Value> {
        let near = |seen: &Seen| {
            seen.purpose == Purpose::Confirm
                && !seen.broke
                && (seen.rate_per_s as f64 / rate_per_s - 1.0).abs() <= NEAR
        };
        let wholes = self.pairs().filter(|(seen, _)| near(seen)).filter_map(|(_, trial)| {
            let samples = self.recorded.samples_of(trial);
            Some(Whole { point: trial.points.first()?, samples })
        });
        over_points(&wholes.collect::<Vec<_>>(), self.recorded.header.plan.seed)
    }
}
