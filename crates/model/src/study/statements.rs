//! Claims of a study's source and its recommendation table.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Expected relation.
    pub expect: Expectation,
}

/// The relation that a claim expects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Expectation {
    /// The rate of `a` divided by the rate of `b` is between `min` and `max`.
    Ratio {
        /// Target in the numerator.
        a: String,
        /// Target in the denominator.
        b: String,
        /// Operation compared.
        operation: String,
        /// Number of active clients.
        clients: u32,
        /// Smallest ratio that still confirms the statement.
        min: f64,
        /// Largest ratio that still confirms it; absent for no upper bound.
        max: Option<f64>,
    },
    /// The rate of `target` is above that of every other target in every case.
    Highest {
        /// The target claimed to be fastest.
        target: String,
        /// Operations compared.
        operations: Vec<String>,
        /// Numbers of clients compared.
        clients: Vec<u32>,
    },
    /// Targets differ less at this operation than at others: the ratio of the highest to the lowest
    /// rate is closer to 1.
    Narrowest {
        /// The operation at which targets are claimed to differ least.
        operation: String,
        /// Operations to compare with.
        than: Vec<String>,
        /// Number of active clients.
        clients: u32,
    },
    /// The rate of `target` is below that of every other target in every case.
    Lowest {
        /// The target claimed to be slowest.
        target: String,
        /// Operations compared.
        operations: Vec<String>,
        /// Numbers of clients compared.
        clients: Vec<u32>,
    },
    /// Of ramps: a highest rate of `a` divided by that of `b` is between `min` and `max`.
    Capacity {
        /// Target in the numerator.
        a: String,
        /// Target in the denominator.
        b: String,
        /// Which of the highest rates.
        figure: HighestRate,
        /// Smallest ratio that still confirms the statement.
        min: f64,
        /// Largest ratio that still confirms it; absent for no upper bound.
        max: Option<f64>,
    },
    /// Of ramps: the ratio of the 99th percentiles of `a` and `b` at the same rate grows at least
    /// `min`-fold from the share `low` to the share `high` of the highest rate that `a` reached.
    Diverges {
        /// The target claimed to fall behind.
        a: String,
        /// The target that it falls behind.
        b: String,
        /// A light load, as a share of the highest rate that `a` reached.
        low: f64,
        /// The load at which `a` has fallen behind, as such a share.
        high: f64,
        /// Smallest factor between the two ratios that confirms the statement.
        min: f64,
    },
    /// Of ramps: on each target the 99th percentile of one operation divided by that of another is
    /// between `min` and `max`, both when each arrives alone and in pairs of both orders combined.
    Slower {
        /// The operation claimed to take longer.
        operation: String,
        /// The operation to compare with.
        than: String,
        /// Targets tested.
        targets: Vec<String>,
        /// Shares of the knee at which the ramp's own pairs are also reported.
        shares: Vec<f64>,
        /// Smallest ratio that still confirms the statement.
        #[serde(default = "as_long")]
        min: f64,
        /// Largest ratio that still confirms it; absent for no upper bound.
        max: Option<f64>,
    },
    /// Of ramps: server CPU time of `a` divided by that of `b` at the same rates, as shares of the
    /// lower knee, is between `min` and `max`.
    Cpu {
        /// Target in the numerator.
        a: String,
        /// Target in the denominator.
        b: String,
        /// Shares of the lower knee.
        shares: Vec<f64>,
        /// Smallest ratio that still confirms the statement.
        min: f64,
        /// Largest ratio that still confirms it.
        max: f64,
    },
    /// Of ramps: while a server uses less than a share of a CPU, its 99th percentile stays within a
    /// factor of its value at the lowest stage.
    Steady {
        /// Targets tested.
        targets: Vec<String>,
        /// Share of a CPU below which stages are compared.
        cpu: f64,
        /// Largest allowed ratio to the percentile of the lowest stage.
        within: f64,
    },
    /// Of ramps: `target` is preferable to `over`, because it sustains at least the same rate and
    /// is not slower at a share of the lower knee.
    Pick {
        /// The recommended target.
        target: String,
        /// The rejected target.
        over: String,
        /// The share of the lower knee at which latencies are compared.
        share: f64,
    },
}

fn as_long() -> f64 {
    1.0
}

/// One of the highest rates of a ramp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HighestRate {
    /// The highest rate answered in any stage, or with all clients active.
    Reached,
    /// The rate of the last stage in which all requests were answered.
    Knee,
    /// The rate of the last stage within the limit of the 99th percentile.
    WithinLimit,
}

impl HighestRate {
    /// Name in sentences and study files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::Knee => "knee",
            Self::WithinLimit => "within-limit",
        }
    }
}

impl Expectation {
    /// True if only a ramp can test it.
    pub fn is_of_ramps(&self) -> bool {
        match self {
            Self::Ratio { .. }
            | Self::Highest { .. }
            | Self::Narrowest { .. }
            | Self::Lowest { .. } => false,
            Self::Capacity { .. }
            | Self::Diverges { .. }
            | Self::Slower { .. }
            | Self::Cpu { .. }
            | Self::Steady { .. }
            | Self::Pick { .. } => true,
        }
    }
}

/// The recommendation table of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Weight of each operation in a shop's daily use; need not sum to 1.
    pub weights: BTreeMap<String, f64>,
    /// Number of concurrent requests for each size of shop.
    pub sizes: BTreeMap<String, u32>,
    /// Rows of the table.
    pub rows: Vec<AdviceRow>,
}

/// A row of the recommendation table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceRow {
    /// Shop system.
    pub shop: String,
    /// A key of `sizes`.
    pub size: String,
    /// Target that the shop uses by default.
    pub factory: String,
    /// Targets that the source recommends, in its order; a single one is written without a list.
    #[serde(with = "one_or_more")]
    pub source: Vec<String>,
}

/// Serialises a single text as a string and several as a list; accepts both.
mod one_or_more {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(String),
        More(Vec<String>),
    }

    pub(super) fn serialize<S: Serializer>(texts: &[String], to: S) -> Result<S::Ok, S::Error> {
        match texts {
            [one] => one.serialize(to),
            more => more.serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        Ok(match Written::deserialize(from)? {
            Written::One(one) => vec![one],
            Written::More(more) => more,
        })
    }
}
