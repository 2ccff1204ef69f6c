//! A time in which nothing was answered.

use serde::{Deserialize, Serialize};

/// A time in which no request of an operation was answered by any server, to the millisecond:
/// failures are no answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Name of the operation.
    pub operation: String,
    /// When it began, nanoseconds since the point began.
    pub begun_ns: u64,
    /// How long it was, nanoseconds.
    pub length_ns: u64,
}

impl Silence {
    /// Shorter ones are not told.
    pub const SHORTEST_NS: u64 = 100_000_000;
}
