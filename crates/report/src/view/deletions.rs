//! Deletion of expired sessions, and what it costs.

use model::Load;
use serde::Serialize;

use super::Value;

/// The same load without and with deletion of expired sessions, on one target.
#[derive(Clone, Debug, Serialize)]
pub struct DeletionView {
    /// Name of the target.
    pub target: String,
    /// Profile of the study.
    pub workload: String,
    /// Load.
    pub load: Load,
    /// True if the session handler deletes; false if the server expires sessions by itself, so that
    /// both phases are the same.
    pub by_handler: bool,
    /// The phase without deletion.
    pub without: DeletionPhase,
    /// The phase with it.
    pub with: DeletionPhase,
    /// Rate with deletion divided by that without, geometric mean over blocks; null if no block has
    /// both.
    pub rate_ratio: Option<Value>,
    /// 99th percentile of the service time with deletion divided by that without.
    pub p99_ratio: Option<Value>,
    /// Collections in the second phase, over all blocks.
    pub collections: u64,
    /// Service time of the longest collection, nanoseconds; null if there was none.
    pub longest_ns: Option<u64>,
}

/// One of the two phases.
#[derive(Clone, Debug, Serialize)]
pub struct DeletionPhase {
    /// Name of the phase.
    pub phase: String,
    /// Pages per second.
    pub rate_per_s: Option<Value>,
    /// 99th percentile of a page's service time, nanoseconds.
    pub service_ns_p99: Option<Value>,
    /// Expired sessions deleted over all blocks, by handlers or, as it reports it itself, by the
    /// server; null if a server did not report it.
    pub deleted: Option<u64>,
}
