//! The engines, and the one way of measuring that they share.
//!
//! - [`clients`]: a thread a client, each with its own blocking connection, as a PHP worker has.
//! - [`wire`]: event loops over many connections, with pipelining and planned arrivals.
//! - [`meter`]: what they ask and tell while they run.
//! - [`recorder`]: what clients count and time, each by itself and merged; `telling`: in the course
//!   of a phase; `share`: one client's part of a phase.
//! - [`watch`]: the generator's own CPU time and waiting, per thread.
//!
//! A trial's way: connect (the caller's), fill, then per phase: warm up, measure, drain.

pub mod clients;
pub mod meter;
pub mod recorder;
mod share;
mod telling;
pub mod watch;
pub mod wire;

pub use clients::Engine;
pub use meter::{Finished, Latest, Meter, Progress, Reading, Unseen};
pub use recorder::Recorder;
