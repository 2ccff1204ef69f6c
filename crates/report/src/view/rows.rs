//! Rows of results, and what only their charts need.

use model::{Counts, Load};
use serde::Serialize;
use std::collections::BTreeMap;

use super::Value;

/// One point of a latency curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Quantile, 0 to 1.
    pub q: f64,
    /// Time at it, nanoseconds.
    pub ns: u64,
}

/// What only charts need of a row.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RowCharts {
    /// Service time by quantile, all trials merged; under an open load the response time.
    pub time_curve: Vec<CurvePoint>,
    /// Lock waits by quantile, all trials merged; empty where no lock was waited for.
    pub lock_wait_curve: Vec<CurvePoint>,
    /// Rate over time, one series a block: operations per second in each interval.
    pub rate_series: Vec<Vec<f64>>,
    /// Share of reads that found their record over time, one series a block in which any missed;
    /// null in an interval without reads. Empty for other operations.
    pub hit_series: Vec<Vec<Option<f64>>>,
    /// Length of an interval of `rate_series` and `hit_series`, seconds.
    pub interval_s: f64,
    /// What each block gave, in block order.
    pub by_block: Vec<BlockPoint>,
}

/// A requirement of the user's, and whether a row meets it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Required {
    /// As it is typed, times in nanoseconds: `p99<2000000ns`.
    pub requirement: String,
    /// In words: `p99 < 2 ms`.
    pub words: String,
    /// What was measured, nanoseconds, a share or operations per second; null where nothing was.
    pub measured: Option<Value>,
    /// The same for people.
    #[serde(skip)]
    pub shown: String,
    /// True where it is met.
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
    /// Operations that ended otherwise: misses, errors, wrong and stale values.
    pub not_ok: u64,
    /// Time of the phase that a rate is by, of a client in the mean, nanoseconds: its wall time
    /// without preparing, checking and saving again.
    pub free_ns: u64,
    /// Time in which clients saved again what cleans had removed, all together, nanoseconds.
    pub restoring_ns: u64,
}

/// Target × workload × load × operation: one row of results.
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
    /// How operations were offered.
    pub load: Load,
    /// Blocks with a usable result.
    pub blocks: u32,
    /// The metric by which targets are compared at this operation: `rate_per_s`, or
    /// `service_ns_mean` or `response_ns_mean`, as in
    /// [`Comparison::metric`](super::Comparison::metric).
    pub compared_by: String,
    /// Metrics by their stable names, for example `rate_per_s`, `service_ns_p99`.
    pub metrics: BTreeMap<String, Value>,
    /// Counts over all blocks.
    pub counts: Counts,
    /// Indices into [`View::footnotes`](super::View::footnotes).
    pub footnotes: Vec<usize>,
    /// What the user required of it; left out where nothing was, and of parts of an operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Required>,
    /// Data for charts; left out of the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charts: Option<RowCharts>,
}
