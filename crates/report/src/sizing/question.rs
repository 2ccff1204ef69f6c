//! The question: a rate within limits, data to keep, and the conditions that measurements must
//! meet.

use model::Slo;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::show;

/// What servers must carry and keep. At least one of rate and data is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Requests to answer; `None` if only memory is asked for.
    pub rate: Option<RateAsked>,
    /// Data to keep; `None` if memory is not asked for.
    pub amount: Option<Amount>,
    /// Length of a value, bytes, at least 1; `None` if only memory is asked for and it is unknown.
    pub value_bytes: Option<u64>,
    /// Writes per second while a store saves its data; `None` for a store that never saves.
    pub writes_per_s: Option<u64>,
    /// True if clients use TLS.
    pub tls: bool,
}

/// A wanted rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RateAsked {
    /// Requests per second, above 0.
    pub per_s: u64,
    /// Limits that must all be met; at least one.
    pub slos: Vec<Slo>,
    /// Share of a measured rate to use at most, above 0 and at most 1.
    pub headroom: f64,
    /// Servers that may fail at the same time.
    pub survive: u32,
    /// Operations; `None` for any.
    pub mix: Option<Mix>,
}

/// An amount of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Keys, at least 1.
    Keys(u64),
    /// Bytes of values, at least 1.
    Bytes(u64),
}

/// Operations and their shares of all requests, which sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix(BTreeMap<String, f64>);

/// Shares of two mixes that differ by less are the same.
const SAME_WITHIN: f64 = 1e-6;

impl Mix {
    /// A mix from weights, which need not sum to 1; `None` without a weight above 0.
    pub fn new<N: Into<String>>(weights: impl IntoIterator<Item = (N, f64)>) -> Option<Self> {
        let weights = weights.into_iter().map(|(name, weight)| (name.into(), weight));
        let mut shares: BTreeMap<String, f64> = weights.filter(|(_, w)| *w > 0.0).collect();
        let sum: f64 = shares.values().sum();
        for share in shares.values_mut() {
            *share /= sum;
        }
        (sum.is_finite() && sum > 0.0).then_some(Self(shares))
    }

    /// Names of its operations.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Share of an operation, 0 if the mix lacks it.
    pub(super) fn share(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// True if both have the same operations with the same shares.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let close =
            |(name, share): (&String, &f64)| (other.share(name) - share).abs() < SAME_WITHIN;
        self.0.len() == other.0.len() && self.0.iter().all(close)
    }
}

/// The syntax of `--op`: `get=0.9,set=0.1`.
impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, share)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{name}={}", (share * 1e6).round() / 1e6)?;
        }
        Ok(())
    }
}

impl RateAsked {
    /// The limits for a sentence: `p99 < 1 ms and error < 0.1 %`.
    pub(super) fn limits(&self) -> String {
        let words: Vec<String> = self.slos.iter().map(Slo::words).collect();
        show::listed(&words)
    }
}

/// True if keeping `own` means keeping `asked`. Failed requests are slower than any limit, so a
/// limit of times is also one of failures.
pub(super) fn is_implied(asked: &Slo, own: &Slo) -> bool {
    own.limit_ns() <= asked.limit_ns() && own.allowed() <= asked.allowed() + f64::EPSILON
}

/// The size of values that stands for `asked` bytes: the same, or the next larger of two that it
/// lies between; `None` if it lies outside the measured sizes.
pub(super) fn size_for(asked: u64, measured: &BTreeSet<u64>) -> Option<u64> {
    let larger = measured.range(asked..).next().copied()?;
    (larger == asked || measured.range(..asked).next().is_some()).then_some(larger)
}

/// Sizes of values for a sentence.
pub(super) fn sizes(measured: &BTreeSet<u64>) -> String {
    let words: Vec<String> = measured.iter().map(|bytes| stats::format_bytes(*bytes)).collect();
    show::listed(&words)
}

impl Question {
    /// The question for a heading: `40,000/s with p99 < 1 ms, values of 1 KiB, TLS`.
    pub(super) fn words(&self) -> String {
        let mut parts = Vec::new();
        if let Some(rate) = &self.rate {
            let of = rate.mix.as_ref().map_or_else(String::new, |mix| format!(" of {mix}"));
            parts.push(format!("{}/s{of} with {}", show::commas(rate.per_s), rate.limits()));
        }
        parts.extend(self.amount.map(|amount| match amount {
            Amount::Keys(keys) => format!("{} keys", show::commas(keys)),
            Amount::Bytes(bytes) => format!("{} of values", stats::format_bytes(bytes)),
        }));
        parts.extend(self.value_bytes.map(|b| format!("values of {}", stats::format_bytes(b))));
        parts.extend(
            self.writes_per_s.map(|w| format!("{} writes/s during a save", show::commas(w))),
        );
        parts.extend(self.tls.then(|| "TLS".to_string()));
        if let Some(rate) = &self.rate {
            parts.push(format!("at most {} of what was measured", show::percent(rate.headroom)));
            parts.extend((rate.survive > 0).then(|| match rate.survive {
                1 => "one server may fail".to_string(),
                several => format!("{several} servers may fail"),
            }));
        }
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_compared_by_shares() {
        let mix = |weights: &[(&str, f64)]| Mix::new(weights.iter().copied());
        let [nine, ninety, gets] =
            [&[("get", 9.0), ("set", 1.0)][..], &[("get", 0.9), ("set", 0.1)], &[("get", 1.0)]]
                .map(|weights| mix(weights).unwrap());
        assert!(nine.is_same(&ninety) && !nine.is_same(&gets) && !gets.is_same(&nine));
        assert_eq!(nine.to_string(), "get=0.9,set=0.1");
        assert_eq!(mix(&[("get", 1.0), ("set", 0.0)]), Some(gets));
        assert_eq!(mix(&[("get", 0.0)]), None);
        assert_eq!(mix(&[]), None);
    }

    #[test]
    fn a_size_is_covered_by_itself_or_by_both_neighbours() {
        let measured = BTreeSet::from([64, 1024, 16_384]);
        assert_eq!(size_for(1024, &measured), Some(1024));
        assert_eq!(size_for(1000, &measured), Some(1024));
        assert_eq!(size_for(1025, &measured), Some(16_384));
        assert_eq!(size_for(63, &measured), None);
        assert_eq!(size_for(16_385, &measured), None);
        assert_eq!(size_for(1000, &BTreeSet::from([1024])), None);
        assert_eq!(size_for(1000, &BTreeSet::new()), None);
    }
}
