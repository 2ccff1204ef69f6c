//! A primary with replicas, of which Sentinels promote one when it dies: which server is the
//! primary now, and what each server is.
//!
//! A client asks the Sentinels in turn, and the server that they name whether it is the primary:
//! they learn of a promotion one after the other. Source:
//! <https://redis.io/docs/latest/develop/reference/sentinel-clients/>.

use std::time::Duration;

use load::wire::Address;
use load::wire::route::{Layout, Route, Survey};
use model::{Endpoint, ErrorClass, Failure, NetAddress, RedisWay};
use workloads::store::StoreError;

use super::resp::{Tree, text};
use super::wire::Wire;
use crate::socket::resolve;

/// Longest time that one server is waited for while a load runs.
const ASKED_WITHIN: Duration = Duration::from_millis(500);

/// One server that has all keys, whichever that is.
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

/// What a server says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes writes.
    Primary {
        /// Bytes that it has written for replicas.
        offset: u64,
        /// Those that are connected, with the bytes that each has acknowledged.
        replicas: Vec<(NetAddress, u64)>,
    },
    /// It copies another server.
    Replica {
        /// That server.
        of: NetAddress,
        /// How far it is: `connect`, `connecting`, `sync` or `connected`.
        link: String,
        /// Bytes that it has received, where it has received any.
        offset: Option<u64>,
    },
    /// It watches servers.
    Sentinel {
        /// Which of them it takes for the primary.
        primary: NetAddress,
    },
}

/// Asks one server over and over what it is, on a connection that is made anew when it breaks.
pub struct RoleReader {
    endpoint: Endpoint,
    timeout: Duration,
    wire: Option<Wire>,
}

impl RoleReader {
    /// Of a server or a Sentinel; connects with the first question.
    pub fn new(endpoint: Endpoint, timeout: Duration) -> Self {
        Self { endpoint, timeout, wire: None }
    }

    /// What it is now. Errors: nobody listens, no answer in time, or another answer.
    pub fn role(&mut self) -> Result<Role, Failure> {
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => Wire::open(&self.endpoint, None, self.timeout)?,
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
            [kind, ..] if is(kind, "sentinel") => Some(Role::Sentinel { primary: named(wire)? }),
            _ => None,
        },
        _ => None,
    };
    role.ok_or_else(|| unexpected("ROLE"))
}

fn primary(offset: i64, replicas: &[Tree]) -> Option<Role> {
    let one = |tree: &Tree| match tree {
        Tree::List(parts) => match parts.as_slice() {
            [host, port, offset] => Some((place(host, port)?, number(offset)?)),
            _ => None,
        },
        _ => None,
    };
    let replicas = replicas.iter().map(one).collect::<Option<_>>()?;
    Some(Role::Primary { offset: u64::try_from(offset).ok()?, replicas })
}

fn replica([host, port, link, offset]: [&Tree; 4]) -> Option<Role> {
    let link = text(link.clone());
    Some(Role::Replica { of: place(host, port)?, link, offset: number(offset) })
}

/// The primary that a Sentinel names.
fn named(wire: &mut Wire) -> Result<NetAddress, StoreError> {
    let name = RedisWay::SENTINEL_NAME.as_bytes();
    let answer = wire.ask(&[b"SENTINEL", b"get-master-addr-by-name", name])?;
    let place = match &answer {
        Tree::List(parts) => match parts.as_slice() {
            [host, port] => place(host, port),
            _ => None,
        },
        _ => None,
    };
    place.ok_or_else(|| unexpected("SENTINEL get-master-addr-by-name"))
}

fn is(tree: &Tree, word: &str) -> bool {
    matches!(tree, Tree::Text(bytes) if bytes == word.as_bytes())
}

/// A number, which some answers hold as a text.
fn number(tree: &Tree) -> Option<u64> {
    match tree {
        Tree::Integer(number) => u64::try_from(*number).ok(),
        other => text(other.clone()).parse().ok(),
    }
}

fn place(host: &Tree, port: &Tree) -> Option<NetAddress> {
    let port = number(port).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)?;
    Some(NetAddress::Tcp(text(host.clone()), port))
}

fn unexpected(question: &str) -> StoreError {
    let message =
        format!("`{question}` was answered by something else (expected Redis 5 or later)");
    StoreError::fatal(ErrorClass::Protocol, message)
}

/// The Sentinels of an endpoint; none where it stays the same server.
fn sentinels(endpoint: &Endpoint) -> &[NetAddress] {
    match endpoint {
        Endpoint::Redis { way, .. } => &way.sentinels,
        _ => &[],
    }
}

/// One server of an endpoint, with the same password.
fn at(endpoint: &Endpoint, place: &NetAddress) -> Endpoint {
    let mut one = endpoint.clone();
    if let Endpoint::Redis { address, way, .. } = &mut one {
        *address = place.clone();
        way.sentinels.clear();
    }
    one
}

/// The present primary of an endpoint with Sentinels, as an endpoint of its own; `None` for one
/// without. Errors: no Sentinel names a server that says so itself.
pub(super) fn present(
    endpoint: &Endpoint,
    timeout: Duration,
) -> Option<Result<Endpoint, StoreError>> {
    let sentinels = sentinels(endpoint);
    let mut last = None;
    let mut seen = Vec::new();
    for sentinel in sentinels {
        match asked(endpoint, sentinel, &mut seen, timeout) {
            Ok(primary) => return Some(Ok(primary)),
            Err(e) => last = Some(Err(e)),
        }
    }
    last
}

/// The primary that one Sentinel names. A server that was `seen` to be none is not asked again.
fn asked(
    endpoint: &Endpoint,
    sentinel: &NetAddress,
    seen: &mut Vec<NetAddress>,
    timeout: Duration,
) -> Result<Endpoint, StoreError> {
    // Sentinels have no databases.
    let mut asked = at(endpoint, sentinel);
    if let Endpoint::Redis { database, .. } = &mut asked {
        *database = 0;
    }
    let place = named(&mut Wire::open(&asked, None, timeout)?)?;
    let no = |why: String| {
        let message = format!("{sentinel} names {place} as the primary, {why}");
        StoreError::fatal(ErrorClass::Refused, message)
    };
    if seen.contains(&place) {
        return Err(no("which is none".into()));
    }
    seen.push(place.clone());
    let primary = at(endpoint, &place);
    let role = Wire::open(&primary, None, timeout).and_then(|mut wire| ask_role(&mut wire));
    match role {
        Ok(Role::Primary { .. }) => Ok(primary),
        Ok(_) => Err(no("which is none".into())),
        Err(e) => Err(no(format!("which does not say so: {}", e.message))),
    }
}

/// Asks the Sentinels of an endpoint while a load runs; `None` for one without.
pub(crate) fn survey(endpoint: &Endpoint, timeout: Duration) -> Option<Box<dyn Survey>> {
    let survey = SentinelSurvey { endpoint: endpoint.clone(), timeout: timeout.min(ASKED_WITHIN) };
    (!sentinels(endpoint).is_empty()).then(|| Box::new(survey) as Box<_>)
}

#[derive(Debug)]
struct SentinelSurvey {
    endpoint: Endpoint,
    timeout: Duration,
}

impl Survey for SentinelSurvey {
    fn ask(&self, known: &[Address], _named: &[String]) -> Option<Layout> {
        let Endpoint::Redis { address, .. } = present(&self.endpoint, self.timeout)?.ok()? else {
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
