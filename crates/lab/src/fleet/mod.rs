//! One load from several processes: a driver and its workers.
//!
//! The driver prepares the store, plans, searches, judges and records, as without workers. For each
//! load it sends the same job to every worker, with that worker's part of the threads. All workers
//! start at one time and return points, which [`model::Point::contribute`] adds up.
//!
//! - `messages`: what both sides send. Each message is a JSON text after its length in bytes (four
//!   bytes, big-endian), over one TLS connection per worker.
//! - `token`: the secret of a fleet and the certificate of its driver, in a file.
//! - `link`: one end of a connection, with its thread; answers pings at once.
//! - `clock`: difference between two clocks, from the shortest round trip.
//! - `strangers`: connections that have not said who they are.
//! - `joining`: workers join the driver; `local`: workers that it places, on this machine or by
//!   `ray`; `machines`: what they say of their machines; `member`: one of them.
//! - `offering`: one load on all workers; `course`: its progress; `merged`: its results as one;
//!   `crew`: blocking clients on all workers.
//! - [`worker`]: the other side, `own_clients`: its blocking clients; `connecting`: connects to a
//!   process that may start later.
//! - [`lending`]: the other way round, a worker that starts servers for a driver; `rig_on`: the
//!   driver's side of that; `rig_messages`: what both send.
//! - `endpoint`: a store with its credentials, as sent to workers.

mod clock;
mod connecting;
mod course;
mod crew;
mod endpoint;
mod joining;
pub mod lending;
mod link;
mod local;
mod machines;
mod member;
mod merged;
mod messages;
mod offering;
mod own_clients;
mod ray;
mod rig_messages;
mod rig_on;
mod strangers;
mod token;
pub mod worker;

pub(crate) use crew::OpenedByFleet;
pub use joining::{Fleet, Gathering};
pub use merged::Offered;
pub use rig_on::RigOn;
pub use token::Token;

pub(crate) use messages::{Requests, What};
pub(crate) use offering::{Job, Load};
pub(crate) use rig_on::RemoteServers;

/// Error of a fleet, in words.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct FleetError(pub String);

/// A number of workers, in words.
pub fn counted_workers(workers: u32) -> String {
    let plural = if workers == 1 { "" } else { "s" };
    format!("{workers} worker{plural}")
}
