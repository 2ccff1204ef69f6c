//! A primary with replicas, with or without Sentinels that promote a replica if it dies: finds the
//! current primary and the role of each server.
//!
//! A client queries the servers that it knows in turn. A Sentinel names the primary, a replica the
//! server that it follows, and the primary itself; the server they name is asked whether it is the
//! primary, because servers learn of a promotion one after the other. Sources:
//! <https://redis.io/docs/latest/develop/reference/sentinel-clients/> and
//! <https://redis.io/docs/latest/commands/role/>.

use std::time::Duration;

use load::wire::Address;
use load::wire::route::{Layout, Route, Survey};
use model::{Endpoint, ErrorClass, Failure, NetAddress, RedisOptions};
use workloads::store::StoreError;

use super::resp::{Tree, text};
use super::wire::Wire;
use crate::socket::resolve;

/// Longest wait for one server while a load runs.
const QUERY_TIMEOUT_MAX: Duration = Duration::from_millis(500);

/// A route to one server that has all keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Only(pub(super) usize);

impl Route for Only {
    fn node(&self, _name: &[u8]) -> usize {
        self.0
    }

    fn owners(&self) -> Vec<usize> {
        vec![self.0]
    }

    fn fresh(&self) -> Box<dyn Route> {
        Box::new(*self)
    }
}

/// The role that a server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Accepts writes.
    Primary {
        /// Bytes written to its replication stream.
        offset: u64,
        /// The connected replicas, with the bytes that each has acknowledged.
        replicas: Vec<(NetAddress, u64)>,
    },
    /// Replicates another server.
    Replica {
        /// The replicated server.
        of: NetAddress,
        /// State of the replication link: `connect`, `connecting`, `sync` or `connected`.
        link: String,
        /// Bytes received, if any.
        offset: Option<u64>,
    },
    /// Monitors servers.
    Sentinel {
        /// The server that it considers the primary.
        primary: NetAddress,
    },
}

/// Repeatedly queries the role of one server and reconnects when the connection breaks.
pub struct RoleReader {
    endpoint: Endpoint,
    timeout: Duration,
    wire: Option<Wire>,
}

impl RoleReader {
    /// For a server or a Sentinel; connects on the first query.
    pub fn new(endpoint: Endpoint, timeout: Duration) -> Self {
        Self { endpoint, timeout, wire: None }
    }

    /// The current role. Errors: connection refused, a timeout, or an unexpected reply.
    pub fn role(&mut self) -> Result<Role, Failure> {
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => Wire::of(&self.endpoint, self.timeout)?,
        };
        let role = ask_role(&mut wire)?;
        self.wire = Some(wire);
        Ok(role)
    }
}

fn ask_role(wire: &mut Wire) -> Result<Role, StoreError> {
    let answer = wire.ask(&[b"ROLE"])?;
    let role = match &answer {
        Tree::List(parts) => match parts.as_slice() {
            [kind, Tree::Integer(offset), Tree::List(replicas)] if is(kind, "master") => {
                primary(*offset, replicas)
            }
            [kind, host, port, link, offset] if is(kind, "slave") => {
                replica([host, port, link, offset])
            }
            [kind, ..] if is(kind, "sentinel") => {
                Some(Role::Sentinel { primary: primary_of(wire)? })
            }
            _ => None,
        },
        _ => None,
    };
    role.ok_or_else(|| unexpected("ROLE"))
}

fn primary(offset: i64, replicas: &[Tree]) -> Option<Role> {
    let one = |tree: &Tree| match tree {
        Tree::List(parts) => match parts.as_slice() {
            [host, port, offset] => Some((parse_address(host, port)?, number(offset)?)),
            _ => None,
        },
        _ => None,
    };
    let replicas = replicas.iter().map(one).collect::<Option<_>>()?;
    Some(Role::Primary { offset: u64::try_from(offset).ok()?, replicas })
}

fn replica([host, port, link, offset]: [&Tree; 4]) -> Option<Role> {
    let link = text(link.clone());
    Some(Role::Replica { of: parse_address(host, port)?, link, offset: number(offset) })
}

/// The primary according to a Sentinel.
fn primary_of(wire: &mut Wire) -> Result<NetAddress, StoreError> {
    let name = RedisOptions::SENTINEL_NAME.as_bytes();
    let answer = wire.ask(&[b"SENTINEL", b"get-master-addr-by-name", name])?;
    let address = match &answer {
        Tree::List(parts) => match parts.as_slice() {
            [host, port] => parse_address(host, port),
            _ => None,
        },
        _ => None,
    };
    address.ok_or_else(|| unexpected("SENTINEL get-master-addr-by-name"))
}

