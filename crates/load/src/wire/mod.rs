//! The engine of many connections: event loops with pipelining, for raw key-value load.
//!
//! - [`protocol`]: what a wire protocol must offer; [`template`]: requests as bytes with holes.
//! - [`work`]: operations on data, each request a pure function of (seed, its number).
//! - [`inserts`]: keys that a load adds, and which of them are there.
//! - [`pacer`]: when requests of an open load are due.
//! - [`engine`]: how a load is offered; `outcome`: what it gave; `worker`, `turns`, `linking`,
//!   `reading`, `elsewhere` and `watching` are one of its threads, `connection`, `stream` and
//!   `timer` what a thread works with.
//! - [`route`]: which server a key lives on; `surveying` learns it anew while a load runs, and
//!   `outages` knows when servers answered nothing.
//! - [`recorder`]: what is counted and timed; `due` by when it was due, where there are limits;
//!   `stages` by stage, with what was used in each.

mod connection;
mod crowd;
mod due;
mod elsewhere;
pub mod engine;
pub mod inserts;
mod linking;
mod outages;
mod outcome;
pub mod pacer;
pub mod protocol;
mod reading;
pub mod recorder;
pub mod route;
mod stages;
pub mod stream;
mod surveying;
pub mod template;
mod timer;
mod turns;
mod watching;
pub mod work;
mod worker;

pub use engine::{Moment, Offer, Pacing, Servers, Think, Until, run};
pub use inserts::Inserting;
pub use outcome::Outcome;
pub use recorder::WireRecorder;
pub use stream::{Address, Tls};
pub use work::{Operation, Work};
