//! Metrics of one name, before they get a form.

use super::buckets::Distribution;

/// Names and values, in order.
pub(super) type Labels = Vec<(&'static str, String)>;

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Never falls but to begin anew; its name ends in `_total`.
    Counter,
    /// Rises and falls.
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

    /// The same with one metric more.
    pub(super) fn with(mut self, labels: Labels, number: f64) -> Self {
        self.metrics.push((labels, Value::Number(number)));
        self
    }
}
