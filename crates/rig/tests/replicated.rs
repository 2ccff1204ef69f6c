//! Starts and stops a primary with its replica and Sentinels.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic and print like tests"
)]

mod common;

use cachedyno_rig::{
    Guard, RigError, Role, SearchPath, Server, ServerSpec, StartedServers, Templates, start_server,
};
use common::{entries, eventually, guard, role, runs};
use model::{Endpoint, NetAddress, Product, Program, Secret};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn start_replicated(guard: &Guard, spec: &ServerSpec) -> Result<StartedServers, RigError> {
    let started = start_server(Product::Redis, guard, &mut Templates::default(), spec)?;
    Ok(started.unwrap())
}

/// Starts all servers, prints their process ids and waits to be killed.
#[test]
#[ignore = "a role that other tests start as a separate process"]
fn role_owner() {
    let base = PathBuf::from(std::env::var_os("RIG_TEST_BASE").unwrap());
    let (_, servers) = start_replicated(&guard(), &spec(&base, &[])).unwrap();
    let pids: Vec<String> = servers.iter().map(|(_, s)| s.pid().to_string()).collect();
    let mut out = std::io::stdout();
    writeln!(out, "owned {}", pids.join(" ")).unwrap();
    out.flush().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
}

fn is_installed() -> bool {
    let found = SearchPath::of_process().find(&["redis-server"]).is_some();
    if !found {
        println!("skipped: redis-server is not installed");
    }
    found
}

/// One replica and three Sentinels, with additional settings.
fn spec(base: &Path, more: &[(&str, &str)]) -> ServerSpec {
    let all = [("replicas", "1"), ("sentinels", "3"), ("save", "")];
    let settings = all.iter().chain(more).map(|(n, v)| ((*n).to_string(), (*v).to_string()));
    ServerSpec { settings: settings.collect(), ..ServerSpec::new(base) }
}

fn host_and_port(endpoint: &Endpoint) -> (String, u16) {
    match endpoint {
        Endpoint::Redis { address: NetAddress::Tcp(host, port), .. } => (host.clone(), *port),
        other => panic!("{other} is not on a port"),
    }
}

fn ask(server: &Server, commands: &str) -> String {
    let mut stream = TcpStream::connect(host_and_port(server.endpoint())).unwrap();
    stream.write_all(format!("{commands}\r\n").as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn login(server: &Server) -> String {
    format!("AUTH {}", server.endpoint().password().map(Secret::reveal).unwrap())
}

/// The answer to a command after the login.
fn command(server: &Server, command: &str) -> String {
    ask(server, &format!("{}\r\n{command}", login(server)))
}

#[test]
fn a_replica_takes_over_and_nothing_is_left_behind() {
    if !is_installed() {
        return;
    }
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    let spec = spec(base.path(), &[("down-after-milliseconds", "300"), ("maxmemory", "9mb")]);
    let (endpoint, servers) = start_replicated(&guard, &spec).unwrap();
    let roles: Vec<Role> = servers.iter().map(|(role, _)| *role).collect();
    assert_eq!(
        roles,
        [Role::Primary, Role::Replica, Role::Sentinel, Role::Sentinel, Role::Sentinel]
    );
    let Endpoint::Redis { options, .. } = &endpoint else { panic!("{endpoint}") };
    assert_eq!(options.seeds.len(), 3);
    for (role, server) in &servers {
        assert_eq!(host_and_port(server.endpoint()).0, "127.0.0.1");
        assert!(ask(server, "INFO server").starts_with("-NOAUTH"), "{role:?}");
        let reply = ask(server, &format!("{}\r\nCONFIG GET maxmemory", login(server)));
        assert_eq!(reply.contains("9437184"), *role != Role::Sentinel, "{role:?}: {reply}");
        let pid = server.pid();
        let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!arguments.contains(endpoint.password().unwrap().reveal()), "{arguments}");
    }
    let (primary, replica) = (&servers[0].1, &servers[1].1);
    assert!(ask(primary, &format!("{}\r\nSET key value", login(primary))).contains("+OK\r\n+OK"));
    let get = format!("{}\r\nGET key", login(replica));
    eventually("the key is replicated", || ask(replica, &get).contains("$5\r\nvalue"));

    kill(Pid::from_raw(primary.pid().cast_signed()), Signal::SIGKILL).unwrap();
    let port = host_and_port(replica.endpoint()).1;
    for (_, sentinel) in &servers[2..] {
        let request = format!("{}\r\nINFO sentinel", login(sentinel));
        let new_primary = format!("address=127.0.0.1:{port},");
        eventually("every Sentinel knows the new primary", || {
            ask(sentinel, &request).contains(&new_primary)
        });
    }
    let got = ask(replica, &format!("{}\r\nGET key\r\nSET key other", login(replica)));
    assert!(got.contains("$5\r\nvalue\r\n+OK\r\n"), "{got}");
    assert!(primary.died().unwrap().starts_with("was killed by signal 9"));

    let pids: Vec<u32> = servers.iter().map(|(_, server)| server.pid()).collect();
    for (_, server) in servers {
        server.stop().unwrap();
    }
    assert!(pids.iter().all(|pid| !runs(*pid)));
    assert!(entries(base.path()).is_empty());
}

#[test]
fn a_killed_owner_leaves_no_server_behind() {
    if !is_installed() {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let mut command = role("role_owner");
    let mut owner =
        command.env("RIG_TEST_BASE", base.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let server_pids =
        lines.find_map(|line| Some(line.unwrap().split_once("owned ")?.1.to_string()));
    let pids: Vec<u32> = server_pids.unwrap().split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() == 5 && pids.iter().all(|pid| runs(*pid)), "{pids:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the servers end", || pids.iter().all(|pid| !runs(*pid)));
    eventually("their data is removed", || entries(base.path()).is_empty());
}

#[test]
fn replacements_of_redis_can_be_replicated() {
    let Some(redis) = SearchPath::of_process().find(&["redis-server"]) else {
        println!("skipped: redis-server is not installed");
        return;
    };
    let (base, programs, guard) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), guard());
    let program = Program::ALL[0];
    std::os::unix::fs::symlink(redis, programs.path().join(program.name())).unwrap();
    let search = SearchPath::new([programs.path().to_path_buf()]);
    let spec = ServerSpec { program: Some(program), search, ..spec(base.path(), &[]) };
    let (_, servers) = start_replicated(&guard, &spec).unwrap();
    assert!(servers.iter().all(|(_, server)| server.name() == "valkey-server"));
}

