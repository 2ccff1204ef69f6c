//! Watching a run while it lasts: a live page and metrics for Prometheus, over HTTP.
//!
//! - [`Listener`]: an address, taken before anything is started; [`Dash`]: the sink that serves it.
//! - `watched`: all that is known, as JSON for the page; `state`: what changes seldom; `course`:
//!   rate, times and use of CPUs and memory over the last while.
//! - `metrics`: the same for Prometheus, as text and as protobuf with native histograms.
//! - `server`: the only place that knows HTTP.
//!
//! The run waits for no reader. Events are taken in under a lock that is held for microseconds,
//! news goes to readers through a bounded channel, and one who lags behind is given a fresh
//! snapshot instead of what it missed. The server has a thread of its own.

mod course;
mod listener;
mod metrics;
mod server;
mod state;
mod watched;

pub use listener::{Listener, ServeError};
pub use server::Dash;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
