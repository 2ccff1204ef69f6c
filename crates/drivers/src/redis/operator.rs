//! What an operator does to a deployment of Redis while clients use it: a failover on request, the
//! migration of slots, and whom a server follows that comes back.
//!
//! Sources: <https://redis.io/docs/latest/commands/failover/>, `cluster-failover`,
//! `cluster-setslot` and `migrate` there, and the page on high availability with Sentinel.

use std::time::Duration;

use model::{Endpoint, ErrorClass, Failure, NetAddress, RedisOptions, Secret};

use super::resp::{Tree, text};
use super::sentinel::{Role, RoleReader};
use super::wire::Wire;

/// Keys that one `MIGRATE` moves.
const KEYS_AT_ONCE: &str = "100";
/// Timeout of a `MIGRATE`, milliseconds.
const MIGRATE_MS: &str = "5000";

/// The servers of a deployment: primaries, replicas and Sentinels, or the nodes of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Operator<'a> {
    /// Endpoint of each server.
    pub servers: &'a [Endpoint],
    /// Timeout of each request.
    pub timeout: Duration,
}

impl<'a> Operator<'a> {
    fn role(&self, server: &Endpoint) -> Option<Role> {
        RoleReader::new(server.clone(), self.timeout).role().ok()
    }

    fn with_role(self, is: impl Fn(&Role) -> bool) -> impl Iterator<Item = &'a Endpoint> {
        self.servers.iter().filter(move |server| self.role(server).as_ref().is_some_and(&is))
    }

    /// The servers that accept writes, in the order in which they were started.
    pub fn primaries(self) -> impl Iterator<Item = &'a Endpoint> {
        self.with_role(|role| matches!(role, Role::Primary { .. }))
    }

    fn primary(self) -> Result<&'a Endpoint, Failure> {
        self.primaries().next().ok_or_else(|| failed("no server reports the role of primary"))
    }

    fn ask(&self, server: &Endpoint, words: &[&[u8]]) -> Result<Tree, Failure> {
        let mut wire = Wire::of(server, self.timeout)?;
        answered(&mut wire, words)
    }

    /// Asks for a failover of the first primary: a Sentinel, or the replica in a cluster, or the
    /// primary itself. Returns the primary. Errors: there is no replica, or a server refuses.
    pub fn fail_over(self) -> Result<&'a Endpoint, Failure> {
        let primary = self.primary()?;
        let sentinel = self.with_role(|role| matches!(role, Role::Sentinel { .. })).next();
        if let Some(sentinel) = sentinel {
            let name = RedisOptions::SENTINEL_NAME.as_bytes();
            self.ask(sentinel, &[b"SENTINEL", b"FAILOVER", name])?;
        } else if self.is_cluster(primary) {
            let follows =
                |role: &Role| matches!(role, Role::Replica { of, .. } if is_at(primary, of));
            let Some(replica) = self.with_role(follows).next() else {
                return Err(failed("the primary has no replica that could take over"));
            };
            self.ask(replica, &[b"CLUSTER", b"FAILOVER"])?;
        } else {
            self.ask(primary, &[b"FAILOVER"])?;
        }
        Ok(primary)
    }

    fn is_cluster(&self, server: &Endpoint) -> bool {
        self.ask(server, &[b"CLUSTER", b"INFO"]).is_ok()
    }

    /// Host and port of the primary that a server follows when it is started again; `None` in a
    /// cluster, whose nodes know their roles, and without another primary.
    pub fn to_follow(self, server: &Endpoint) -> Option<(&'a str, u16)> {
        let primary = self.primaries().find(|primary| *primary != server)?;
        match address(primary)? {
            NetAddress::Tcp(host, port) if !self.is_cluster(primary) => Some((host, *port)),
            _ => None,
        }
    }

    /// Moves slots from the first primary of a cluster to the second, at most `most` and none once
    /// `is_over`. Errors: there are no two primaries, or a server refuses.
    pub fn migrate(self, most: usize, is_over: &mut dyn FnMut() -> bool) -> Result<(), Failure> {
        let primaries: Vec<&Endpoint> = self.primaries().collect();
        let [source, target, ..] = primaries[..] else {
            return Err(failed("slots can only move between two primaries of a cluster"));
        };
        let mut wires = [Wire::of(source, self.timeout)?, Wire::of(target, self.timeout)?];
        let mut ids = Vec::new();
        for wire in &mut wires {
            ids.push(text(answered(wire, &[b"CLUSTER", b"MYID"])?));
        }
        let slots = own_slots(&answered(&mut wires[0], &[b"CLUSTER", b"SLOTS"])?, &ids[0]);
        for slot in slots.into_iter().take(most) {
            if is_over() {
                break;
            }
            move_slot(&mut wires, &ids, target, slot)?;
        }
        Ok(())
    }
}

