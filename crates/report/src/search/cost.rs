//! What an operation costs near the answer of a search.

use stats::search::{Purpose, Seen};
use std::collections::BTreeMap;

use super::sought::Sought;
use crate::metrics::{Whole, over_points};
use crate::view::Value;

/// How far from the answer probes may be, as a share of it.
const NEAR: f64 = 0.1;

impl Sought<'_> {
    /// What points tell as a whole: over the probes of the confirmation near each block's answer.
    /// Empty without any.
    pub(super) fn costs(&self) -> BTreeMap<String, Value> {
        let mut wholes = Vec::new();
        for block in &self.blocks {
            let rate_per_s = block.rate().map_or(f64::NAN, |rate| rate.center);
            let near = |seen: &Seen| {
                seen.purpose == Purpose::Confirm
                    && !seen.broke
                    && (seen.rate_per_s as f64 / rate_per_s - 1.0).abs() <= NEAR
            };
            let samples = self.recorded.samples_of(block.trial);
            let points = block.pairs().filter(|(seen, _)| near(seen));
            wholes.extend(points.map(|(_, point)| Whole { point, samples }));
        }
        over_points(&wholes, self.recorded.header.plan.seed)
    }
}
