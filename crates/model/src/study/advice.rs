//! The recommendation table of a study.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The recommendation table of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Weight of each operation in a shop's daily use; need not sum to 1.
    pub weights: BTreeMap<String, f64>,
    /// The load of each size of shop.
    pub sizes: BTreeMap<String, ShopSize>,
    /// Rows of the table.
    pub rows: Vec<AdviceRow>,
    /// Facts that matter for the choice but cannot be measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<AdviceNote>,
}

/// The load of a shop of one size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum ShopSize {
    /// Concurrent requests, on the data of any profile that no other size names.
    Clients(u32),
    /// Concurrent requests on the data of a profile.
    OfProfile {
        /// Concurrent requests.
        clients: u32,
        /// The profile.
        profile: String,
    },
}

impl ShopSize {
    /// Concurrent requests.
    pub fn clients(&self) -> u32 {
        match self {
            Self::Clients(clients) | Self::OfProfile { clients, .. } => *clients,
        }
    }

    /// The profile with its data, if it has its own.
    pub fn profile(&self) -> Option<&str> {
        match self {
            Self::Clients(_) => None,
            Self::OfProfile { profile, .. } => Some(profile),
        }
    }
}

/// A fact of the source that cannot be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdviceNote {
    /// The fact, one sentence.
    pub text: String,
    /// Where the source says it, or another source.
    pub source: String,
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
    /// The source's choice if that is not wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<String>,
    /// Targets that this shop can use; every one if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
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
