//! Claims of a study's source: a statement, the conditions it is about, and the relation that it
//! expects of the measured figures.

mod kinds;
mod parts;

use serde::{Deserialize, Serialize};

pub use self::kinds::{
    Ceiling, Crossover, Diverges, Extreme, Figure, Fits, Gains, Growth, Monotone, Operations,
    Order, Pick, Profiles, Ratio, Rises, Slower, Spread, Steady, Within,
};
pub(super) use self::parts::Parts;
use crate::memory::PageCache;

/// A statement and the relation that it expects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Unique in the study.
    pub id: String,
    /// Text of the statement.
    pub text: String,
    /// Author and place of publication.
    pub source: String,
    /// The source's own figure with its unit, where it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_value: Option<String>,
    /// Profiles on which it is judged; empty for every profile that can judge it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Conditions under which it is judged.
    #[serde(default, skip_serializing_if = "Conditions::is_none")]
    pub conditions: Conditions,
    /// Expected relation.
    pub expect: Expectation,
}

/// Conditions that a claim is about. Where one is not met, the claim is not judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// Fewest and most records, sessions or keys of the data set, both inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<(u64, u64)>,
    /// Whether files are in memory when a phase starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCache>,
    /// Whether the memory of each target is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<bool>,
    /// True if its targets must be on different disks, or on disks that the kernel throttles
    /// differently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub different_disks: bool,
    /// Fewest CPUs that private servers share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpus: Option<u32>,
    /// Minimum length of the load, in lifetimes of a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetimes: Option<f64>,
    /// True if it is about more data than a limited memory; of profiles with several amounts of
    /// data, those that fit do not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exceeds_memory: bool,
}

impl Conditions {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The relation that a claim expects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Expectation {
    /// A figure of one target divided by that of another.
    Ratio(Ratio),
    /// The rates of several targets in descending order.
    Order(Order),
    /// The rate of a target is above that of every other target in every case.
    Highest(Extreme),
    /// The rate of a target is below that of every other target in every case.
    Lowest(Extreme),
    /// Targets differ less at an operation than at others.
    Narrowest(Spread),
    /// Targets differ more at an operation than at others.
    Widest(Spread),
    /// Rates rise with the number of clients.
    Rises(Rises),
    /// The rates of two operations of a target.
    Operations(Operations),
    /// The rates of an operation of a target in two profiles.
    Profiles(Profiles),
    /// One target gains on another with the number of clients.
    Gains(Gains),
    /// The cost of an operation grows with the size of the data set in some way.
    Growth(Growth),
    /// The number of clients from which on one target is faster than another.
    Crossover(Crossover),
    /// A ratio of latencies grows with the load.
    Diverges(Diverges),
    /// One operation takes longer than another.
    Slower(Slower),
    /// Latency stays low up to some load.
    Steady(Steady),
    /// The highest latency under overload.
    Ceiling(Ceiling),
    /// A target is preferable to another.
    Pick(Pick),
    /// A number of a target is within a range.
    Within(Within),
    /// The published rates of the source fit the bandwidth that it states.
    Fits(Fits),
    /// Published figures of the source rise from step to step.
    Monotone(Monotone),
    /// A kind of a newer or older version, in a record.
    #[serde(other)]
    Unknown,
}

impl Expectation {
    /// Targets that it names.
    pub fn targets(&self) -> Vec<&str> {
        self.parts().targets
    }

    /// True if only a ramp can test it.
    pub fn is_of_ramps(&self) -> bool {
        match self {
            Self::Ratio(ratio) => ratio.of.is_of_ramps(),
            Self::Order(_)
            | Self::Highest(_)
            | Self::Lowest(_)
            | Self::Narrowest(_)
            | Self::Widest(_)
            | Self::Rises(_)
            | Self::Operations(_)
            | Self::Profiles(_)
            | Self::Gains(_)
            | Self::Growth(_)
            | Self::Crossover(_)
            | Self::Within(_)
            | Self::Fits(_)
            | Self::Monotone(_)
            | Self::Unknown => false,
            Self::Diverges(_)
            | Self::Slower(_)
            | Self::Steady(_)
            | Self::Ceiling(_)
            | Self::Pick(_) => true,
        }
    }

    /// True if it is about tables that the source publishes, and about no measurement.
    pub fn is_of_tables(&self) -> bool {
        matches!(self, Self::Fits(_) | Self::Monotone(_))
    }

    /// What contradicts itself, for the author of a study; `None` if nothing does.
    pub(super) fn contradiction(&self) -> Option<String> {
        match self {
            Self::Ratio(ratio) => ratio.contradiction(),
            Self::Slower(Slower { of, .. }) if !matches!(of, Figure::P99 | Figure::Mean) => {
                Some(format!(
                    "`of = \"{}\"` for a claim of kind `slower` (expected `p99` or `mean`)",
                    of.name()
                ))
            }
            Self::Rises(Rises { clients, .. })
            | Self::Gains(Gains { clients, .. })
            | Self::Crossover(Crossover { clients, .. })
                if clients.len() < 2 || !clients.is_sorted_by(|a, b| a < b) =>
            {
                Some(format!("clients {clients:?} of a claim (expected two or more, ascending)"))
            }
            Self::Order(Order { targets, .. }) if targets.len() < 2 => {
                Some("a claim on the order of fewer than two targets".into())
            }
            Self::Growth(Growth { min, max, .. }) if min > max => {
                Some(format!("exponents {min} to {max} of a claim (expected min <= max)"))
            }
            Self::Monotone(Monotone { columns, across: true, .. }) if columns.len() < 2 => Some(
                "a claim across fewer than two columns (expected two or more, or `across = \
                 false`)"
                    .into(),
            ),
            Self::Within(within) => within.contradiction(),
            Self::Unknown => Some(format!("unknown kind of claim (known: {KINDS})")),
            _ => None,
        }
    }
}

/// Kinds of claims, as named in errors.
const KINDS: &str = "`ratio`, `order`, `highest`, `lowest`, `narrowest`, `widest`, `rises`, \
                     `operations`, `profiles`, `gains`, `growth`, `crossover`, `diverges`, \
                     `slower`, `steady`, `ceiling`, `pick`, `within`, `fits` and `monotone`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_another_version_is_read_as_unknown() {
        let expect = r#"{"kind":"capacity","a":"x"}"#;
        let text = format!(r#"{{"id":"a","text":"t","source":"s","expect":{expect}}}"#);
        let claim: Claim = serde_json::from_str(&text).unwrap();
        assert_eq!(claim.expect, Expectation::Unknown);
        let fault = claim.expect.contradiction().unwrap();
        assert!(fault.starts_with("unknown kind of claim (known: `ratio`"), "{fault}");
    }
}
