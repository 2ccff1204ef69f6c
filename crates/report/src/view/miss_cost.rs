//! The cost of a miss up to which dropping keys is better than keeping them all.

use model::Load;
use serde::Serialize;

use super::Value;

/// Reads on a target that dropped keys against one that found all.
#[derive(Clone, Debug, Serialize)]
pub struct MissCostView {
    /// Profile.
    pub workload: String,
    /// Load.
    pub load: Load,
    /// Name of the read.
    pub operation: String,
    /// The target that dropped keys.
    pub drops: String,
    /// The target that found all.
    pub keeps: String,
    /// Share of the reads on `drops` that found no key, 0 to 1.
    pub miss_share: f64,
    /// If a miss costs this much, a read takes equally long on both on average, nanoseconds; null
    /// if it takes longer on `drops` even without that cost in a block.
    pub breaks_even_ns: Option<Value>,
    /// The result in one sentence.
    pub sentence: String,
}
