//! The number of purchases at which one application cache overtakes another.

use model::Load;
use serde::Serialize;

use super::Value;

/// Two targets of which one has the faster page views and the other the faster purchases, or one
/// both.
#[derive(Clone, Debug, Serialize)]
pub struct BreakEvenView {
    /// Profile with page views and purchases.
    pub workload: String,
    /// Load.
    pub load: Load,
    /// The target whose page views take less time.
    pub faster_pages: String,
    /// The other target.
    pub other: String,
    /// Purchases per page view at which both take the same time; with more, `other` takes less.
    /// Null if `other` takes longer for purchases as well, or if either difference is not
    /// significant.
    pub purchases_per_page: Option<Value>,
    /// Blocks in which it exists.
    pub blocks: u32,
    /// Blocks measured on both.
    pub of_blocks: u32,
    /// The result in one sentence.
    pub sentence: String,
}
