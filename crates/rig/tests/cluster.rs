//! Starts and stops a cluster.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic and print like tests"
)]

mod common;

use cachedyno_rig::{Role, SearchPath, Server, ServerSpec, Templates, start_server};
use common::{entries, guard};
use model::{Endpoint, NetAddress, Product, Secret};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;

fn spec(base: &Path, settings: &[(&str, &str)]) -> ServerSpec {
    let settings = settings.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect();
    ServerSpec { settings, ..ServerSpec::new(base) }
}

fn ask(server: &Server, command: &str) -> String {
    let Endpoint::Redis { address: NetAddress::Tcp(host, port), .. } = server.endpoint() else {
        panic!("{} is not on a port", server.endpoint());
    };
    let password = server.endpoint().password().map_or("", Secret::reveal);
    let mut stream = TcpStream::connect((host.as_str(), *port)).unwrap();
    write!(stream, "AUTH {password}\r\n{command}\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_cluster_serves_all_slots_and_has_its_replicas() {
    if SearchPath::of_process().find(&["redis-server"]).is_none() {
        println!("skipped: redis-server is not installed");
        return;
    }
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    let settings = [("save", ""), ("shards", "3"), ("replicas", "1"), ("maxmemory", "8mb")];
    let spec = spec(base.path(), &settings);
    let started = start_server(Product::Redis, &guard, &mut Templates::default(), &spec);
    let (endpoint, servers) = started.unwrap().unwrap();
    let Endpoint::Redis { options, .. } = &endpoint else { panic!("{endpoint}") };
    assert!(options.is_cluster);
    let count = |role: Role| servers.iter().filter(|(own, _)| *own == role).count();
    assert_eq!((count(Role::Primary), count(Role::Replica)), (3, 3));
    for (role, server) in &servers {
        let info = ask(server, "CLUSTER INFO");
        assert!(info.contains("cluster_state:ok") && info.contains("cluster_size:3"), "{info}");
        let role_there = ask(server, "INFO replication");
        let expected = if *role == Role::Primary { "role:master" } else { "role:slave" };
        assert!(role_there.contains(expected), "{role_there}");
        assert!(ask(server, "CONFIG GET maxmemory").contains("8388608"));
    }
    // Of three keys in different slots, each primary takes its own and names the node of others.
    let moved = |key: &str| ask(&servers[0].1, &format!("SET {key} x")).contains("-MOVED");
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
        ("listen", "tls", "no `shards`"),
        ("shards", "10", "1 to 9"),
    ] {
        let mut spec = spec(base.path(), &[("shards", "2")]);
        spec.settings.insert(name.into(), value.into());
        let refused = start_server(Product::Redis, &guard, &mut Templates::default(), &spec);
        let error = refused.err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
