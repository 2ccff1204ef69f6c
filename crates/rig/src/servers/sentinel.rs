//! Starts a Redis primary with replicas, and Sentinels that promote a replica if the primary dies.
//!
//! The plan sets their numbers (`COUNTS`) and the timeouts of the Sentinels (`SENTINEL_SETTINGS`);
//! all other settings apply to both primary and replicas.

use super::group::{self, Group, count, place};
use super::listen::LISTEN;
use super::own::{StartedServers, single_server};
use super::redis::{EXECUTABLE, start_redis};
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::server::{Role, ServerSpec};
use model::{Endpoint, RedisOptions};

/// Settings with the numbers of replicas and Sentinels.
const COUNTS: [&str; 2] = ["replicas", "sentinels"];
/// Settings of Sentinels with our defaults. Redis' own defaults of 30 s and three minutes are
/// longer than a study waits.
const SENTINEL_SETTINGS: [(&str, &str); 3] =
    [("down-after-milliseconds", "1000"), ("failover-timeout", "5000"), ("parallel-syncs", "1")];
/// Starts a Redis server, with the replicas and Sentinels of its settings. Returns when the
/// replicas are in sync and each Sentinel knows all others.
pub(super) fn start_replicated(guard: &Guard, spec: &ServerSpec) -> Result<StartedServers> {
    let [replicas, sentinels] = counts(spec)?;
    if replicas == 0 {
        return Ok(single_server(start_redis(guard, spec)?));
    }
    let group = Group::new(guard, spec, |name| {
        !COUNTS.contains(&name) && SENTINEL_SETTINGS.iter().all(|(own, _)| *own != name)
    });
    let primary = group.start(0, Role::Primary, "")?;
    let place = place(&primary.1);
    let mut servers = vec![primary];
    for number in 1..=replicas {
        servers.push(group.start(number, Role::Replica, &format!("replicaof {place}"))?);
    }
    for replica in &servers[1..] {
        group.wait(replica, "INFO replication", |i| i.contains("master_link_status:up"))?;
    }
    let watch = watch(spec, &place, (sentinels, &group.password));
    for _ in 0..sentinels {
        servers.push((Role::Sentinel, group.start_sentinel(&watch)?));
    }
    let address = place.replace(' ', ":");
    let knows = format!("status=ok,address={address},slaves={replicas},sentinels={sentinels}");
    for sentinel in &servers[1 + replicas..] {
        group.wait(sentinel, "INFO sentinel", |i| i.lines().any(|line| line.ends_with(&knows)))?;
    }
    // Without Sentinels, each server reports its role.
    let asked = if sentinels > 0 { &servers[1 + replicas..] } else { &servers[..] };
    let seeds = asked.iter().filter_map(|(_, server)| group::address(server)).collect();
    let mut endpoint = servers[0].1.endpoint().clone();
    if let Endpoint::Redis { options, .. } = &mut endpoint {
        options.seeds = seeds;
    }
    Ok((endpoint, servers))
}

/// Numbers of replicas and Sentinels.
fn counts(spec: &ServerSpec) -> Result<[usize; 2]> {
    let counts = COUNTS.map(|name| count(spec, name));
    if counts[0] > 0 && spec.settings.contains_key(LISTEN) {
        let expected = "no `replicas`: servers that replicate listen on ports";
        return Err(setting_error(spec, LISTEN, expected));
    }
    match spec.settings.keys().find(|name| SENTINEL_SETTINGS.iter().any(|(own, _)| own == name)) {
        Some(name) if counts[1] == 0 => Err(setting_error(spec, name, "`sentinels` as well")),
        _ if counts[1] > 0 && counts[0] == 0 => {
            Err(setting_error(spec, COUNTS[1], "`replicas` as well: there is nothing to promote"))
        }
        _ => Ok(counts),
    }
}

fn setting_error(spec: &ServerSpec, name: &str, expected: &'static str) -> RigError {
    let program = EXECUTABLE.or(spec.program).name;
    RigError::Setting { program, name: name.into(), problem: "has no effect", expected }
}

/// Configuration lines that make Sentinels monitor the primary.
fn watch(spec: &ServerSpec, place: &str, (sentinels, password): (usize, &str)) -> String {
    let name = RedisOptions::SENTINEL_NAME;
    let quorum = sentinels / 2 + 1;
    let mut lines =
        vec![format!("monitor {name} {place} {quorum}"), format!("auth-pass {name} {password}")];
    lines.extend(SENTINEL_SETTINGS.map(|(own, default)| {
        let value = spec.settings.get(own).map_or(default, String::as_str);
        format!("{own} {name} {value}")
    }));
    lines.iter().map(|line| format!("sentinel {line}")).collect::<Vec<_>>().join("\n")
}
