//! Targets with the limits of a tier.

use model::Load;
use serde::Serialize;

use super::value::Value;

/// A target with limits.
#[derive(Clone, Debug, Serialize)]
pub struct TierView {
    /// Name of the target.
    pub target: String,
    /// Its limits: `256 MiB of memory, 1 CPU`.
    pub limits: String,
    /// Its phases.
    pub phases: Vec<TierPhase>,
}

/// A phase of a target with limits.
#[derive(Clone, Debug, Serialize)]
pub struct TierPhase {
    /// Profile of the study.
    pub workload: String,
    /// The operation.
    pub operation: String,
    /// Load.
    pub load: Load,
    /// Operations per second; null without a rate.
    pub rate_per_s: Option<Value>,
    /// The limits that it reached; empty if something else limited it.
    pub reached: Vec<ReachedLimit>,
    /// The source's figure for such an instance, operations per second; omitted without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_per_s: Option<f64>,
    /// Table, row and column of that figure, and its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_in: Option<String>,
}

/// A limit that a target reached.
#[derive(Clone, Debug, Serialize)]
pub struct ReachedLimit {
    /// Which: `CPU time` or `bandwidth`.
    pub limit: String,
    /// Used part of it, 0 to about 1.
    pub used_share: f64,
    /// In words: `0.49 of 0.5 CPUs, stopped for 48 % of the time`.
    pub shown: String,
}
