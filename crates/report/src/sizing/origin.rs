//! Where measurements come from, and which are not used.

use serde::Serialize;

/// Measurements that are not used, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Id of the run, or the directory of a record that cannot be read.
    pub run: String,
    /// Part of the run; omitted for all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Why.
    pub reason: String,
}

/// Where a measurement is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) run: String,
    pub(super) cell: String,
    pub(super) started_unix_ms: u64,
    /// The start in text form.
    pub(super) when: String,
}
