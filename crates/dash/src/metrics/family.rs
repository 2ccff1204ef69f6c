//! Metric families, independent of the exposition format.

use super::buckets::Distribution;

/// Label names and values, in order.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only rises, except for resets; its name ends in `_total`.
    Counter,
    /// Can rise and fall.
    Gauge,
    /// A distribution of seconds.
    Histogram,
}

pub(super) enum Value {
    Number(f64),
    Times(Box<Distribution>),
}

/// All metrics of one name.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) metrics: Vec<(Labels, Value)>,
}

impl Family {
    pub(super) fn new(kind: Kind, name: &'static str, help: &'static str) -> Self {
        Self { name, help, kind, metrics: Vec::new() }
    }

    /// The family with one more metric.
    pub(super) fn with(mut self, labels: Labels, number: f64) -> Self {
        self.metrics.push((labels, Value::Number(number)));
        self
    }
}
