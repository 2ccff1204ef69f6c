//! Rows that form a grid over several axes.

use model::Load;
use serde::Serialize;

/// Rows of one target and profile that differ in at least two of its axes, with at least two
/// values of each measured in all combinations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridView {
    /// Name of the target, the first if several differ only in their threads.
    pub target: String,
    /// Profile of the study, without the values of its lists.
    pub profile: String,
    /// Load, with one client and one request at once.
    pub load: Load,
    /// Axes with at least two values.
    pub axes: Vec<GridAxis>,
    /// One entry for each row.
    pub cells: Vec<GridCell>,
}

/// An axis of a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GridAxis {
    /// `value_bytes`, `clients`, `pipeline` or `threads` (of the server, for I/O).
    pub name: GridAxisName,
    /// Ascending.
    pub values: Vec<u64>,
}

/// What differs along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GridAxisName {
    /// Size of values.
    ValueBytes,
    /// Clients with a connection each.
    Clients,
    /// Requests at once on each connection.
    Pipeline,
    /// I/O threads of the server.
    Threads,
}

/// A row in a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GridCell {
    /// For each axis the index of its value.
    pub at: Vec<usize>,
    /// Index in [`View::cells`](super::View::cells).
    pub row: usize,
}
