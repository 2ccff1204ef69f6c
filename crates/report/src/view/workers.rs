//! What each worker of a fleet contributed.

use model::Load;
use serde::Serialize;
use stats::Time;

/// A worker's part of a phase, over all blocks.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerView {
    /// Name of the target.
    pub target: String,
    /// Profile of the study.
    pub workload: String,
    /// Name of the phase.
    pub phase: String,
    /// Load of all workers together.
    pub load: Load,
    /// Name of the worker.
    pub worker: String,
    /// Its clients.
    pub clients: u32,
    /// Its operations per second.
    pub rate_per_s: f64,
    /// 99th percentile of its response times; null without operations.
    pub response_ns_p99: Option<Time>,
    /// Requests that it answered, as a share of its part of the plan; null under a closed load.
    pub share_of_plan: Option<f64>,
    /// CPU time of its threads as a share of their time, with the time for which they waited for a
    /// CPU if workers share CPUs.
    pub cpu_share: f64,
    /// Share of the time that its blocking clients spent on the generator's own work.
    pub own_share: f64,
    /// Share of their time in which its threads waited for a CPU.
    pub waited_share: f64,
    /// Share of the time in which others used its CPUs.
    pub disturbed_share: f64,
    /// Largest bound on the difference between its start and the planned one, nanoseconds.
    pub start_skew_ns: u64,
    /// Rate of all other workers together, operations per second; null if there are none.
    pub rate_per_s_without: Option<f64>,
    /// 99th percentile of the response times of all other workers; null if there are none.
    pub response_ns_p99_without: Option<Time>,
}
