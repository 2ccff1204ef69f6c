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
