//! Server outages.

use serde::{Deserialize, Serialize};

/// An outage: a server lost a request or was unreachable, or one of several servers was silent
/// while requests waited, until it or its successor was back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Name of the phase.
    pub phase: String,
    /// Address of the server.
    pub server: String,
    /// Start, nanoseconds since the start of the trial: when the first lost or waiting request was
    /// sent, or the last reply if that was later. If that was in the warm-up, the start of the
    /// phase's measurement.
    pub begun_ns: u64,
    /// Time without a reply, nanoseconds; at least [`Outage::SHORTEST_NS`], and at least
    /// [`Outage::SILENCE_NS`] if no request was lost.
    pub length_ns: u64,
    /// Address of its successor; `None` if the server itself came back.
    pub taken_over_by: Option<String>,
    /// True if the phase ended before the next reply.
    pub to_the_end: bool,
}

impl Outage {
    /// Minimum length. Shorter ones look like a connection that broke and was reestablished.
    pub const SHORTEST_NS: u64 = 100_000_000;

    /// Minimum length if no request or connection was lost; such a silence only counts for one of
    /// several servers. Shorter ones are normal for stores, for example during a fork. A single
    /// server blocks every client, so the percentiles show its silence; with several, the replies
    /// of the others hide it.
    pub const SILENCE_NS: u64 = 1_000_000_000;
}
