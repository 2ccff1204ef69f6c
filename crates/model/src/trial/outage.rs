//! A time in which a server answered nothing.

use serde::{Deserialize, Serialize};

/// A server of a load lost a request or could not be reached, or one of several servers left
/// requests waiting and answered nothing, until it, or the server that took over from it, was back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Name of the phase in which it was.
    pub phase: String,
    /// Address of the server.
    pub server: String,
    /// When the first request that it lost or left waiting was sent, or when it answered last if
    /// that was later, nanoseconds since the trial began; the start of the phase's measurement
    /// where that was in the warm-up.
    pub begun_ns: u64,
    /// How long nothing was answered, nanoseconds; at least [`Outage::SHORTEST_NS`], and at least
    /// [`Outage::SILENCE_NS`] where no request was lost.
    pub length_ns: u64,
    /// Address of the server that answers in its place; `None` where it came back itself.
    pub taken_over_by: Option<String>,
    /// True where the phase ended before anything was answered again.
    pub to_the_end: bool,
}

impl Outage {
    /// Shorter ones are not told apart from a connection that broke and was made anew.
    pub const SHORTEST_NS: u64 = 100_000_000;

    /// A silence in which no request was lost and every connection stayed is an outage from this
    /// length on, and only of one of several servers. Shorter ones are what stores do by
    /// themselves, such as to fork. A server that is alone keeps everybody waiting, so that the
    /// percentiles show its silence; of several, the others answer on and hide it.
    pub const SILENCE_NS: u64 = 1_000_000_000;
}
