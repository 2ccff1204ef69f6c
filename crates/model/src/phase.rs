//! Phases of a workload.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When a phase ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After this many nanoseconds; operations in flight are completed and counted.
    AfterNs(u64),
    /// After this many operations of each client.
    Count(u64),
}

/// One measured part of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the phase and of its result rows: `write`, `read`, `change`, `clean`, `mixed`, ….
    pub name: String,
    /// Operations and their weights, which need not sum to 1. Empty if a list determines the
    /// operations ([`AppCache::as_original`](crate::AppCache::as_original)).
    pub mix: BTreeMap<String, f64>,
    /// Nanoseconds of unrecorded operations before the measurement; 0 for none.
    pub warmup_ns: u64,
    /// When it ends.
    pub stop: Stop,
    /// Settings of a control phase of a key-value workload; `None` for other phases.
    pub control: Option<Control>,
}

/// A control phase: it offers a workload's operations in a different order, at a steady part of the
/// load, to separate the effect of an operation from that of its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// Operations chained on one key in this order; the first is paced. Empty for independent
    /// arrivals.
    pub sequence: Vec<String>,
    /// Thousandths of the load: of the peak of a ramp, of the rate of an open load, of the clients
    /// of a closed one; above 0.
    pub permille: u32,
    /// Number of keys, the first ones of the workload; all are written just before the phase. At
    /// least 1.
    pub keys: u64,
}
