//! memcached, by its text protocol and the meta commands of it.
//!
//! - [`Replies`]: reads the replies to both, for the event loop of `load`.
//! - [`requests`]: what is sent, as text or meta commands.
//! - [`ketama`]: which of several servers a key lives on.
//! - `line`: a blocking connection; on it `admin`, what is done around a run, and `text`, a
//!   client of one worker, and `binary`, the same by the binary protocol.
//! - `own_keys`: which commands are safe on a server that others use.
//! - `zend`, `symfony`: records of application caches.
//!
//! Source of the protocol: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.

mod admin;
mod binary;
mod judge;
pub mod ketama;
mod line;
pub(crate) mod own_keys;
mod replies;
pub mod requests;
mod symfony;
mod text;
mod zend;

use load::wire::route::{Route, Single};
use model::{ErrorClass, Memcached, NetAddress};
use workloads::store::StoreError;

use ketama::Ring;

pub(crate) use admin::open_admin;
pub use replies::Replies;
pub(crate) use symfony::Symfony;
pub(crate) use zend::ZendMemcached;

/// Which of the servers a key lives on: of several by ketama, with equal weights and under the
/// names that the user gave them.
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
        None => Err(StoreError::fatal(ErrorClass::Other, "no server has a place on the ring")),
    }
}

/// Why no session is kept here.
pub(crate) fn no_sessions() -> StoreError {
    let message = "memcached is no session store here (expected another)";
    StoreError::fatal(ErrorClass::Other, message)
}
