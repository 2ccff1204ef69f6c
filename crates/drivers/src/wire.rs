//! Key-value load on the wire engine: each product's request encoding, its servers and the first
//! requests of a connection.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::Meter;
use load::wire::route::Survey;
use load::wire::template::Template;
use load::wire::{Offer, Operation, Outcome, ProgressSnapshot, Servers, Work};
use model::{Endpoint, ErrorClass, Failure, Memcached, MemcachedProtocol, NetAddress, Product};
use workloads::kv::{KeyNames, Sizes};

use crate::memcached::requests::{KEY_BYTES_MAX, long_key};
use crate::redis::Replies;
use crate::redis::hello::{Login, hello};
use crate::redis::requests::{self, Placeholders};
use crate::redis::sentinel;
use crate::redis::survey::ClusterSurvey;
use crate::socket::resolve;
use crate::{memcached, tls};

/// Name under which the server lists our connections.
const CLIENT_NAME: &str = "cachedyno";

/// A wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// RESP2 or RESP3.
    Redis,
    /// The memcached protocol, as text or meta commands.
    Memcached(MemcachedProtocol),
}

/// Servers and their protocol.
#[derive(Debug)]
pub struct Access {
    /// The protocol.
    pub dialect: Dialect,
    /// The servers that requests are sent to.
    pub servers: Servers,
}

/// Resolves the servers of an endpoint. Connects only to a cluster, which must report the owners of
/// its slots within `timeout`, and to Sentinels, which must name the primary.
///
/// Errors: a product without a wire protocol here, a host without an address, unreadable TLS files,
/// or a cluster that does not report its slots.
pub fn access(endpoint: &Endpoint, timeout: Duration) -> Result<Access, Failure> {
    match endpoint {
        Endpoint::Redis { .. } => redis_servers(endpoint, timeout)
            .map(|servers| Access { dialect: Dialect::Redis, servers }),
        Endpoint::Memcached(memcached) => {
            let (hello, hello_replies) = match (&memcached.user, &memcached.password) {
                (Some(user), Some(password)) => memcached::requests::hello(user, password),
                _ => Default::default(),
            };
            let nodes = memcached.servers.iter().map(resolve).collect::<Result<_, _>>()?;
            let tls = tls::of_target(memcached.tls.as_ref(), &memcached.servers[0]);
            let (tls, route) = (tls?, memcached::route(memcached));
            let route = route?;
            let servers = Servers { nodes, tls, hello, hello_replies, route, survey: None };
            Ok(Access { dialect: Dialect::Memcached(memcached.protocol), servers })
        }
        _ => Err(Failure {
            class: ErrorClass::Other,
            message: format!("{endpoint} has no key-value protocol (expected redis://…)"),
        }),
    }
}

fn redis_servers(endpoint: &Endpoint, timeout: Duration) -> Result<Servers, Failure> {
    let (route, members) = crate::redis::members(endpoint, timeout)?;
    let (mut nodes, mut tls, mut greeting) = (Vec::new(), None, None);
    for member in &members {
        let Endpoint::Redis { address, user, password, database, options } = member else {
            continue;
        };
        nodes.push(resolve(address)?);
        if greeting.is_some() {
            continue;
        }
        // The greeting and the TLS settings are the same for all servers.
        tls = tls::of_target(options.tls.as_ref(), address)?;
        greeting = Some(hello(&Login {
            user: user.as_deref(),
            password: password.as_ref(),
            database: *database,
            resp3: options.is_resp3,
            // A proxy can close a connection on a command that it does not know.
            client_name: options.behind.is_empty().then_some(CLIENT_NAME),
            // A killed primary can come back as an empty replica before Sentinels name the next.
            primary_only: sentinel::can_fail_over(endpoint),
        }));
    }
    let (hello, hello_replies) = greeting.map(|s| (s.bytes, s.replies)).unwrap_or_default();
    let survey = ClusterSurvey::of(endpoint, &members, timeout);
    let survey = survey.map(|survey| Box::new(survey) as Box<dyn Survey>);
    let survey = survey.or_else(|| sentinel::survey(endpoint, timeout));
    Ok(Servers { nodes, tls, hello, hello_replies, route, survey })
}

impl Dialect {
    /// The protocol of an existing server, or of a private server of that product; `None` if it has
    /// none here.
    pub fn of(product: Product, endpoint: Option<&Endpoint>) -> Option<Self> {
        match (product, endpoint) {
            (_, Some(Endpoint::Memcached(memcached))) => Some(Self::Memcached(memcached.protocol)),
            (Product::Memcached, _) => Some(Self::Memcached(MemcachedProtocol::default())),
            (Product::Redis, _) => Some(Self::Redis),
            _ => None,
        }
    }

    /// An endpoint of this protocol without a login.
    pub fn endpoint(self, address: NetAddress) -> Endpoint {
        match self {
            Self::Redis => Endpoint::redis(address),
            Self::Memcached(protocol) => Endpoint::Memcached(Memcached {
                servers: vec![address],
                protocol,
                user: None,
                password: None,
                tls: None,
            }),
        }
    }

    /// An operation by its name (`get`, `set`, `del`, …) or as a custom command, with the lifetime
    /// of the values it writes. Errors: a readable message.
    pub fn operation(
        self,
        name: &str,
        command: Option<&str>,
        ttl_s: Option<u64>,
        names: &KeyNames,
        sizes: &Sizes,
    ) -> Result<Operation, String> {
        let (key_bytes, value_bytes) = (names.fixed_bytes(), sizes.fixed());
        let holes = Placeholders { key_bytes, value_bytes, below: None };
        let request = match (self, command) {
            (Self::Redis, None) => requests::operation(name, ttl_s, &holes),
            (Self::Redis, Some(text)) => requests::custom(text, &holes),
            (Self::Memcached(_), _) if names.bytes_max() > KEY_BYTES_MAX => {
                Err(long_key(names.bytes_max()))
            }
            (Self::Memcached(protocol), None) => {
                memcached::requests::operation(protocol, name, ttl_s, &holes)
            }
            (Self::Memcached(_), Some(text)) => memcached::requests::custom(text, &holes),
        };
        let request = request?;
        Ok(Operation {
            name: name.into(),
            template: Template::new(request.segments, names, value_bytes),
            shape: request.shape,
            writes: request.writes,
            reads_own: request.reads_whole,
            then: None,
        })
    }

    /// Runs a load over this protocol.
    pub fn run(
        self,
        offer: &Offer,
        work: &Work,
        servers: &Servers,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        watcher: &mut dyn FnMut(ProgressSnapshot<'_>),
    ) -> Outcome {
        match self {
            Self::Redis => load::wire::run::<Replies>(offer, work, servers, stop, meter, watcher),
            Self::Memcached(_) => {
                load::wire::run::<memcached::Replies>(offer, work, servers, stop, meter, watcher)
            }
        }
    }
}
