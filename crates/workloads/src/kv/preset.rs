//! Published workloads by name.
//!
//! - `ycsb-a`, `-b`, `-c`, `-d`, `-f`: the core workloads of YCSB (Cooper et al.: Benchmarking
//!   Cloud Serving Systems with YCSB, ACM Cloud Computing 2010; the files `workloada` to
//!   `workloadf` of its repository), with the frequencies of its own generator. Records are 1000
//!   bytes, ten fields of 100; here, one value: an update writes all of it, as with YCSB's
//!   `writeallfields=true`, where it writes one field of ten by default. E scans, which caches
//!   cannot.
//! - `twitter-c12`, `-c15`, `-c31`, `-c37`, `-c52`: clusters of Twitter's caches in March 2020
//!   (Yang, Yue, Rashmi: A Large Scale Analysis of Hundreds of In-memory Cache Clusters at Twitter,
//!   OSDI 2020; the table `stat/2020Mar.md` of twitter/cache-trace, CC-BY). The table gives means
//!   of lengths and no more, so all keys and all values have the mean length. `gets` counts as a
//!   read, `add` and `cas` as updates.

use std::str::FromStr;

use super::{Distribution, DistributionError, Sizes, SizesError, Weights, WeightsError};

/// A published workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// The name that users type.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// `read`, `update`, `insert` (a key after all others) and `read-modify-write`, with weights.
    pub operations: Weights,
    /// Which keys are asked for.
    pub keys: Distribution,
    /// How long values are.
    pub values: Sizes,
    /// Bytes of a key's name; `None` where the source does not say.
    pub name_bytes: Option<usize>,
    /// Lifetime of most values, in seconds; `None` where they do not expire.
    pub ttl_s: Option<u64>,
}

/// A line of the table.
struct Line {
    name: &'static str,
    title: &'static str,
    operations: &'static str,
    keys: &'static str,
    values: &'static str,
    name_bytes: Option<usize>,
    ttl_s: Option<u64>,
}

/// The lines of YCSB and those of Twitter's clusters.
const LINES: [Line; 10] = [
    ycsb("ycsb-a", "YCSB A, update heavy", "read=0.5,update=0.5", "ycsb-zipfian"),
    ycsb("ycsb-b", "YCSB B, read mostly", "read=0.95,update=0.05", "ycsb-zipfian"),
    ycsb("ycsb-c", "YCSB C, read only", "read=1", "ycsb-zipfian"),
    ycsb("ycsb-d", "YCSB D, read latest", "read=0.95,insert=0.05", "ycsb-latest"),
    ycsb("ycsb-f", "YCSB F, read-modify-write", "read=0.5,read-modify-write=0.5", "ycsb-zipfian"),
    Line {
        name: "twitter-c12",
        title: "Twitter cluster 12, write heavy",
        operations: "update=0.8,read=0.2",
        keys: "zipf:0.3048",
        values: "1030",
        name_bytes: Some(44),
        ttl_s: Some(300),
    },
    Line {
        name: "twitter-c15",
        title: "Twitter cluster 15, written once",
        operations: "update=1",
        keys: "zipf:0.0242",
        values: "102",
        name_bytes: Some(18),
        ttl_s: Some(30),
    },
    Line {
        name: "twitter-c31",
        title: "Twitter cluster 31, written and seldom read",
        operations: "update=0.94,read=0.06",
        keys: "zipf:0",
        values: "15",
        name_bytes: Some(41),
        ttl_s: Some(60),
    },
    Line {
        name: "twitter-c37",
        title: "Twitter cluster 37, large values",
        operations: "update=0.37,read=0.63",
        keys: "zipf:0.4251",
        values: "20134",
        name_bytes: Some(72),
        ttl_s: Some(20),
    },
    Line {
        name: "twitter-c52",
        title: "Twitter cluster 52, balanced",
        operations: "read=0.93,update=0.06",
        keys: "zipf:1.2117",
        values: "273",
        name_bytes: Some(20),
        ttl_s: Some(86_400),
    },
];

const fn ycsb(
    name: &'static str,
    title: &'static str,
    operations: &'static str,
    keys: &'static str,
) -> Line {
    Line { name, title, operations, keys, values: "1000", name_bytes: None, ttl_s: None }
}

/// A preset that there is not, or one whose line cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PresetError {
    /// No such name.
    #[error("`{name}` is no published workload, expected one of {known}")]
    Unknown {
        /// What was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Its operations cannot be read.
    #[error(transparent)]
    Operations(#[from] WeightsError),
    /// Its distribution cannot be read.
    #[error(transparent)]
    Keys(#[from] DistributionError),
    /// Its lengths cannot be read.
    #[error(transparent)]
    Values(#[from] SizesError),
}

impl Preset {
    /// Names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        LINES.iter().map(|line| line.name)
    }
}

impl FromStr for Preset {
    type Err = PresetError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let line = LINES.iter().find(|line| line.name == name).ok_or_else(|| {
            let known = Self::names().collect::<Vec<_>>().join(", ");
            PresetError::Unknown { name: name.to_owned(), known }
        })?;
        Ok(Self {
            name: line.name,
            title: line.title,
            operations: line.operations.parse()?,
            keys: line.keys.parse()?,
            values: line.values.parse()?,
            name_bytes: line.name_bytes,
            ttl_s: line.ttl_s,
        })
    }
}

#[cfg(test)]
#[path = "preset_tests.rs"]
mod tests;
