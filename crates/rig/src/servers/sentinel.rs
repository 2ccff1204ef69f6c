//! Starts a Redis primary with replicas, and Sentinels that promote a replica if the primary dies.
//!
//! They connect to each other, which is not possible over Unix sockets. So they listen on ports of
//! 127.0.0.1 and require a password, which is random for each start. The plan sets their numbers
//! (`COUNTS`) and the timeouts of the Sentinels (`SENTINEL_SETTINGS`); all other settings apply to
//! both primary and replicas.

use super::listen::{LISTEN, free_port, random_password};
use super::own::{ServerDescription, StartedServers, single_server};
use super::redis::{EXECUTABLE, SETTINGS, spawn, start_redis};
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::scratch::Scratch;
use crate::server::{Role, Server, ServerSpec};
use crate::settings::SERVERS_MAX;
use model::{Endpoint, NetAddress, RedisOptions, Secret};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// The server of Redis, alone or with replicas and Sentinels.
pub(super) const DESCRIPTION: ServerDescription = ServerDescription {
    executable: EXECUTABLE,
    find: |search| search.find(&[EXECUTABLE.name]),
    settings: &SETTINGS,
    mixes_dashes: false,
    start: |guard, _, spec| start_replicated(guard, spec),
};

/// Settings with the numbers of replicas and Sentinels.
const COUNTS: [&str; 2] = ["replicas", "sentinels"];
/// Settings of Sentinels with our defaults. Redis' own defaults of 30 s and three minutes are
/// longer than a study waits.
const SENTINEL_SETTINGS: [(&str, &str); 3] =
    [("down-after-milliseconds", "1000"), ("failover-timeout", "5000"), ("parallel-syncs", "1")];
/// Sentinels discover each other through messages that each sends every two seconds.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Starts a Redis server, with the replicas and Sentinels of its settings. Returns when the
/// replicas are in sync and each Sentinel knows all others.
fn start_replicated(guard: &Guard, spec: &ServerSpec) -> Result<StartedServers> {
    let [replicas, sentinels] = counts(spec)?;
    if replicas == 0 {
        return Ok(single_server(start_redis(guard, spec)?));
    }
    let is_redis_setting = |(name, _): &(&String, &String)| {
        !COUNTS.contains(&&***name) && SENTINEL_SETTINGS.iter().all(|(own, _)| own != *name)
    };
    let settings =
        spec.settings.iter().filter(is_redis_setting).map(|(n, v)| (n.clone(), v.clone()));
    let group = Group { guard, spec: ServerSpec { settings: settings.collect(), ..spec.clone() } };
    let password = random_password();
    let primary = group.start(Role::Primary, &password, "")?;
    let port = port(&primary.1);
    let mut servers = vec![primary];
    for _ in 0..replicas {
        let line = format!("replicaof 127.0.0.1 {port}");
        servers.push(group.start(Role::Replica, &password, &line)?);
    }
    for replica in &servers[1..] {
        wait(replica, spec, "replication", |info| info.contains("master_link_status:up"))?;
    }
    let watch = watch(spec, port, (sentinels, &password));
    for _ in 0..sentinels {
        servers.push((Role::Sentinel, group.start_sentinel(&password, &watch)?));
    }
    let knows =
        format!("status=ok,address=127.0.0.1:{port},slaves={replicas},sentinels={sentinels}");
    for sentinel in &servers[1 + replicas..] {
        wait(sentinel, spec, "sentinel", |info| info.lines().any(|line| line.ends_with(&knows)))?;
    }
    let watched = servers[1 + replicas..].iter().filter_map(|(_, s)| address(s)).collect();
    let mut endpoint = servers[0].1.endpoint().clone();
    if let Endpoint::Redis { options, .. } = &mut endpoint {
        options.sentinels = watched;
    }
    Ok((endpoint, servers))
}

/// Common properties of the servers of a group.
struct Group<'a> {
    guard: &'a Guard,
    /// Spec with the settings of primary and replicas.
    spec: ServerSpec,
}

