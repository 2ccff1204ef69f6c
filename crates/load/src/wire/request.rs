//! States of a request: pending, answered, or referred to another server.

use super::protocol::Greeting;
use super::row::Times;
use super::work::Drawn;

/// A time that is not yet known.
pub(crate) const UNTIMED: u64 = u64::MAX;

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    /// Part of the greeting of a new connection.
    Hello(Greeting),
    /// A request of the load.
    Request {
        drawn: Drawn,
        /// When it should have been sent, nanoseconds of the engine's clock.
        intended_ns: u64,
        /// When it was sent.
        sent_ns: u64,
        /// How often it was redirected to another server.
        hops: u8,
    },
}

/// A request that has been answered.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    pub(super) drawn: Drawn,
    pub(super) times: Times,
    pub(super) hops: u8,
}

/// A request that was referred to another server, which cannot be reached yet.
pub(super) struct Referred {
    pub(super) client: u32,
    pub(super) answered: Answered,
    pub(super) address: String,
    pub(super) for_good: bool,
}
