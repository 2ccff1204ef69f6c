//! A blocking connection for queries around a load: settings, number of keys, slots of a cluster.

use std::time::{Duration, Instant};

use load::wire::{Address, Tls};
use model::{Endpoint, ErrorClass, Failure, NetAddress};

use super::resp::Tree;
use super::wire::Wire;

/// A blocking connection that is logged in.
pub struct Control {
    wire: Wire,
    address: Address,
}

impl Control {
    /// Connects, over TLS if given, logs in and selects the database.
    ///
    /// Errors: as [`crate::open_session_store`]; a TLS error is `Refused`. Sends no query: a server
    /// that needs a password and got none reports that on the first one.
    pub fn connect(
        endpoint: &Endpoint,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let wire = Wire::open(endpoint, tls, timeout)?;
        let address = match (endpoint, wire.peer()) {
            (_, Ok(Some(address))) => Address::Tcp(address),
            (Endpoint::Redis { address: NetAddress::Unix(path), .. }, Ok(None)) => {
                Address::Unix(path.clone())
            }
            _ => {
                let message = format!("{endpoint}: the connection no longer has an address");
                return Err(Failure { class: ErrorClass::Closed, message });
            }
        };
        Ok(Self { wire, address })
    }

    /// The server's address: for a host with several, the one that answered.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a command and waits for its reply, which can be an error of the server.
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Tree, Failure> {
        self.wire.exchange(words).map_err(Failure::from)
    }

    /// False once the server has closed the connection.
    pub fn is_open(&self) -> bool {
        self.wire.is_open()
    }
}

/// Time limit for querying all servers of a cluster, in timeouts of a single query.
const TIMEOUTS: u32 = 3;

/// A time limit for querying the servers of a cluster one after another: three timeouts, however
/// many servers there are.
pub struct ClusterDeadline {
    deadline: Instant,
    limit: Duration,
}

impl ClusterDeadline {
    /// Starts the clock; `timeout` is that of a single query.
    pub fn new(timeout: Duration) -> Self {
        let limit = timeout * TIMEOUTS;
        Self { deadline: Instant::now() + limit, limit }
    }

    /// Call before querying each server. Errors: the time limit has passed.
    pub fn check(&self) -> Result<(), Failure> {
        if Instant::now() < self.deadline {
            return Ok(());
        }
        let message = format!(
            "not all servers of the cluster answered within {} ms (check the slow ones)",
            self.limit.as_millis()
        );
        Err(Failure { class: ErrorClass::Timeout, message })
    }
}
