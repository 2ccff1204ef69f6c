//! Times without a reply.

use serde::{Deserialize, Serialize};

/// A time in which no server answered a request of an operation, with millisecond resolution.
/// Failures do not count as replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Name of the operation.
    pub operation: String,
    /// Start, nanoseconds since the start of the point.
    pub begun_ns: u64,
    /// Length, nanoseconds.
    pub length_ns: u64,
}

impl Silence {
    /// Minimum length; shorter ones are not recorded.
    pub const SHORTEST_NS: u64 = 100_000_000;
}
