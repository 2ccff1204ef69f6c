//! Published workloads by name.
//!
//! - `ycsb-a`, `-b`, `-c`, `-d`, `-f`: the core workloads of YCSB (Cooper et al.: Benchmarking
//!   Cloud Serving Systems with YCSB, ACM Cloud Computing 2010; the files `workloada` to
//!   `workloadf` of its repository), with the key frequencies of YCSB's generator. YCSB's records
//!   have 1000 bytes, ten fields of 100. Here a record is one value, and an update writes all of
//!   it, as with YCSB's `writeallfields=true`; YCSB's default is to write one field of ten. E
//!   scans, which caches do not support.
//! - `twitter-c12`, `-c15`, `-c31`, `-c37`, `-c52`: clusters of Twitter's caches in March 2020
//!   (Yang, Yue, Rashmi: A Large Scale Analysis of Hundreds of In-memory Cache Clusters at Twitter,
//!   OSDI 2020; the table `stat/2020Mar.md` of twitter/cache-trace, CC-BY). The table gives only
//!   mean lengths, so all keys and all values have the mean length. `gets` counts as a read, `add`
//!   and `cas` as updates.

use std::str::FromStr;

use super::{Distribution, KvError, Sizes, Weights};

/// A published workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// The name that users type.
    pub name: &'static str,
    /// A short description.
    pub title: &'static str,
    /// Weights of `read`, `update`, `insert` (a key after all others) and `read-modify-write`.
    pub operations: Weights,
    /// Distribution of keys.
    pub keys: Distribution,
    /// Lengths of values.
    pub values: Sizes,
    /// Length of a key's name in bytes; `None` if the source does not give it.
    pub name_bytes: Option<usize>,
    /// Lifetime of most values in seconds; `None` if they do not expire.
    pub ttl_s: Option<u64>,
}

/// Name, title, operations, keys, length of values, length of names, lifetime; `-` for none.
const LINES: [&str; 10] = [
    "ycsb-a|YCSB A, update heavy|read=0.5,update=0.5|ycsb-zipfian|1000|-|-",
    "ycsb-b|YCSB B, read mostly|read=0.95,update=0.05|ycsb-zipfian|1000|-|-",
    "ycsb-c|YCSB C, read only|read=1|ycsb-zipfian|1000|-|-",
    "ycsb-d|YCSB D, read latest|read=0.95,insert=0.05|ycsb-latest|1000|-|-",
    "ycsb-f|YCSB F, read-modify-write|read=0.5,read-modify-write=0.5|ycsb-zipfian|1000|-|-",
    "twitter-c12|Twitter cluster 12, write heavy|update=0.8,read=0.2|zipf:0.3048|1030|44|300",
    "twitter-c15|Twitter cluster 15, written once|update=1|zipf:0.0242|102|18|30",
    "twitter-c31|Twitter cluster 31, written and seldom read|update=0.94,read=0.06|zipf:0|15|41|60",
    "twitter-c37|Twitter cluster 37, large values|update=0.37,read=0.63|zipf:0.4251|20134|72|20",
    "twitter-c52|Twitter cluster 52, balanced|read=0.93,update=0.06|zipf:1.2117|273|20|86400",
];

impl Preset {
    /// Names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        LINES.iter().filter_map(|line| line.split('|').next())
    }
}

impl FromStr for Preset {
    type Err = KvError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let line = Self::names().position(|known| known == name).map(|at| LINES[at].split('|'));
        let parts = line.and_then(|line| <[&str; 7]>::try_from(line.collect::<Vec<_>>()).ok());
        let [name, title, operations, keys, values, name_bytes, ttl_s] =
            parts.ok_or_else(|| {
                let known = Self::names().collect::<Vec<_>>().join(", ");
                KvError(format!("`{name}` is not a published workload, expected one of {known}"))
            })?;
        Ok(Self {
            name,
            title,
            operations: operations.parse()?,
            keys: keys.parse()?,
            values: values.parse()?,
            name_bytes: name_bytes.parse().ok(),
            ttl_s: ttl_s.parse().ok(),
        })
    }
}

#[cfg(test)]
#[path = "preset_tests.rs"]
mod tests;
