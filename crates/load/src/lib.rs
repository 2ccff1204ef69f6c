//! The two load engines and the measurement code that they share.
//!
//! - [`clients`]: one thread per client, each with its own blocking connection, like a PHP worker;
//!   [`engine`]: the phases of a trial, with the clients of a `crew`; `step`: phases, their stages
//!   and planned arrivals; `client_loop`: a client's loop through one step; `state`: state shared
//!   by all clients.
//! - [`wire`]: event loops over many connections, with pipelining and planned arrivals.
//! - [`meter`]: the interface between an engine and its caller.
//! - [`recorder`]: counts and times, per client and merged; `progress_reporter`: progress during a
//!   phase; `share`: one client's part of a phase.
//! - `slowest`: the longest time in each short interval; `intervals`: merging of per-interval
//!   numbers.
//! - `stall`: whether the store still answers.
//! - [`watch`]: the generator's own CPU time and run delay, per thread.
//!
//! Steps of a trial: connect (done by the caller), fill, then for each phase: warm up, measure,
//! drain.

mod client_loop;
pub mod clients;
mod crew;
pub mod engine;
mod intervals;
pub mod meter;
mod progress_reporter;
pub mod recorder;
mod share;
mod slowest;
mod stall;
mod state;
mod step;
pub mod watch;
pub mod wire;

pub use clients::{Clients, READ_BACK_MAX, Threads};
pub use crew::{Crew, Part};
pub use engine::Engine;
pub use meter::{Finished, Latest, Meter, PhaseRecord, Progress, Reading, Unmetered};
pub use recorder::Recorder;
pub use state::Settings;
pub use step::Step;
