//! What happened in the course of trials, and numbers about stores.

use model::{EventKind, Load};
use serde::Serialize;
use std::collections::BTreeMap;

use super::Value;

/// Numbers about stores, and what happened to them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Happened {
    /// Numbers; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactView>,
    /// What happened to targets, in the order of time; left out where nothing did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventView>,
}

/// A number about a target under one load.
#[derive(Clone, Debug, Serialize)]
pub struct FactView {
    /// Name of the target.
    pub target: String,
    /// Profile of the study.
    pub workload: String,
    /// How operations were offered.
    pub load: Load,
    /// A stable name that ends in the unit: `copied_bytes`, `save_recovery_ns`.
    pub name: String,
    /// The same for people, without the unit.
    pub label: String,
    /// True for what a summary can do without.
    pub is_detail: bool,
    /// Who says so: `INFO`, `clients`, `memory group`.
    pub source: String,
    /// Arithmetic mean over blocks, from the lowest to the highest of at least three; of writes
    /// that were lost or are unknown the count of the worst block, of those read back the smallest.
    pub value: Value,
    /// The value for people: `1.03 s [0.9 s, 1.2 s]`.
    pub shown: String,
    /// Its value in each block that has it, by the block's number from 0.
    pub by_block: BTreeMap<u32, f64>,
    /// Blocks in which it has no value because it took longer than was measured.
    pub beyond: u32,
}

/// Something that happened to a target.
#[derive(Clone, Debug, Serialize)]
pub struct EventView {
    /// Name of the target.
    pub target: String,
    /// Profile of the study.
    pub workload: String,
    /// How operations were offered.
    pub load: Load,
    /// Block, from 0.
    pub block: u32,
    /// Phase in whose measurement it happened; null outside of all.
    pub phase: Option<String>,
    /// When, seconds since that measurement began; outside of all since the trial began.
    pub at_s: f64,
    /// What.
    pub kind: EventKind,
    /// For people: `save began`.
    pub what: &'static str,
    /// To whom; empty where the target is one server.
    pub subject: String,
}
