//! What a target came to that nothing can be compared with.

use model::Load;
use serde::Serialize;

/// The only target that was measured at a profile and load; a control is no other one.
#[derive(Clone, Debug, Serialize)]
pub struct AloneView {
    /// Profile of the study.
    pub workload: String,
    /// How operations were offered.
    pub load: Load,
    /// Name of the target.
    pub target: String,
    /// What it came to, in one sentence without a full stop, which begins with its name.
    pub sentence: String,
}
