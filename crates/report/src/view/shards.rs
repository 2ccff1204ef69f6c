//! What shards add to the rate of one.

use model::Load;
use serde::Serialize;

use super::Value;

/// A sharded target in one phase, against the same target with a single shard.
#[derive(Clone, Debug, Serialize)]
pub struct ShardsView {
    /// Name of the target.
    pub target: String,
    /// The target with a single shard and otherwise the same settings; `target` itself if that is
    /// it.
    pub single: String,
    /// Shards.
    pub shards: u32,
    /// Servers, with replicas.
    pub servers: u32,
    /// Profile of the study.
    pub workload: String,
    /// The operation.
    pub operation: String,
    /// Load.
    pub load: Load,
    /// Blocks with both rates; for the single one, with its own.
    pub blocks: u32,
    /// Operations per second.
    pub rate_per_s: Value,
    /// Rate, divided by the number of shards and the rate of the single one: 1 if each shard adds
    /// its whole rate. Null for the single one, and if no block has both.
    pub efficiency: Option<Value>,
    /// Why it is about the machine and not about the store, one sentence each; empty if nothing
    /// says so.
    pub limited_by: Vec<String>,
}
