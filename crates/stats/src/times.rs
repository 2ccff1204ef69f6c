//! Latencies of operations, some of which failed. Failures count as slower than any answer, so
//! percentiles beyond the answered share are only known to be at least a bound.

use serde::Serialize;
use std::fmt;

use crate::{Histogram, format_ns, histogram};

/// Latencies of answered operations, and the number of failed ones.
#[derive(Clone, Debug, Default)]
pub struct Times {
    answered: Histogram,
    failed: u64,
    longest_ns: u64,
}

/// A latency in nanoseconds. Serialized as a number, or as `{"at_least":…}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Time {
    /// A known latency.
    Of(u64),
    /// A lower bound.
    Bound {
        /// The lower bound.
        at_least: u64,
    },
}

impl Times {
    /// Latencies of `answered` operations and `failed` ones. `waited_ns` is the longest wait for a
    /// failed one; 0 if unknown.
    pub fn new(answered: &Histogram, failed: u64, waited_ns: u64) -> Self {
        let longest_ns = answered.max_ns().max(waited_ns);
        Self { answered: answered.clone(), failed, longest_ns }
    }

    /// Latencies without failures.
    pub fn all(answered: &Histogram) -> Self {
        Self::new(answered, 0, 0)
    }

    /// Adds failures, with the longest wait `waited_ns` for one of them.
    #[must_use]
    pub fn and_failed(mut self, failed: u64, waited_ns: u64) -> Self {
        if failed > 0 {
            self.failed += failed;
            self.longest_ns = self.longest_ns.max(waited_ns);
        }
        self
    }

    /// Latencies of answered operations.
    pub fn answered(&self) -> &Histogram {
        &self.answered
    }

    /// Number of failed operations.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// True if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.answered.is_empty() && self.failed == 0
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.answered.merge(&other.answered);
        self.failed += other.failed;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }

    /// The quantile `q` (0 to 1) over all operations; `None` without operations.
    pub fn quantile(&self, q: f64) -> Option<Time> {
        let answered = self.answered.count();
        let rank = histogram::rank(q, answered + self.failed);
        if self.is_empty() {
            None
        } else if rank > answered {
            Some(Time::Bound { at_least: self.longest_ns })
        } else {
            Some(Time::Of(self.answered.ns_of(rank)))
        }
    }

    /// The quantile in nanoseconds if it is known exactly.
    pub fn known(&self, q: f64) -> Option<u64> {
        match self.quantile(q)? {
            Time::Of(ns) => Some(ns),
            Time::Bound { .. } => None,
        }
    }

    /// The longest latency, a bound if operations failed; `None` without operations.
    pub fn longest(&self) -> Option<Time> {
        match self.failed {
            _ if self.is_empty() => None,
            0 => Some(Time::Of(self.longest_ns)),
            _ => Some(Time::Bound { at_least: self.longest_ns }),
        }
    }
}

impl fmt::Display for Time {
    /// `12.3 µs`, or `≥ 5.00 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(ns) => f.write_str(&format_ns(*ns as f64)),
            Self::Bound { at_least } => write!(f, "≥ {}", format_ns(*at_least as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_slower_than_any_percentile() {
        let mut answered = Histogram::new();
        answered.record_many(1_000_000, 9_990);
        answered.record_many(3_000_000, 6);
        let times = Times::new(&answered, 4, 5_000_000_000);
        let bound = Time::Bound { at_least: 5_000_000_000 };
        assert_eq!(times.quantile(0.5), Some(Time::Of(answered.quantile_ns(0.5))));
        assert_eq!(times.quantile(0.9995), Some(Time::Of(answered.quantile_ns(1.0))));
        assert_eq!((times.quantile(0.9999), times.known(0.9999)), (Some(bound), None));
        assert_eq!((times.longest(), bound.to_string()), (Some(bound), "≥ 5.00 s".into()));
        // All operations were refused immediately: only the failure is known.
        let refused = Times::new(&Histogram::new(), 1, 0);
        assert_eq!(refused.quantile(0.5), Some(Time::Bound { at_least: 0 }));
        let none = Times::default();
        assert_eq!((none.quantile(0.5), none.longest()), (None, None));
    }

    #[test]
    fn merging_combines_answers_and_failures() {
        let mut answered = Histogram::new();
        answered.record_many(1_000, 50);
        let mut times = Times::all(&answered);
        assert_eq!(times.longest(), Some(Time::Of(answered.max_ns())));
        times.merge(&Times::new(&answered, 1, 7_000));
        assert_eq!(times.quantile(0.99), Some(Time::Of(answered.max_ns())));
        assert_eq!(times.quantile(0.999), Some(Time::Bound { at_least: 7_000 }));
        assert_eq!(times.answered().count(), 100);
    }
}
