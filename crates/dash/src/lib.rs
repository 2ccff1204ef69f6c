//! Live monitoring of a run over HTTP: a live page and Prometheus metrics.
//!
//! - [`Listener`]: an address, bound before anything is started; [`Dash`]: the sink that serves it.
//! - `watched`: the run's whole live state, as JSON for the page; `state`: its slowly changing
//!   part; `course`: recent rate, latencies, CPU and memory usage.
//! - `metrics`: the same for Prometheus, as text and as protobuf with native histograms.
//! - `server`: the HTTP server; no other module handles HTTP.
//!
//! Readers never block the run. Events are processed under a lock that is held for microseconds.
//! Updates reach readers through a bounded channel, and a reader that lags behind gets a fresh
//! snapshot instead of the updates it missed. The server runs on its own thread.

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
