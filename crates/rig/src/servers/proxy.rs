//! Programs between clients and servers: nutcracker, which spreads the keys over several servers
//! behind one port, and stunnel, which ends TLS for one server.
//!
//! Sources: `README.md` and `notes/recommendation.md` of twemproxy 0.5
//! (<https://github.com/twitter/twemproxy>), and stunnel(8). Both read a configuration file in
//! their scratch directory, and listen on a port of 127.0.0.1.

use super::group::{Group, count, port};
use super::listen::{
    CERTIFICATE, Certificate, KEY, LISTEN, PROXY, STUNNEL, TCP, over_tls, port_for,
};
use super::own::{Executable, StartedServers};
use super::redis::start_redis;
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::scratch::Scratch;
use crate::server::{Role, Server, ServerSpec};
use model::{Endpoint, NetAddress};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

const NUTCRACKER: Executable = Executable { name: "nutcracker", package: "nutcracker" };
const STUNNEL_PROGRAM: Executable = Executable { name: "stunnel4", package: "stunnel4" };

/// Time until a proxy must accept connections.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Time after which nutcracker answers with an error for a server that does not, milliseconds.
const SERVER_TIMEOUT_MS: u32 = 10_000;

/// A proxy to start.
struct Proxy {
    executable: Executable,
    program: PathBuf,
    /// For clients.
    endpoint: Endpoint,
    port: u16,
    configuration: String,
    /// Arguments; the configuration file follows.
    arguments: Vec<OsString>,
}

/// Starts as many single servers as the setting `shards` says, and nutcracker before them.
pub(super) fn start_proxied(
    guard: &Guard,
    spec: &ServerSpec,
    shards: &'static str,
) -> Result<StartedServers> {
    let program = NUTCRACKER.find(&spec.search)?;
    let group = Group::new(guard, spec, |name| ![shards, PROXY].contains(&name));
    let start = |number| group.start(number, Role::Primary, "");
    let mut servers = (0..count(spec, shards)).map(start).collect::<Result<Vec<_>>>()?;
    let [own, statistics] = [port_for(NUTCRACKER.name, 0)?, port_for(NUTCRACKER.name, 0)?];
    // The names decide which server has a key, so it is the same in each trial.
    let line = |(n, (_, server)): (usize, &(Role, Server))| {
        format!("  - 127.0.0.1:{}:1 shard{n}\n", port(server))
    };
    let lines: String = servers.iter().enumerate().map(line).collect();
    let password = &group.password;
    let configuration = format!(
        "servers:\n  listen: 127.0.0.1:{own}\n  redis: true\n  redis_auth: {password}\n  \
         hash: fnv1a_64\n  distribution: ketama\n  preconnect: true\n  server_connections: 1\n  \
         timeout: {SERVER_TIMEOUT_MS}\n  servers:\n{lines}"
    );
    let behind = servers.iter().flat_map(|(_, server)| server.endpoint().addresses());
    let behind: Vec<NetAddress> = behind.cloned().collect();
    let mut endpoint = at_port(servers[0].1.endpoint(), own);
    if let Endpoint::Redis { options, .. } = &mut endpoint {
        options.behind = behind;
    }
    // By default it listens for questions about statistics on all addresses.
    let statistics = statistics.to_string();
    let proxy = Proxy {
        executable: NUTCRACKER,
        program,
        endpoint: endpoint.clone(),
        port: own,
        configuration,
        arguments: ["-a", "127.0.0.1", "-s", &statistics, "-c"].map(OsString::from).into(),
    };
    servers.push((Role::Proxy, proxy.start(guard, spec, Scratch::for_sockets(guard)?)?));
    Ok((endpoint, servers))
}

/// Starts a server on a port, and stunnel before it.
pub(super) fn start_behind_stunnel(guard: &Guard, spec: &ServerSpec) -> Result<StartedServers> {
    let program = STUNNEL_PROGRAM.find(&spec.search)?;
    let mut on_a_port = spec.clone();
    on_a_port.settings.insert(LISTEN.into(), TCP.into());
    let mut server = start_redis(guard, &on_a_port)?;
    server.settings.insert(LISTEN.into(), STUNNEL.into());
    let (own, behind) = (port_for(STUNNEL_PROGRAM.name, 0)?, port(&server));
    let files = Scratch::for_sockets(guard)?;
    let [certificate, _] = Certificate::of(&[])?.write(&files)?;
    // It has no quotes for paths, so the files are named as they are in its directory.
    let configuration = format!(
        "foreground = yes\npid =\nsyslog = no\ndebug = warning\nsocket = l:TCP_NODELAY=1\n\
         socket = r:TCP_NODELAY=1\n[redis]\naccept = 127.0.0.1:{own}\n\
         connect = 127.0.0.1:{behind}\ncert = {CERTIFICATE}\nkey = {KEY}\n"
    );
    let endpoint = over_tls(at_port(server.endpoint(), own), certificate);
    let proxy = Proxy {
        executable: STUNNEL_PROGRAM,
        program,
        endpoint: endpoint.clone(),
        port: own,
        configuration,
        arguments: Vec::new(),
    };
    let proxy = proxy.start(guard, spec, files)?;
    Ok((endpoint, vec![(Role::Primary, server), (Role::Proxy, proxy)]))
}

/// The same endpoint at another port of 127.0.0.1.
fn at_port(endpoint: &Endpoint, port: u16) -> Endpoint {
    let mut other = endpoint.clone();
    if let Endpoint::Redis { address, .. } = &mut other {
        *address = NetAddress::Tcp(Ipv4Addr::LOCALHOST.to_string(), port);
    }
    other
}

impl Proxy {
    /// Starts it in the directory of its files, and waits until it accepts connections.
    fn start(self, guard: &Guard, spec: &ServerSpec, files: Scratch) -> Result<Server> {
        let configuration = files.path().join("proxy.conf");
        fs::write(&configuration, self.configuration)
            .map_err(RigError::io("write", &configuration))?;
        let mut arguments = self.arguments;
        arguments.push(configuration.into());
        let of = (self.executable.name, self.program);
        let process = spec.launch(guard, of, arguments, files.path(), &files)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let accepts = |left| match TcpStream::connect_timeout(&address, left) {
            Ok(_) => Ok(()),
            Err(e) => Err(format!("{address}: {e}")),
        };
        process.wait_until_ready(spec.deadline.unwrap_or(READY_WITHIN), accepts)?;
        let data = Scratch::new(guard, &spec.data_parent)?;
        let settings = BTreeMap::new();
        Ok(Server {
            process: process.into(),
            endpoint: self.endpoint,
            settings,
            data,
            sockets: files,
        })
    }
}
