//! Events during trials, and numbers about stores.

use model::{EventKind, Load};
use serde::Serialize;
use std::collections::BTreeMap;

use super::tiers::TierView;
use super::{
    DeletionView, FailoverView, GridView, MemoryNeedView, MissCostView, OutgrownView, ShardsView,
    SurvivalView, Value, WorkerView,
};

/// Numbers about stores, events, deletion of expired sessions, what a miss may cost, and
/// how much memory data need.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Happened {
    /// Numbers; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactView>,
    /// Events of targets in chronological order; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventView>,
    /// Deletion of expired sessions; omitted if no profile measures it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<DeletionView>,
    /// Costs of a miss up to which dropping keys is better than keeping them; omitted if no target
    /// drops keys that another one finds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub miss_costs: Vec<MissCostView>,
    /// Memory that data need; omitted without a memory limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub memory_needs: Vec<MemoryNeedView>,
    /// What targets keep of their rates as data outgrow the memory; omitted if it was not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outgrown: Vec<OutgrownView>,
    /// What clients noticed of faults; omitted if the plan caused none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failovers: Vec<FailoverView>,
    /// The rates that survive a fault; omitted if none was looked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub survivals: Vec<SurvivalView>,
    /// Targets with the limits of a tier; omitted if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierView>,
    /// Rows that form a grid over size of values, connections, requests at once and threads;
    /// omitted if none do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<GridView>,
    /// What shards add to the rate of one; omitted unless a target was measured with one shard and
    /// with several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardsView>,
    /// What each worker of a fleet contributed; omitted without a fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerView>,
    /// Data that the run may have left in stores that it did not start, with the command that
    /// removes it; omitted if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
}

/// A number about a target under one load.
#[derive(Clone, Debug, Serialize)]
pub struct FactView {
    /// Name of the target.
    pub target: String,
    /// Profile of the study.
    pub workload: String,
    /// Load.
    pub load: Load,
    /// A stable name that ends in the unit: `save_copied_bytes`, `save_recovery_ns`.
    pub name: String,
    /// Readable name, without the unit.
    pub label: String,
    /// True if a summary can omit it.
    pub is_detail: bool,
    /// Source of the number: `INFO`, `clients`, `memory group`.
    pub source: String,
    /// Arithmetic mean over blocks, with the lowest and highest of at least three blocks. For lost
    /// and unknown writes, the count of the worst block; for writes read back, the smallest count.
    pub value: Value,
    /// Formatted value: `1.03 s [0.9 s, 1.2 s]`.
    pub shown: String,
    /// Value by block, from 0; without blocks that have none.
    pub by_block: BTreeMap<u32, f64>,
    /// Blocks without a value because it took longer than the measurement.
    pub beyond: u32,
}

/// An event of a target during a trial.
#[derive(Clone, Debug, Serialize)]
pub struct EventView {
    /// Name of the target.
    pub target: String,
    /// Profile of the study.
    pub workload: String,
    /// Load.
    pub load: Load,
    /// Block, from 0.
    pub block: u32,
    /// Phase that was being measured; null if none was.
    pub phase: Option<String>,
    /// Seconds since the start of that measurement, or else since the start of the trial.
    pub at_s: f64,
    /// Kind of event.
    pub kind: EventKind,
    /// Readable description: `save began`.
    pub what: &'static str,
    /// Affected server; empty if the target is one server.
    pub subject: String,
    /// The primary that a promoted server replaces; omitted for other events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<String>,
}
