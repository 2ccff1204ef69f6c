//! Growth of costs with the size of the data set.

use model::Load;
use serde::Serialize;
use stats::Growth;

use super::Value;

/// Growth of an operation's cost with the size of the data set, on one target.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthView {
    /// Profile of the study that measures several sizes.
    pub workload: String,
    /// Target.
    pub target: String,
    /// Operation.
    pub operation: String,
    /// Load.
    pub load: Load,
    /// The size that grows from point to point: `records` or `records_of_tag`, a key of the points.
    pub grows: String,
    /// The cost: `service_ns_mean`.
    pub metric: String,
    /// One point for each size with a result, by increasing size.
    pub points: Vec<GrowthPoint>,
    /// Exponent of the power law cost = c · size^slope, mean over blocks; null if no block measured
    /// two sizes.
    pub slope: Option<Value>,
    /// Verdict on the slope.
    pub verdict: Growth,
}

/// One size of a growth curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthPoint {
    /// Name of the profile in result rows, with the size.
    pub workload: String,
    /// Records of the data set.
    pub records: u64,
    /// Mean number of records per tag; omitted without tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_of_tag: Option<f64>,
    /// Mean service time, nanoseconds.
    pub cost: Value,
}

impl GrowthPoint {
    /// The size named by [`GrowthView::grows`].
    pub(crate) fn size(&self, grows: &str) -> f64 {
        self.records_of_tag.filter(|_| grows != "records").unwrap_or(self.records as f64)
    }
}
