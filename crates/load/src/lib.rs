//! The engines, and the one way of measuring that they share.
//!
//! - [`clients`]: a thread a client, each with its own blocking connection, as a PHP worker has;
//!   `client_loop`: its way through a phase; `state`: what all of them share.
//! - [`wire`]: event loops over many connections, with pipelining and planned arrivals.
//! - [`meter`]: what they ask and tell while they run.
//! - [`recorder`]: what clients count and time, each by itself and merged; `progress_reporter`: in
//!   the course of a phase; `share`: one client's part of a phase.
//! - `slowest`: the longest time in each short interval; `intervals`: numbers by interval, merged.
//! - [`watch`]: the generator's own CPU time and waiting, per thread.
//!
//! A trial's way: connect (the caller's), fill, then per phase: warm up, measure, drain.

mod client_loop;
pub mod clients;
mod intervals;
pub mod meter;
mod progress_reporter;
pub mod recorder;
mod share;
mod slowest;
mod state;
pub mod watch;
pub mod wire;

pub use clients::READ_BACK_MAX;
pub use meter::{Finished, Latest, Meter, PhaseRecord, Progress, Reading, Unseen};
pub use recorder::Recorder;
pub use state::Engine;