#[test]
fn invalid_replication_settings_are_rejected() {
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    for (settings, expected) in [
        (
            vec![("sentinels", "3")],
            "`sentinels` of redis-server has no effect (expected `replicas`",
        ),
        (vec![("replicas", "10")], "(expected a whole number from 1 to 9)"),
        (vec![("replicas", "1"), ("parallel-syncs", "1")], "(expected `sentinels` as well)"),
    ] {
        let settings = settings.into_iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let spec = ServerSpec { settings, ..ServerSpec::new(base.path()) };
        let error = start_replicated(&guard, &spec).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A spec with these settings alone.
fn with(base: &Path, settings: &[(&str, &str)]) -> ServerSpec {
    let settings = settings.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect();
    ServerSpec { settings, ..ServerSpec::new(base) }
}

#[test]
fn a_cluster_serves_all_slots_and_has_its_replicas() {
    if !is_installed() {
        return;
    }
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    let settings = [("save", ""), ("shards", "3"), ("replicas", "1"), ("maxmemory", "8mb")];
    let spec = with(base.path(), &settings);
    let started = start_replicated(&guard, &spec);
    let (endpoint, servers) = started.unwrap();
    let Endpoint::Redis { options, .. } = &endpoint else { panic!("{endpoint}") };
    assert!(options.is_cluster);
    let count = |role: Role| servers.iter().filter(|(own, _)| *own == role).count();
    assert_eq!((count(Role::Primary), count(Role::Replica)), (3, 3));
    for (role, server) in &servers {
        let info = command(server, "CLUSTER INFO");
        assert!(info.contains("cluster_state:ok") && info.contains("cluster_size:3"), "{info}");
        let role_there = command(server, "INFO replication");
        let expected = if *role == Role::Primary { "role:master" } else { "role:slave" };
        assert!(role_there.contains(expected), "{role_there}");
        assert!(command(server, "CONFIG GET maxmemory").contains("8388608"));
    }
    // Of three keys in different slots, each primary takes its own and names the node of others.
    let moved = |key: &str| command(&servers[0].1, &format!("SET {key} x")).contains("-MOVED");
    assert_eq!(["a", "b", "c"].map(moved).iter().filter(|moved| **moved).count(), 2);
    for (_, server) in servers {
        server.stop().unwrap();
    }
    assert_eq!(entries(base.path()), Vec::<String>::new());
}

#[test]
fn settings_that_a_cluster_does_not_have_are_refused() {
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    for (name, value, expected) in [
        ("sentinels", "3", "a cluster needs no Sentinels"),
        ("listen", "unix", "`tcp` or `tls` with `shards`"),
        ("proxy", "envoy", "`nutcracker`"),
        ("shards", "10", "1 to 9"),
    ] {
        let mut spec = with(base.path(), &[("shards", "2")]);
        spec.settings.insert(name.into(), value.into());
        let refused = start_replicated(&guard, &spec);
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_proxy_has_its_own_role_and_names_the_servers_behind_it() {
    if !is_installed() {
        return;
    }
    if SearchPath::of_process().find(&["nutcracker"]).is_none() {
        println!("skipped: nutcracker is not installed");
        return;
    }
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    let spec = with(base.path(), &[("save", ""), ("shards", "2"), ("proxy", "nutcracker")]);
    let (endpoint, servers) = start_replicated(&guard, &spec).unwrap();
    let roles: Vec<Role> = servers.iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, [Role::Primary, Role::Primary, Role::Proxy]);
    let behind = servers[..2].iter().flat_map(|(_, server)| server.endpoint().addresses());
    assert!(endpoint.behind().iter().eq(behind), "{endpoint}");
    assert_eq!(endpoint.addresses(), servers[2].1.endpoint().addresses());
    assert!(TcpStream::connect(host_and_port(&endpoint)).is_ok());
    for (_, server) in servers {
        server.stop().unwrap();
    }
    assert_eq!(entries(base.path()), Vec::<String>::new());
}
