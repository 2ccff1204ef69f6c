//! A blocking connection for questions around a load: settings, number of keys, slots of a cluster.

use std::time::{Duration, Instant};

use load::wire::{Address, Tls};
use model::{Endpoint, ErrorClass, Failure, NetAddress};

use super::resp::Tree;
use super::wire::Wire;

/// Such a connection, logged in.
pub struct Control {
    wire: Wire,
    address: Address,
}

impl Control {
    /// Connects, over TLS where that is given, logs in and selects the database.
    ///
    /// Errors: as [`crate::open_session_store`]; a fault of TLS is `Refused`. Nothing is asked
    /// yet: a server that demands a password and got none says so to the first question.
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
                let message = format!("{endpoint}: the connection has no address any more");
                return Err(Failure { class: ErrorClass::Closed, message });
            }
        };
        Ok(Self { wire, address })
    }

    /// Where the server listens: of several addresses of a host the one that answered.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a command and waits for its reply, whatever that is: an error of the server is a
    /// reply.
    pub fn ask(&mut self, words: &[&[u8]]) -> Result<Tree, Failure> {
        self.wire.exchange(words).map_err(Failure::from)
    }

    /// False once the server has ended the connection.
    pub fn is_open(&self) -> bool {
        self.wire.is_open()
    }
}

/// Time-outs that questions to all servers of a cluster may take together.
const TIMEOUTS: u32 = 3;

/// A time limit for questions that are put to one server of a cluster after another: three
/// time-outs, however many servers there are.
pub struct InTurn {
    until: Instant,
    limit: Duration,
}

impl InTurn {
    /// Begins now; `timeout` is that of a single question.
    pub fn new(timeout: Duration) -> Self {
        let limit = timeout * TIMEOUTS;
        Self { until: Instant::now() + limit, limit }
    }

    /// To be asked before each server. Errors: the time is over.
    pub fn check(&self) -> Result<(), Failure> {
        if Instant::now() < self.until {
            return Ok(());
        }
        let message = format!(
            "the cluster's servers did not all answer within {} ms (expected each to answer at \
             once)",
            self.limit.as_millis()
        );
        Err(Failure { class: ErrorClass::Timeout, message })
    }
}
