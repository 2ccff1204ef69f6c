//! Servers that are no stores: what is known about them is what generators are judged by.
//!
//! - [`NullServer`] answers at the least cost and stores nothing, so that what is left is what the
//!   generator, the kernel and the wire cost. A target that is as fast as it is no target's speed.
//! - [`ScriptedServer`] answers at times that are computed from a [`Script`], or wrongly where the
//!   script says so, and records what it did: the truth to compare a generator's figures with.
//!
//! Both speak RESP (2 and 3) and memcached's text protocol with its meta commands; which of them a
//! connection speaks is seen from its first bytes. Both run in threads of the
//! calling process and stop when they are dropped.
//!
//! Parts: `listen` and `wake` hold the sockets, `scan` finds requests in what was read, `replies`
//! spells what is said to them.

mod listen;
mod null;
mod replies;
mod scan;
mod scripted;
mod wake;

pub use listen::Listen;
pub use null::{NullServer, NullSettings, Served};
pub use scripted::{
    ConnectionStall, Drip, Fault, Script, ScriptError, ScriptedServer, ScriptedSettings, Service,
    Stall, Stamp, Tally,
};
