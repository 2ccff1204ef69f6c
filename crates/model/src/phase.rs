//! Phases of a workload: what is done in each, and when it ends.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When a phase ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this many nanoseconds; an operation in flight is finished and counted.
    AfterNs(u64),
    /// After this many operations of each client.
    Count(u64),
}

/// One measured part of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the phase and of its result rows: `write`, `read`, `change`, `clean`, `mixed`, ….
    pub name: String,
    /// Operations and their weights; weights need not sum to 1. Empty where a list says what comes
    /// next ([`AppCache::as_original`](crate::AppCache::as_original)).
    pub mix: BTreeMap<String, f64>,
    /// Nanoseconds of unrecorded operations before the measurement; 0 for none.
    pub warmup_ns: u64,
    /// When it ends.
    pub stop: Stop,
    /// Keys and values: what sets it apart from the other phases; `None` where nothing does.
    pub control: Option<Control>,
}

/// A phase that offers a workload's operations in an order of its own, at a steady part of the
/// load, so that what an operation takes is told apart from what its place takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// Operations that follow each other on one key, in this order; the first is paced. Empty where
    /// each operation arrives by itself.
    pub sequence: Vec<String>,
    /// Thousandths of the load: of the peak of a ramp, of the rate of an open load, of the clients
    /// of a closed one; above 0.
    pub permille: u32,
    /// Keys that operations choose from, the first ones of the workload; all are written just
    /// before the phase. At least 1.
    pub keys: u64,
}