/// Moves one slot with its keys. The target must own it first, or nobody would for a moment.
fn move_slot(
    [source, target]: &mut [Wire; 2],
    ids: &[String],
    to: &Endpoint,
    slot: u16,
) -> Result<(), Failure> {
    let number = slot.to_string();
    let (from_id, to_id) = (ids[0].as_bytes(), ids[1].as_bytes());
    let set = |state: &'static [u8], id| -> Vec<Vec<u8>> {
        [b"CLUSTER", &b"SETSLOT"[..], number.as_bytes(), state, id].map(<[u8]>::to_vec).into()
    };
    all(target, &set(b"IMPORTING", from_id))?;
    all(source, &set(b"MIGRATING", to_id))?;
    let Some(NetAddress::Tcp(host, port)) = address(to) else {
        return Err(failed("a node of a cluster has no port"));
    };
    let port = port.to_string();
    loop {
        let words: [&[u8]; 4] =
            [b"CLUSTER", b"GETKEYSINSLOT", number.as_bytes(), KEYS_AT_ONCE.as_bytes()];
        let keys = match answered(source, &words)? {
            Tree::List(keys) if !keys.is_empty() => keys,
            _ => break,
        };
        let mut words: Vec<Vec<u8>> =
            [&b"MIGRATE"[..], host.as_bytes(), port.as_bytes(), b"", b"0"]
                .map(<[u8]>::to_vec)
                .into();
        words.push(MIGRATE_MS.into());
        if let Some(password) = to.password() {
            words.extend([b"AUTH".to_vec(), Secret::reveal(password).as_bytes().to_vec()]);
        }
        words.push(b"KEYS".to_vec());
        words.extend(keys.into_iter().map(|key| text(key).into_bytes()));
        all(source, &words)?;
    }
    all(target, &set(b"NODE", to_id))?;
    all(source, &set(b"NODE", to_id))?;
    Ok(())
}

/// The slots of the node with this id in the reply to `CLUSTER SLOTS`.
fn own_slots(answer: &Tree, id: &str) -> Vec<u16> {
    let Tree::List(shards) = answer else { return Vec::new() };
    let of_shard = |shard: &Tree| {
        let Tree::List(parts) = shard else { return None };
        let [Tree::Integer(first), Tree::Integer(last), Tree::List(node), ..] = parts.as_slice()
        else {
            return None;
        };
        let is_own = node.get(2).is_some_and(|own| text(own.clone()) == id);
        let bound = |slot: &i64| u16::try_from(*slot).ok();
        is_own.then_some(bound(first)?..=bound(last)?)
    };
    shards.iter().filter_map(of_shard).flatten().collect()
}

fn all(wire: &mut Wire, words: &[Vec<u8>]) -> Result<Tree, Failure> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    answered(wire, &words)
}

/// The reply of a server. Errors: it replies with an error, or not at all.
fn answered(wire: &mut Wire, words: &[&[u8]]) -> Result<Tree, Failure> {
    match wire.ask(words)? {
        Tree::Error(message) => {
            let command = String::from_utf8_lossy(words[0]).into_owned();
            let message = String::from_utf8_lossy(&message);
            Err(failed(&format!("the server refuses {command}: {message}")))
        }
        other => Ok(other),
    }
}

fn address(endpoint: &Endpoint) -> Option<&NetAddress> {
    match endpoint {
        Endpoint::Redis { address, .. } => Some(address),
        _ => None,
    }
}

fn is_at(endpoint: &Endpoint, server: &NetAddress) -> bool {
    address(endpoint) == Some(server)
}

fn failed(message: &str) -> Failure {
    Failure { class: ErrorClass::Other, message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_a_node_are_found_by_its_id() {
        let node = |id: &str| {
            let text = |t: &str| Tree::Text(t.as_bytes().to_vec());
            Tree::List(vec![text("127.0.0.1"), Tree::Integer(7000), text(id)])
        };
        let shard = |first, last, id| {
            Tree::List(vec![Tree::Integer(first), Tree::Integer(last), node(id), node("replica")])
        };
        let answer = Tree::List(vec![shard(0, 2, "a"), shard(3, 5, "b"), shard(9, 9, "a")]);
        assert_eq!(own_slots(&answer, "a"), [0, 1, 2, 9]);
        assert!(own_slots(&answer, "replica").is_empty());
        assert!(own_slots(&Tree::Nil, "a").is_empty());
    }
}