impl Group<'_> {
    /// Starts a primary or replica, and waits until it replies.
    fn start(&self, role: Role, password: &str, line: &str) -> Result<(Role, Server)> {
        // By default the primary waits five seconds for more replicas before a transfer.
        let lines = format!("masterauth {password}\nrepl-diskless-sync-delay 0\n{line}");
        let server = (role, self.listen(password, (&lines, &[]), &self.spec)?);
        wait(&server, &self.spec, "replication", |info| info.contains("role:"))?;
        Ok(server)
    }

    fn start_sentinel(&self, password: &str, lines: &str) -> Result<Server> {
        let spec = ServerSpec { settings: BTreeMap::new(), ..self.spec.clone() };
        self.listen(password, (lines, &["--sentinel"]), &spec)
    }

    fn listen(
        &self,
        password: &str,
        (lines, arguments): (&str, &[&str]),
        spec: &ServerSpec,
    ) -> Result<Server> {
        let port = free_port(EXECUTABLE.or(spec.program).name)?;
        let lines = format!("bind 127.0.0.1\nport {port}\nrequirepass {password}\n{lines}");
        let endpoint = Endpoint::redis(NetAddress::Tcp(Ipv4Addr::LOCALHOST.to_string(), port));
        let endpoint = endpoint.with_password(Some(Secret::new(password)));
        let files = Scratch::for_sockets(self.guard)?;
        spawn(self.guard, spec, files, endpoint, (lines.as_bytes(), arguments))
    }
}

/// Numbers of replicas and Sentinels.
fn counts(spec: &ServerSpec) -> Result<[usize; 2]> {
    let mut counts = [0; 2];
    for (count, name) in counts.iter_mut().zip(COUNTS) {
        let Some(text) = spec.settings.get(name) else { continue };
        let number = text.parse().ok().filter(|n| (1..=SERVERS_MAX).contains(n));
        *count = number.ok_or_else(|| setting_error(spec, name, "a whole number from 1 to 9"))?;
    }
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
fn watch(spec: &ServerSpec, port: u16, (sentinels, password): (usize, &str)) -> String {
    let name = RedisOptions::SENTINEL_NAME;
    let quorum = sentinels / 2 + 1;
    let mut lines = vec![
        format!("monitor {name} 127.0.0.1 {port} {quorum}"),
        format!("auth-pass {name} {password}"),
    ];
    lines.extend(SENTINEL_SETTINGS.map(|(own, default)| {
        let value = spec.settings.get(own).map_or(default, String::as_str);
        format!("{own} {name} {value}")
    }));
    lines.iter().map(|line| format!("sentinel {line}")).collect::<Vec<_>>().join("\n")
}

fn address(server: &Server) -> Option<NetAddress> {
    match &server.endpoint {
        Endpoint::Redis { address, .. } => Some(address.clone()),
        _ => None,
    }
}

fn port(server: &Server) -> u16 {
    match address(server) {
        Some(NetAddress::Tcp(_, port)) => port,
        _ => 0,
    }
}

/// Waits until `is_ready` accepts a section of the server's `INFO`. Errors name the server.
fn wait(
    (role, server): &(Role, Server),
    spec: &ServerSpec,
    section: &str,
    is_ready: impl Fn(&str) -> bool,
) -> Result<()> {
    let patience = spec.deadline.unwrap_or(READY_WITHIN);
    let waited =
        server.process.wait_until_ready(patience, |left| match info(server, section, left) {
            Ok(info) if is_ready(&info) => Ok(()),
            Ok(info) => Err(format!("it reports `{}`", info.replace("\r\n", " "))),
            Err(e) => Err(format!("socket error: {e}")),
        });
    waited.map_err(|error| match error {
        RigError::Start { program, reason } => {
            let program = format!("{program} ({} on port {})", role.name(), port(server));
            RigError::Start { program, reason }
        }
        other => other,
    })
}

/// Requests a section of `INFO`.
fn info(server: &Server, section: &str, patience: Duration) -> std::io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port(server)));
    let password = server.endpoint.password().map_or("", Secret::reveal);
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(format!("AUTH {password}\r\nINFO {section}\r\n").as_bytes())?;
    // It replies and then closes the connection.
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