fn is(tree: &Tree, word: &str) -> bool {
    matches!(tree, Tree::Text(bytes) if bytes == word.as_bytes())
}

/// A number, which some replies contain as text.
fn number(tree: &Tree) -> Option<u64> {
    match tree {
        Tree::Integer(number) => u64::try_from(*number).ok(),
        other => text(other.clone()).parse().ok(),
    }
}

fn parse_address(host: &Tree, port: &Tree) -> Option<NetAddress> {
    let port = number(port).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)?;
    Some(NetAddress::Tcp(text(host.clone()), port))
}

fn unexpected(question: &str) -> StoreError {
    let message = format!("`{question}` returned an unexpected reply (expected Redis 5 or later)");
    StoreError::fatal(ErrorClass::Protocol, message)
}

/// The servers that know the primary of an endpoint; empty for a fixed server.
fn seeds(endpoint: &Endpoint) -> &[NetAddress] {
    match endpoint {
        Endpoint::Redis { options, .. } => &options.seeds,
        _ => &[],
    }
}

/// True if another server can become the primary.
pub(crate) fn can_fail_over(endpoint: &Endpoint) -> bool {
    !seeds(endpoint).is_empty()
}

/// The endpoint of one server, with the same password.
fn at(endpoint: &Endpoint, server: &NetAddress) -> Endpoint {
    let mut one = endpoint.clone();
    if let Endpoint::Redis { address, options, .. } = &mut one {
        *address = server.clone();
        options.seeds.clear();
    }
    one
}

/// The current primary of an endpoint whose primary can change, as its own endpoint; `None` for a
/// fixed server. Errors: no server names one that confirms that it is the primary.
pub(super) fn current_primary(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Option<Result<Endpoint, StoreError>> {
    let mut last = None;
    let mut seen = Vec::new();
    for seed in seeds(endpoint) {
        match confirmed_primary(endpoint, seed, &mut seen, timeout) {
            Ok(primary) => return Some(Ok(primary)),
            Err(e) => last = Some(Err(e)),
        }
    }
    last
}

/// The primary according to one server. One in `seen` is known not to be the primary and is not
/// queried again.
fn confirmed_primary(
    endpoint: &Endpoint,
    asked: &NetAddress,
    seen: &mut Vec<NetAddress>,
    timeout: Duration,
) -> Result<Endpoint, StoreError> {
    // Sentinels have no databases.
    let mut queried = at(endpoint, asked);
    if let Endpoint::Redis { database, .. } = &mut queried {
        *database = 0;
    }
    let address = match ask_role(&mut Wire::of(&queried, timeout)?)? {
        Role::Primary { .. } => return Ok(at(endpoint, asked)),
        Role::Replica { of, .. } => of,
        Role::Sentinel { primary } => primary,
    };
    let no = |why: String| {
        let message = format!("{asked} names {address} as the primary, {why}");
        StoreError::fatal(ErrorClass::Refused, message)
    };
    if seen.contains(&address) {
        return Err(no("which is not a primary".into()));
    }
    seen.push(address.clone());
    let primary = at(endpoint, &address);
    let role = Wire::of(&primary, timeout).and_then(|mut wire| ask_role(&mut wire));
    match role {
        Ok(Role::Primary { .. }) => Ok(primary),
        Ok(_) => Err(no("which is not a primary".into())),
        Err(e) => Err(no(format!("which does not confirm it: {}", e.message))),
    }
}

/// Creates a survey of the primary during a load; `None` for a fixed server.
pub(crate) fn survey(endpoint: &Endpoint, timeout: Duration) -> Option<Box<dyn Survey>> {
    let survey =
        PrimarySurvey { endpoint: endpoint.clone(), timeout: timeout.min(QUERY_TIMEOUT_MAX) };
    can_fail_over(endpoint).then(|| Box::new(survey) as Box<_>)
}

#[derive(Debug)]
struct PrimarySurvey {
    endpoint: Endpoint,
    timeout: Duration,
}

impl Survey for PrimarySurvey {
    fn ask(&self, known: &[Address], _named: &[String]) -> Option<Layout> {
        let Endpoint::Redis { address, .. } =
            current_primary(&self.endpoint, self.timeout)?.ok()?
        else {
            return None;
        };
        let address = resolve(&address).ok()?;
        let mut nodes = known.to_vec();
        let number = nodes.iter().position(|node| *node == address).unwrap_or(nodes.len());
        if number == nodes.len() {
            nodes.push(address);
        }
        Some(Layout { nodes, route: Box::new(Only(number)) })
    }
}
