//! Result rows, and data for their charts.

use model::{Counts, Load};
use serde::Serialize;
use std::collections::BTreeMap;

use super::{ServerCharts, Value};

/// One point of a latency curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Quantile, 0 to 1.
    pub q: f64,
    /// Time at it, nanoseconds.
    pub ns: u64,
}

/// Data of a row for charts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RowCharts {
    /// Service time by quantile, all trials merged; response time under an open load.
    pub time_curve: Vec<CurvePoint>,
    /// Lock waits by quantile, all trials merged; empty if there were none.
    pub lock_wait_curve: Vec<CurvePoint>,
    /// Rate over time, one series per block: operations per second in each interval.
    pub rate_series: Vec<Vec<f64>>,
    /// 99th percentile of the response time, one series per block: the end of an interval, seconds
    /// since the start of the measurement, and nanoseconds. A block of an older record has none.
    pub p99_series: Vec<Vec<(f64, f64)>>,
    /// Failed operations per second in the same intervals, one series per block; empty if none
    /// failed.
    pub failed_series: Vec<Vec<f64>>,
    /// Hit ratio over time, one series for each block with misses; null in an interval without
    /// reads. Empty for other operations.
    pub hit_series: Vec<Vec<Option<f64>>>,
    /// Length of an interval of `rate_series` and `hit_series`, seconds.
    pub interval_s: f64,
    /// Memory and disk over time; omitted unless the memory of its target is limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceCharts>,
    /// Servers around a fault; omitted unless the plan caused one in this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers: Option<ServerCharts>,
    /// Results of each block, in block order.
    pub by_block: Vec<BlockPoint>,
}

/// What a target with limited memory used over time: one series per block, null without samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceCharts {
    /// Length of an interval, seconds.
    pub interval_s: f64,
    /// Memory of its control group without page cache at the end of each interval.
    pub memory_bytes: Vec<Vec<Option<f64>>>,
    /// Memory of its servers on swap at the end of each interval.
    pub swapped_bytes: Vec<Vec<Option<f64>>>,
    /// Bytes that everyone read from the disk under test, per second.
    pub read_bytes_per_s: Vec<Vec<Option<f64>>>,
    /// Bytes that everyone wrote to it, per second.
    pub written_bytes_per_s: Vec<Vec<Option<f64>>>,
}

/// A requirement of the user, and whether a row meets it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Required {
    /// As typed, with times in nanoseconds: `p99<2000000ns`.
    pub requirement: String,
    /// Readable form: `p99 < 2 ms`.
    pub words: String,
    /// Measured nanoseconds, share or operations per second; null if not measured.
    pub measured: Option<Value>,
    /// Formatted measured value.
    #[serde(skip)]
    pub shown: String,
    /// True if it is met.
    pub is_met: bool,
}

/// One row's result in one block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockPoint {
    /// Block, from 0.
    pub block: u32,
    /// Operations per second.
    pub rate_per_s: f64,
    /// Mean service time, nanoseconds.
    pub service_ns_mean: f64,
    /// Median service time, nanoseconds.
    pub service_ns_p50: Option<u64>,
    /// 99th percentile of the service time, nanoseconds.
    pub service_ns_p99: Option<u64>,
    /// 99.9th percentile of the service time, nanoseconds.
    pub service_ns_p999: Option<u64>,
    /// Operations answered as expected.
    pub ok: u64,
    /// Operations with another result: misses, errors, wrong and stale values.
    pub not_ok: u64,
    /// Time that rates are based on, mean over clients, nanoseconds: wall time of the phase without
    /// preparation, checks and restoring.
    pub free_ns: u64,
    /// Total time in which clients restored records that cleans had removed, nanoseconds.
    pub restoring_ns: u64,
}

/// One result row: target × workload × load × operation.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Name of the target.
    pub target: String,
    /// Product and version.
    pub product: Option<String>,
    /// Profile of the study.
    pub workload: String,
    /// Operation: `write`, `read`, `change`, `mixed`, `mixed.read`, `page`, `page.open`, ….
    pub operation: String,
    /// Load.
    pub load: Load,
    /// Blocks with a usable result.
    pub blocks: u32,
    /// The metric that targets are compared by at this operation: `rate_per_s`, `service_ns_mean`
    /// or `response_ns_mean`, as in [`Comparison::metric`](super::Comparison::metric).
    pub compared_by: String,
    /// Metrics by stable name, for example `rate_per_s`, `service_ns_p99`.
    pub metrics: BTreeMap<String, Value>,
    /// Counts over all blocks.
    pub counts: Counts,
    /// Indices into [`View::footnotes`](super::View::footnotes).
    pub footnotes: Vec<usize>,
    /// The user's requirements for it; omitted if there are none, and for parts of an operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Required>,
    /// Data for charts; omitted from the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charts: Option<RowCharts>,
}
