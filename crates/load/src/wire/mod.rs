//! The wire engine: event loops over many connections with pipelining, for raw key-value load.
//!
//! - [`protocol`]: the interface that a wire protocol implements; [`template`]: requests as bytes
//!   with holes.
//! - [`work`]: operations on data, each request a pure function of (seed, its number).
//! - `inserts`: the keys that a load adds, and which of them exist already.
//! - [`pacer`]: arrival times of an open load.
//! - `offer`: the settings of a load; [`engine`] runs it; `shared`: state shared by its threads;
//!   `outcome`: its result; `observer`: resource use of a server under a load of other processes.
//! - `worker`, `ready_queue`, `linking`, `reading` and `redirects`: one thread of the engine;
//!   `clients`, `links`, `request`, `connection`, `stream`, `timer` and `spinning`: its data.
//! - [`route`]: which server a key lives on; `surveying` keeps that up to date while a load runs;
//!   `outages` records when servers answered nothing.
//! - [`recorder`]: counts and times, by operation in [`row`]s; `due`: counts by due time, for loads
//!   with limits; `stages`: records and resource use by stage.

mod answered;
mod client_schedule;
mod clients;
mod connection;
mod due;
pub mod engine;
mod inserts;
mod linking;
mod links;
mod observer;
mod offer;
mod outages;
mod outcome;
pub mod pacer;
pub mod protocol;
mod reading;
mod ready_queue;
pub mod recorder;
mod redirects;
mod request;
pub mod route;
pub mod row;
mod shared;
mod spinning;
mod stages;
pub mod stream;
mod surveying;
pub mod template;
mod timer;
pub mod work;
mod worker;

pub use engine::{ProgressSnapshot, run};
pub use observer::Observer;
pub use offer::{Offer, Pacing, Part, Servers, ThinkTime, Until};
pub use outcome::Outcome;
pub use recorder::WireRecorder;
pub use stream::{Address, Tls};
pub use work::{Inserting, Operation, Work};
