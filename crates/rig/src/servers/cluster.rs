//! Starts a Redis Cluster: a primary for each shard, with the slots spread evenly, and replicas.
//!
//! Source: the cluster specification and tutorial
//! (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>). Nodes talk to
//! each other on a second port, 10,000 above that of the clients.

use super::group::{Group, count, place};
use super::listen::{LISTEN, TLS};
use super::own::StartedServers;
use crate::error::Result;
use crate::guard::Guard;
use crate::server::{Role, Server, ServerSpec};
use model::Endpoint;

/// Setting with the number of primaries.
pub(super) const SHARDS: &str = "shards";
/// Setting with the number of replicas of each primary.
const REPLICAS: &str = "replicas";
/// Setting with the time after which a node counts as failed, milliseconds; our default is shorter
/// than the 15 s of Redis, which is longer than a study waits.
const NODE_TIMEOUT: (&str, &str) = ("cluster-node-timeout", "2000");
/// Distance of the port for other nodes from that for clients.
const BUS_PORT: u16 = 10_000;
/// Number of slots of every cluster.
const SLOTS: usize = 16_384;

/// Starts all nodes, joins them, and returns when each of them knows that all slots are served.
pub(super) fn start_cluster(guard: &Guard, spec: &ServerSpec) -> Result<StartedServers> {
    let [shards, replicas] = [SHARDS, REPLICAS].map(|name| count(spec, name));
    let own = [SHARDS, REPLICAS, NODE_TIMEOUT.0, LISTEN];
    let is_tls = spec.settings.get(LISTEN).is_some_and(|way| way == TLS);
    let group = Group::new(guard, spec, |name| !own.contains(&name))
        .with_second_port(BUS_PORT)
        .with_tls(is_tls)?;
    let timeout = spec.settings.get(NODE_TIMEOUT.0).map_or(NODE_TIMEOUT.1, String::as_str);
    let lines = format!("cluster-enabled yes\n{} {timeout}\n", NODE_TIMEOUT.0);
    let mut servers = Vec::new();
    let roles = [vec![Role::Primary; shards], vec![Role::Replica; shards * replicas]].concat();
    for (number, role) in roles.into_iter().enumerate() {
        servers.push(group.start(number, role, &lines)?);
    }
    for (shard, primary) in servers[..shards].iter().enumerate() {
        let slots = shard * SLOTS / shards..(shard + 1) * SLOTS / shards;
        let slots: Vec<String> = slots.map(|slot| slot.to_string()).collect();
        // A line of a request has at most 64 KiB.
        for part in slots.chunks(SLOTS / 4) {
            group.wait(primary, &format!("CLUSTER ADDSLOTS {}", part.join(" ")), is_done)?;
        }
    }
    for (_, other) in &servers[1..] {
        let meet = format!("CLUSTER MEET {}", place(other));
        group.wait(&servers[0], &meet, is_done)?;
    }
    let all = [
        "cluster_state:ok".to_string(),
        format!("cluster_slots_ok:{SLOTS}"),
        format!("cluster_known_nodes:{}", servers.len()),
    ];
    let is_joined = |info: &str| all.iter().all(|line| info.lines().any(|own| own == line));
    servers.iter().try_for_each(|node| group.wait(node, "CLUSTER INFO", is_joined))?;
    follow(&group, &servers, shards)?;
    let mut endpoint = servers[0].1.endpoint().clone();
    if let Endpoint::Redis { options, .. } = &mut endpoint {
        options.is_cluster = true;
    }
    Ok((endpoint, servers))
}

/// Makes each replica follow a primary in turn, and waits until it is in sync.
fn follow(group: &Group<'_>, servers: &[(Role, Server)], shards: usize) -> Result<()> {
    for (number, replica) in servers[shards..].iter().enumerate() {
        let id = std::cell::RefCell::new(String::new());
        group.wait(&servers[number % shards], "CLUSTER MYID", |answer| {
            let own = answer.lines().find(|line| line.len() == 40);
            own.is_some_and(|own| {
                *id.borrow_mut() = own.into();
                true
            })
        })?;
        group.wait(replica, &format!("CLUSTER REPLICATE {}", id.borrow()), is_done)?;
        group.wait(replica, "INFO replication", |info| info.contains("master_link_status:up"))?;
    }
    Ok(())
}

/// True if a server accepted the password and the command.
fn is_done(answer: &str) -> bool {
    answer.lines().filter(|line| *line == "+OK").count() == 2
}
