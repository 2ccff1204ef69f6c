//! What a study says of its results: statements to judge, and the recommendation table.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A statement with the relation it expects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Unique in the study.
    pub id: String,
    /// The statement, in words.
    pub text: String,
    /// Who said it where.
    pub source: String,
    /// The relation that it expects.
    pub expect: Expectation,
}

/// The relation that a claim expects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Expectation {
    /// The rate of `a` divided by the rate of `b` lies within `min` and `max`.
    Ratio {
        /// Target above the line.
        a: String,
        /// Target below the line.
        b: String,
        /// Operation compared.
        operation: String,
        /// Clients at work.
        clients: u32,
        /// Smallest ratio that still confirms the statement.
        min: f64,
        /// Largest ratio that still confirms it; absent for no upper end.
        max: Option<f64>,
    },
    /// The rate of `target` is above that of every other target in every case.
    Highest {
        /// The target said to be first.
        target: String,
        /// Operations looked at.
        operations: Vec<String>,
        /// Numbers of clients looked at.
        clients: Vec<u32>,
    },
    /// Targets differ less at this operation than at others: the rate of the first target by that
    /// of the last is nearer to 1.
    Narrowest {
        /// The operation at which they are said to differ least.
        operation: String,
        /// Operations that it is compared with.
        than: Vec<String>,
        /// Clients at work.
        clients: u32,
    },
    /// The rate of `target` is below that of every other target in every case.
    Lowest {
        /// The target said to be last.
        target: String,
        /// Operations looked at.
        operations: Vec<String>,
        /// Numbers of clients looked at.
        clients: Vec<u32>,
    },
    /// Of ramps: a highest rate of `a` divided by that of `b` lies within `min` and `max`.
    Capacity {
        /// Target above the line.
        a: String,
        /// Target below the line.
        b: String,
        /// Which of the highest rates.
        figure: HighestRate,
        /// Smallest ratio that still confirms the statement.
        min: f64,
        /// Largest ratio that still confirms it; absent for no upper end.
        max: Option<f64>,
    },
    /// Of ramps: the 99th percentile of `a` by that of `b` at the same rate is at the share `high`
    /// of the highest rate that `a` reached at least `min` times what it is at the share `low`.
    Diverges {
        /// The target that is said to fall behind.
        a: String,
        /// The target that it falls behind.
        b: String,
        /// A light load, as a share of the highest rate that `a` reached.
        low: f64,
        /// The load at which it is said to have fallen behind.
        high: f64,
        /// How many times the ratio at the light load the other must be at least.
        min: f64,
    },
    /// Of ramps: on each target the 99th percentile of one operation by that of another lies within
    /// `min` and `max`, both where each arrives by itself and in pairs of both orders together.
    Slower {
        /// The operation that is said to take longer.
        operation: String,
        /// The operation that it is compared with.
        than: String,
        /// Targets looked at.
        targets: Vec<String>,
        /// Shares of the knee at which the ramp's own pairs are told beside.
        shares: Vec<f64>,
        /// Smallest ratio that still confirms the statement.
        #[serde(default = "as_long")]
        min: f64,
        /// Largest ratio that still confirms it; absent for no upper end.
        max: Option<f64>,
    },
    /// Of ramps: server CPU time of `a` by that of `b` at the same rates, which are shares of the
    /// lower knee, lies within `min` and `max`.
    Cpu {
        /// Target above the line.
        a: String,
        /// Target below the line.
        b: String,
        /// Shares of the lower knee looked at.
        shares: Vec<f64>,
        /// Smallest ratio that still confirms the statement.
        min: f64,
        /// Largest ratio that still confirms it.
        max: f64,
    },
    /// Of ramps: as long as a server uses less than a share of a CPU, its 99th percentile stays
    /// within a factor of what it is at the lowest stage.
    Steady {
        /// Targets looked at.
        targets: Vec<String>,
        /// Share of a CPU below which stages are looked at.
        cpu: f64,
        /// How many times the lowest stage's percentile others may have.
        within: f64,
    },
    /// Of ramps: `target` is the one to take rather than `over`, because it sustains no lower rate
    /// and answers no later at a share of the lower knee.
    Pick {
        /// The target that is recommended.
        target: String,
        /// The target that it is preferred to.
        over: String,
        /// The share of the lower knee at which times are compared.
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
    /// The most that was answered in any stage, or with all clients at work.
    Reached,
    /// The last stage in which all that was asked for was answered.
    Knee,
    /// The last stage within the limit of the 99th percentile.
    WithinLimit,
}

impl HighestRate {
    /// As it stands in sentences and in studies.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::Knee => "knee",
            Self::WithinLimit => "within-limit",
        }
    }
}

impl Expectation {
    /// True for what only a ramp can tell.
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
    /// How much each operation counts in a shop's day; need not sum to 1.
    pub weights: BTreeMap<String, f64>,
    /// Number of concurrent requests that each size of shop means.
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
    /// Target that the shop uses as delivered.
    pub factory: String,
    /// Targets that the source recommends, in its order; one is written without a list.
    #[serde(with = "one_or_more")]
    pub source: Vec<String>,
}

/// A text alone or a list of texts, told apart by which of them stands there.
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
