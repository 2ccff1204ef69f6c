//! Reference servers: their behaviour is known, so the load generator can be checked against them.
//!
//! - [`NullServer`] replies at the lowest possible cost and stores nothing. What remains is the
//!   cost of generator, kernel and wire. A target as fast as this was not really measured.
//! - [`ScriptedServer`] replies at times computed from a [`Script`], or wrongly where the script
//!   says so, and records what it did: the ground truth for a generator's figures.
//!
//! Both speak RESP (2 and 3) and memcached's text protocol with its meta commands; the
//! first bytes of a connection decide which. Both run in threads of the calling process and stop
//! when dropped.
//!
//! Parts: `listen` handles sockets, `wake` starts and wakes threads, `scan` finds requests in the
//! bytes read, `replies` encodes replies.

pub(crate) mod listen;
mod null;
mod replies;
mod scan;
mod scripted;
pub(crate) mod wake;

pub use listen::Listen;
pub use null::{NullServer, NullSettings, ServedCounts};
pub use scripted::{
    ConnectionStall, Drip, Fault, Script, ScriptError, ScriptedServer, ScriptedSettings, Service,
    Stall, Stamp, Tally,
};
