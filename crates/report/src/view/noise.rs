//! Disturbances of a run.

use serde::Serialize;

/// A disturbance of the run: its median and maximum over trials.
#[derive(Clone, Debug, Serialize)]
pub struct NoiseView {
    /// Kind: `steal`, `PSI cpu`, `other processes`, `run-queue wait`, `hiccup`.
    pub name: String,
    /// Median over trials, with unit.
    pub median: String,
    /// Largest over trials, with unit.
    pub worst: String,
    /// Explanation.
    pub meaning: String,
}
