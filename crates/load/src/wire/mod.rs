//! The engine of many connections: event loops with pipelining, for raw key-value load.
//!
//! - [`protocol`]: what a wire protocol must offer; [`template`]: requests as bytes with holes.
//! - [`work`]: operations on data, each request a pure function of (seed, its number).
//! - `inserts`: keys that a load adds, and which of them are there.
//! - [`pacer`]: when requests of an open load are due.
//! - `offer`: how a load is offered; [`engine`] runs it; `shared`: what its threads have in common;
//!   `outcome`: what it gave.
//! - `worker`, `ready_queue`, `linking`, `reading` and `elsewhere`: one of its threads; `clients`,
//!   `links`, `request`, `connection`, `stream`, `timer` and `watching`: what a thread works with.
//! - [`route`]: which server a key lives on; `surveying` learns it anew while a load runs, and
//!   `outages` knows when servers answered nothing.
//! - [`recorder`]: what is counted and timed, by operation in [`row`]s; `due` by when it was due,
//!   where there are limits; `stages` by stage, with what was used in each.

mod answered;
mod client_schedule;
mod clients;
mod connection;
mod due;
mod elsewhere;
pub mod engine;
mod inserts;
mod linking;
mod links;
mod offer;
mod outages;
mod outcome;
pub mod pacer;
pub mod protocol;
mod reading;
mod ready_queue;
pub mod recorder;
mod request;
pub mod route;
pub mod row;
mod shared;
mod stages;
pub mod stream;
mod surveying;
pub mod template;
mod timer;
mod watching;
pub mod work;
mod worker;

pub use engine::{ProgressSnapshot, run};
pub use offer::{Offer, Pacing, Servers, Think, Until};
pub use outcome::Outcome;
pub use recorder::WireRecorder;
pub use stream::{Address, Tls};
pub use work::{Inserting, Operation, Work};
