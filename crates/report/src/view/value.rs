//! Numbers of a view: with their interval, or as a bound where that is all that is known.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// A centre with its 95 % interval over blocks. Serialised as `{"center":…,"lo":…,"hi":…}`, or as
/// `{"at_least":…}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Rates, ratios and CPU: geometric mean over blocks. Percentiles, means and largest values of
    /// a time: those of all blocks' distributions merged.
    pub center: f64,
    /// Lower end of the interval; `None` below two blocks.
    pub lo: Option<f64>,
    /// Upper end of the interval.
    pub hi: Option<f64>,
    /// True where the value is known only to be no less than `center`: a percentile beyond the
    /// share of the operations that were answered.
    pub at_least: bool,
}

impl Value {
    /// A number with an interval, or without one.
    pub(crate) const fn new(center: f64, lo: Option<f64>, hi: Option<f64>) -> Self {
        Self { center, lo, hi, at_least: false }
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
        Self::new(1.0 / self.center, self.hi.map(f64::recip), self.lo.map(f64::recip))
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

/// A time, nanoseconds: a number, or `{"at_least":…}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Time {
    /// So long.
    Of(u64),
    /// So long or longer.
    Bound {
        /// The shortest that it can be.
        at_least: u64,
    },
}
