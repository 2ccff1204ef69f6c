//! Data that a claim is judged by on one profile.

use model::Plan;
use std::cell::Cell;

use super::judged::Judged;
use crate::ramp::Ramp;
use crate::recorded::Recorded;
use crate::series::MeasuredPoint;
use crate::view::{ClaimUnit, Comparison, FactView, GrowthView, RampView, Row};

/// Results of a run that claims are judged by.
#[derive(Clone, Copy)]
pub(crate) struct Results<'a> {
    pub(crate) recorded: &'a Recorded,
    pub(crate) phases: &'a [MeasuredPoint<'a>],
    pub(crate) rows: &'a [Row],
    pub(crate) comparisons: &'a [Comparison],
    pub(crate) growth: &'a [GrowthView],
    pub(crate) facts: &'a [FactView],
    pub(crate) ramps: &'a [(Ramp<'a>, RampView)],
}

/// A kind of claims.
pub(super) trait Kind {
    /// The expectation in words.
    fn expected(&self) -> String;

    /// Judges the claim. An error is its result too: why it cannot be judged.
    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged>;

    /// What the measured value is.
    fn unit(&self) -> ClaimUnit {
        ClaimUnit::Ratio
    }
}

impl<K: Kind> Kind for &K {
    fn expected(&self) -> String {
        (**self).expected()
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        (**self).judge(context)
    }

    fn unit(&self) -> ClaimUnit {
        (**self).unit()
    }
}

/// Data to judge a claim on one profile.
pub(super) struct Context<'a> {
    pub(super) recorded: &'a Recorded,
    pub(super) plan: &'a Plan,
    pub(super) phases: &'a [MeasuredPoint<'a>],
    pub(super) rows: &'a [Row],
    pub(super) comparisons: &'a [Comparison],
    pub(super) growth: &'a [GrowthView],
    pub(super) facts: &'a [FactView],
    /// Those of the profile.
    pub(super) ramps: Vec<&'a (Ramp<'a>, RampView)>,
    pub(super) profile: &'a str,
    /// Whether a judged ratio compares misses with hits.
    pub(super) misses: Cell<bool>,
}

impl<'a> Context<'a> {
    pub(super) fn new(results: Results<'a>, profile: &'a str) -> Self {
        let Results { recorded, phases, rows, comparisons, growth, facts, ramps } = results;
        Self {
            recorded,
            plan: &recorded.header.plan,
            phases,
            rows,
            comparisons,
            growth,
            facts,
            ramps: ramps.iter().filter(|(_, view)| view.workload == profile).collect(),
            profile,
            misses: Cell::new(false),
        }
    }

    /// The same for another profile without ramps.
    pub(super) fn in_profile<'b>(&'b self, profile: &'b str) -> Context<'b> {
        Context { ramps: Vec::new(), profile, misses: Cell::new(false), ..*self }
    }
}
