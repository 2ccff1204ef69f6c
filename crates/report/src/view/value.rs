//! Numbers of a view, with an interval or as a lower bound.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use stats::Estimate;

/// A centre and its displayed ends: its 95 % interval over blocks, clipped to the observed range.
/// Serialised as `{"center":…,"lo":…,"hi":…}`, or as `{"at_least":…}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// For rates, ratios and CPU the geometric mean over blocks; for percentiles, means and maxima
    /// of a time the value of the merged distribution of all blocks.
    pub center: f64,
    /// Lower end; `None` with fewer than three blocks.
    pub lo: Option<f64>,
    /// Upper end.
    pub hi: Option<f64>,
    /// True if `center` is a lower bound: a percentile above the share of answered operations.
    pub at_least: bool,
    /// The interval that verdicts use, if it differs from the displayed ends.
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

    /// Clips the displayed ends to the observed (least, most). Verdicts still use the whole
    /// interval.
    pub(crate) fn within(self, (least, most): (f64, f64)) -> Self {
        let Some(interval) = self.interval() else { return self };
        let lo = self.lo.map(|lo| lo.max(least).min(self.center));
        let hi = self.hi.map(|hi| hi.min(most).max(self.center));
        Self { lo, hi, decisive: Some(interval), ..self }
    }

    /// Widens the interval for verdicts to include `other`: a verdict must follow from both.
    pub(crate) fn decided_with(self, other: Option<(f64, f64)>) -> Self {
        let hull = |(a, b): (f64, f64), (c, d): (f64, f64)| (a.min(c), b.max(d));
        let decisive = self.interval().zip(other).map(|(own, other)| hull(own, other));
        Self { decisive: decisive.or(self.decisive), ..self }
    }

    /// Extends the upper end to that of `next`, the first value known to be too high; without
    /// `next` there is no upper end.
    pub(crate) fn up_to(self, next: Option<Self>) -> Self {
        let (lo, _) = self.interval().unwrap_or((self.center, self.center));
        let hi = next.map(|next| next.hi.unwrap_or(next.center).max(self.center));
        let decisive = next.map(|next| {
            let (_, end) = next.interval().unwrap_or((next.center, next.center));
            (lo, end.max(self.center))
        });
        Self { lo: Some(self.lo.unwrap_or(self.center)), hi, decisive, ..self }
    }

    /// The interval that verdicts use, if any. It can be wider than the displayed ends, which are
    /// clipped to the observed range: with few blocks, the next one can lie outside.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        self.decisive.or_else(|| self.lo.zip(self.hi))
    }

    /// A number without an interval.
    pub(crate) const fn alone(center: f64) -> Self {
        Self::new(center, None, None)
    }

    /// A lower bound.
    pub(crate) const fn at_least(bound: f64) -> Self {
        Self { at_least: true, ..Self::alone(bound) }
    }

    /// The inverse ratio.
    pub(crate) fn inverse(self) -> Self {
        let inverse =
            Self::new(1.0 / self.center, self.hi.map(f64::recip), self.lo.map(f64::recip));
        let decisive = self.decisive.map(|(lo, hi)| (hi.recip(), lo.recip()));
        Self { decisive, ..inverse }
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
