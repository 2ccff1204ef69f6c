//! memcached, through its text protocol and meta commands.
//!
//! - [`Replies`]: parses the replies to both, for the event loop of `load`.
//! - [`requests`]: requests, as text or meta commands.
//! - [`ketama`]: distributes keys over several servers.
//! - `line`: a blocking connection; `admin`, `text` and `binary` build on it: administration around
//!   a run, and clients of one worker for the text and the binary protocol.
//! - `own_keys`: commands that are safe on a shared server.
//! - `zend`, `symfony`: records of application caches; `rows`: cached rows of a database.
//!
//! Source of the protocol: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.

mod admin;
mod binary;
mod judge;
pub mod ketama;
mod line;
mod memory;
pub(crate) mod own_keys;
mod replies;
pub mod requests;
mod rows;
mod symfony;
mod text;
mod zend;

use load::wire::route::{Route, Single};
use model::{ErrorClass, Memcached, NetAddress};
use workloads::store::StoreError;

use ketama::Ring;

pub(crate) use admin::open_admin;
pub use replies::Replies;
pub(crate) use rows::open_rows;
pub(crate) use symfony::Symfony;
pub(crate) use zend::ZendMemcached;

/// The route from keys to servers: ketama for several, with equal weights and the server names as
/// the user gave them.
pub(crate) fn route(memcached: &Memcached) -> Result<Box<dyn Route>, StoreError> {
    if memcached.servers.len() < 2 {
        return Ok(Box::new(Single));
    }
    let server = |address: &NetAddress| match address {
        NetAddress::Tcp(host, port) => {
            ketama::Server { host: host.clone(), port: *port, weight: 1 }
        }
        NetAddress::Unix(path) => {
            ketama::Server { host: path.display().to_string(), port: 0, weight: 1 }
        }
    };
    let servers: Vec<_> = memcached.servers.iter().map(server).collect();
    match Ring::new(&servers) {
        Some(ring) => Ok(Box::new(ring)),
        None => Err(StoreError::fatal(ErrorClass::Other, "no server has a point on the ring")),
    }
}
