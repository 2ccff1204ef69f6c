//! How much memory data need, and what a store keeps of its rate with less.

use model::Load;
use serde::Serialize;

use super::Value;

/// Memory that a target used for its keys and values.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryNeedView {
    /// Profile.
    pub workload: String,
    /// Target.
    pub target: String,
    /// Length of a value, bytes.
    pub value_bytes: f64,
    /// Memory of a key with its value, bytes.
    pub bytes_per_key: Value,
    /// Memory copied while the data were saved under the profile's writes, as a share of the memory
    /// of the data; omitted without a save.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied_share: Option<Value>,
    /// Memory to plan for each byte of values, with the copies of a save.
    pub planned_per_byte: f64,
    /// The result in one sentence.
    pub sentence: String,
}

/// What a target keeps of its rate as its data outgrow the memory.
#[derive(Clone, Debug, Serialize)]
pub struct OutgrownView {
    /// Profile.
    pub workload: String,
    /// Target.
    pub target: String,
    /// Operation.
    pub operation: String,
    /// Load.
    pub load: Load,
    /// The least data that were measured, which fit in memory, as a multiple of the memory.
    pub from: f64,
    /// The other amounts, ascending.
    pub steps: Vec<OutgrownStep>,
    /// The result in one sentence.
    pub sentence: String,
}

/// The rate with one amount of data.
#[derive(Clone, Debug, Serialize)]
pub struct OutgrownStep {
    /// Data, as a multiple of the memory.
    pub data: f64,
    /// The rate as a share of that with the least data.
    pub share: Value,
}
