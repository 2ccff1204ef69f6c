//! Requests by how far they are: those that wait for a reply, those that were answered, and those
//! that a server referred to another one.

use super::protocol::Greeting;
use super::row::Times;
use super::work::Drawn;

/// A time that is not known yet.
pub(crate) const UNTIMED: u64 = u64::MAX;

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    /// Part of what a new connection says first.
    Hello(Greeting),
    /// A request of the load.
    Request {
        drawn: Drawn,
        /// When it should have been sent, nanoseconds of the engine's clock.
        intended_ns: u64,
        /// When it was sent.
        sent_ns: u64,
        /// How often it was sent on to another server.
        hops: u8,
    },
}

/// A request whose reply has come.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    pub(super) drawn: Drawn,
    pub(super) times: Times,
    pub(super) hops: u8,
}

/// A request that a server referred to another one, which cannot be asked yet.
pub(super) struct Referred {
    pub(super) client: u32,
    pub(super) answered: Answered,
    pub(super) address: String,
    pub(super) for_good: bool,
}
