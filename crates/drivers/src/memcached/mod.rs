//! memcached, by its text protocol and the meta commands of it.
//!
//! - [`Replies`]: reads the replies to both, for the event loop of `load`.
//! - [`requests`]: what is sent, as text or meta commands.
//! - [`ketama`]: which of several servers a key lives on.
//!
//! Source of the protocol: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.

mod judge;
pub mod ketama;
mod replies;
pub mod requests;

pub use replies::Replies;
