//! Numbers of a view: with their interval, or as a bound where that is all that is known.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use stats::Estimate;

/// A centre with the ends that are shown beside it: those of its 95 % interval over blocks, within
/// what was observed. Serialised as `{"center":…,"lo":…,"hi":…}`, or as `{"at_least":…}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Rates, ratios and CPU: geometric mean over blocks. Percentiles, means and largest values of
    /// a time: those of all blocks' distributions merged.
    pub center: f64,
    /// Lower end; `None` below three blocks.
    pub lo: Option<f64>,
    /// Upper end.
    pub hi: Option<f64>,
    /// True where the value is known only to be no less than `center`: a percentile beyond the
    /// share of the operations that were answered.
    pub at_least: bool,
    /// Both ends of the interval that decides, where they are not those that are shown.
    decisive: Option<(f64, f64)>,
}

impl Value {
    /// A number with an interval, or without one.
    pub(crate) const fn new(center: f64, lo: Option<f64>, hi: Option<f64>) -> Self {
        Self { center, lo, hi, at_least: false, decisive: None }
    }

    /// An estimate with its whole interval.
    pub(crate) fn of(estimate: &Estimate) -> Self {
        Self::new(estimate.center, estimate.lo(), estimate.hi())
    }

    /// The same with ends that lie within (least, most) of what was observed. What is decided
    /// rests on the whole interval.
    pub(crate) fn within(self, (least, most): (f64, f64)) -> Self {
        let Some(interval) = self.interval() else { return self };
        let lo = self.lo.map(|lo| lo.max(least).min(self.center));
        let hi = self.hi.map(|hi| hi.min(most).max(self.center));
        Self { lo, hi, decisive: Some(interval), ..self }
    }

    /// The same, decided by an interval that holds `other` as well: what follows from it must
    /// follow from both.
    pub(crate) fn decided_with(self, other: Option<(f64, f64)>) -> Self {
        let hull = |(a, b): (f64, f64), (c, d): (f64, f64)| (a.min(c), b.max(d));
        let decisive = self.interval().zip(other).map(|(own, other)| hull(own, other));
        Self { decisive: decisive.or(self.decisive), ..self }
    }

    /// The same up to the upper end of `next`, which nothing is known to lie beyond; without an
    /// upper end where there is no `next`.
    pub(crate) fn up_to(self, next: Option<Self>) -> Self {
        let (lo, _) = self.interval().unwrap_or((self.center, self.center));
        let hi = next.map(|next| next.hi.unwrap_or(next.center).max(self.center));
        let decisive = next.map(|next| {
            let (_, end) = next.interval().unwrap_or((next.center, next.center));
            (lo, end.max(self.center))
        });
        Self { lo: Some(self.lo.unwrap_or(self.center)), hi, decisive, ..self }
    }

    /// The interval by which is decided; `None` where there is none. It may reach beyond the ends
    /// that are shown: those lie within what was observed, and of few blocks the next one may not.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        self.decisive.or_else(|| self.lo.zip(self.hi))
    }

    /// A number without an interval.
    pub(crate) const fn alone(center: f64) -> Self {
        Self::new(center, None, None)
    }

    /// A bound from below.
    pub(crate) const fn at_least(bound: f64) -> Self {
        Self { at_least: true, ..Self::alone(bound) }
    }

    /// A ratio seen from the other side.
    pub(crate) fn turned(self) -> Self {
        let turned = Self::new(1.0 / self.center, self.hi.map(f64::recip), self.lo.map(f64::recip));
        let decisive = self.decisive.map(|(lo, hi)| (hi.recip(), lo.recip()));
        Self { decisive, ..turned }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.at_least {
            let mut value = serializer.serialize_struct("Value", 1)?;
            value.serialize_field("at_least", &self.center)?;
            return value.end();
        }
        let mut value = serializer.serialize_struct("Value", 3)?;
        value.serialize_field("center", &self.center)?;
        value.serialize_field("lo", &self.lo)?;
        value.serialize_field("hi", &self.hi)?;
        value.end()
    }
}
