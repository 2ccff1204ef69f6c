//! How costs grow with the size of the data set.

use model::Load;
use serde::Serialize;
use stats::Growth;

use super::Value;

/// How the cost of an operation grows with the size of the data set, on one target.
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
    /// What grows from point to point: `records` or `records_of_tag`, the key of a point.
    pub grows: String,
    /// The cost: `service_ns_mean`.
    pub metric: String,
    /// One a size that has a result, in rising order of size.
    pub points: Vec<GrowthPoint>,
    /// Exponent of the power law cost = c · size^slope, mean over blocks; null where fewer than two
    /// sizes were measured in the same block.
    pub slope: Option<Value>,
    /// What the slope says.
    pub verdict: Growth,
}

/// One size of a growth curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthPoint {
    /// Name of the profile in rows of results, with the size.
    pub workload: String,
    /// Records of the data set.
    pub records: u64,
    /// Records that carry a tag, in the mean.
    pub records_of_tag: f64,
    /// Mean service time, nanoseconds.
    pub cost: Value,
}

impl GrowthPoint {
    /// What grows: `records`, or else the records of a tag.
    pub(crate) fn size(&self, grows: &str) -> f64 {
        if grows == "records" { self.records as f64 } else { self.records_of_tag }
    }
}
