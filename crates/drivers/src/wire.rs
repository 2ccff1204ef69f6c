//! Key-value load by the wire engine: how each product's operations are spelled, which servers
//! there are, and what is said to them first.

use std::fmt::Display;
use std::net::ToSocketAddrs;
use std::sync::atomic::AtomicBool;

use load::clients::Meter;
use load::wire::route::Single;
use load::wire::template::Template;
use load::wire::{Address, Moment, Offer, Operation, Outcome, Servers, Work};
use model::{Endpoint, ErrorClass, Failure, NetAddress};
use workloads::kv::{KeyNames, Sizes};

use crate::redis::Replies;
use crate::redis::hello::{Login, hello};
use crate::redis::requests::{self, Holes};

/// Name under which a server lists our connections.
const CLIENT_NAME: &str = "cachedyno";

/// A wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// RESP2 or RESP3.
    Redis,
}

/// Servers, and how one speaks to them.
#[derive(Debug)]
pub struct Access {
    /// The protocol.
    pub dialect: Dialect,
    /// Where requests go.
    pub servers: Servers,
}

/// Reads where the servers of an endpoint are; connects to none of them.
///
/// Errors: a product that has no wire protocol here, a host that has no address.
pub fn access(endpoint: &Endpoint) -> Result<Access, Failure> {
    match endpoint {
        Endpoint::Redis { address, user, password, database } => {
            let said = hello(&Login {
                user: user.as_deref(),
                password: password.as_ref(),
                database: *database,
                resp3: false,
                client_name: Some(CLIENT_NAME),
            });
            let servers = Servers {
                nodes: vec![resolve(address)?],
                tls: None,
                hello: said.bytes,
                hello_replies: said.replies,
                route: Box::new(Single),
            };
            Ok(Access { dialect: Dialect::Redis, servers })
        }
        Endpoint::Files { .. } | Endpoint::Mysql { .. } => Err(Failure {
            class: ErrorClass::Other,
            message: format!("{endpoint} has no key-value protocol (expected redis://…)"),
        }),
    }
}

/// The address of a server; of several, the first.
fn resolve(address: &NetAddress) -> Result<Address, Failure> {
    let (host, port) = match address {
        NetAddress::Unix(path) => return Ok(Address::Unix(path.clone())),
        NetAddress::Tcp(host, port) => (host.as_str(), *port),
    };
    let unknown = |e: &dyn Display| Failure {
        class: ErrorClass::Refused,
        message: format!("host `{host}` has no address: {e}"),
    };
    let mut found = (host, port).to_socket_addrs().map_err(|e| unknown(&e))?;
    found.next().map(Address::Tcp).ok_or_else(|| unknown(&"none is known"))
}

impl Dialect {
    /// An operation by its name (`get`, `set`, `del`, …) or by a command of one's own, with the
    /// lifetime of what it writes. Errors: a sentence for people.
    pub fn operation(
        self,
        name: &str,
        command: Option<&str>,
        ttl_s: Option<u64>,
        names: &KeyNames,
        sizes: &Sizes,
    ) -> Result<Operation, String> {
        let Self::Redis = self;
        let (key_bytes, value_bytes) = (names.fixed_bytes(), sizes.fixed());
        let holes = Holes { key_bytes, value_bytes, below: None };
        let request = match command {
            None => requests::operation(name, ttl_s, &holes),
            Some(text) => requests::custom(text, &holes),
        };
        let request = request.map_err(|e| e.to_string())?;
        Ok(Operation {
            name: name.into(),
            template: Template::new(request.segments, names, value_bytes),
            shape: request.shape,
            writes: request.writes,
            reads_own: request.reads_whole,
            then: None,
        })
    }

    /// Offers a load in this protocol.
    pub fn run(
        self,
        offer: &Offer,
        work: &Work,
        servers: &Servers,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        watcher: &mut dyn FnMut(Moment<'_>),
    ) -> Outcome {
        let Self::Redis = self;
        load::wire::run::<Replies>(offer, work, servers, stop, meter, watcher)
    }
}
