//! A cluster of three servers.

use std::process::Command;
use std::time::{Duration, Instant};

use super::common::{Program, Server, form, tools};

/// Three servers that share the slots, optionally with replicas.
pub(crate) struct Cluster(Vec<Server>);

impl Cluster {
    pub(crate) fn new(replicas: usize) -> Self {
        Self::with(replicas, &[])
    }

    /// A cluster with additional server arguments.
    pub(crate) fn with(replicas: usize, more: &[&str]) -> Self {
        let settings = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"];
        let server = |_| {
            let bus = rig::free_port(0).unwrap().to_string();
            Server::with(&[&settings[..], &["--cluster-port", &bus], more].concat())
        };
        let servers: Vec<Server> = (0..3 + 3 * replicas).map(server).collect();
        let addresses = servers.iter().map(|server| format!("127.0.0.1:{}", server.port));
        let output = Command::new("redis-cli")
            .envs(servers[0].password().map(|password| ("REDISCLI_AUTH", password)))
            .args(["--cluster", "create"])
            .args(addresses)
            .args(["--cluster-replicas", &replicas.to_string(), "--cluster-yes"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let cluster = Self(servers);
        let started = Instant::now();
        let ready = |server: &Server| {
            let info = server.ask(&["CLUSTER", "INFO"]);
            let replicas = server.ask(&["CLUSTER", "SLOTS"]).matches("127.0.0.1").count();
            info.contains("cluster_state:ok") && replicas >= cluster.0.len()
        };
        while !cluster.0.iter().all(ready) {
            assert!(started.elapsed() < Duration::from_secs(60), "the cluster did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        cluster
    }

    pub(crate) fn first(&self) -> &Server {
        &self.0[0]
    }

    /// Number of keys on each server.
    fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|server| server.ask(&["DBSIZE"]).parse().unwrap()).collect()
    }

    /// Number of calls of a command on each server.
    pub(crate) fn calls(&self, command: &str) -> Vec<u64> {
        let calls = |server: &Server| {
            let stats = server.ask(&["INFO", "commandstats"]);
            let of = |line: &str| {
                let rest = line.strip_prefix(&format!("cmdstat_{command}:calls="))?;
                rest.split(',').next()?.parse().ok()
            };
            stats.lines().find_map(of).unwrap_or(0)
        };
        self.0.iter().map(calls).collect()
    }
}

#[test]
fn requests_go_to_the_server_of_their_slot() {
    if !tools() {
        return;
    }
    // The original lists nodes in random order, so only the form is compared.
    let (theirs, ours) = (Cluster::new(0), Cluster::new(0));
    let arguments = ["--cluster", "-n", "3000", "-t", "set,get,lpush,mset", "-r", "100", "-P", "4"];
    let original = theirs.0[0].run(Program::Original, &arguments).code(0);
    let own = ours.0[0].run(Program::Ours, &arguments).code(0);
    let id = |text: &str| {
        let hex = |word: &str| word.len() == 40 && word.bytes().all(|b| b.is_ascii_hexdigit());
        text.lines()
            .map(|line| {
                let words = line.split(' ').map(|w| if hex(w) { "ID" } else { w });
                words.collect::<Vec<_>>().join(" ")
            })
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(form(&id(&own.stdout)), form(&id(&original.stdout)));
    // One tag per server, as in the original up to version 7: a hundred keys and a list on each
    // server, so tests find each other's keys.
    let sizes = ours.sizes();
    assert!(sizes.iter().all(|size| (90..=101).contains(size)), "{sizes:?}");
    let calls = ours.calls("get");
    assert_eq!(calls.iter().sum::<u64>(), 3000, "nothing was sent twice: {calls:?}");
    assert!(calls.iter().all(|calls| *calls > 700), "{calls:?}");
}

#[test]
fn custom_commands_are_spread_by_their_tag() {
    if !tools() {
        return;
    }
    let cluster = Cluster::new(0);
    let command = ["--cluster", "-n", "600", "-q", "-c", "6", "incr", "mine:{tag}"];
    cluster.0[1].ours(&command).code(0);
    assert_eq!(cluster.calls("incr").iter().sum::<u64>(), 600);
    assert!(cluster.calls("incr").iter().all(|calls| *calls > 100));
    let key = cluster.0[0].ask(&["RANDOMKEY"]);
    assert!(key.starts_with("mine:{") && key.ends_with('}') && key.len() == 12, "{key}");
}

#[test]
fn replicas_are_read_on_request() {
    if !tools() {
        return;
    }
    let cluster = Cluster::new(1);
    let arguments = ["--cluster", "-n", "600", "-q", "-t", "get", "-r", "10"];
    let roles: Vec<bool> =
        cluster.0.iter().map(|s| s.ask(&["ROLE"]).starts_with("master")).collect();
    let counts = |from: &str| {
        let before = cluster.calls("get");
        cluster.0[0].ours(&[&arguments[..], &["--rfr", from]].concat()).code(0);
        let calls = cluster.calls("get").into_iter().zip(before).map(|(now, then)| now - then);
        let mut by_role = [0, 0];
        calls.zip(&roles).for_each(|(calls, is_master)| by_role[usize::from(*is_master)] += calls);
        by_role
    };
    assert_eq!(counts("no"), [0, 600]);
    assert_eq!(counts("yes"), [600, 0]);
    let [replicas, masters] = counts("all");
    assert!(replicas > 200 && masters > 200 && replicas + masters == 600, "{replicas} {masters}");
    // Replicas refuse writes.
    let writes = ["--cluster", "-n", "10", "-q", "-t", "set", "--rfr", "yes"];
    cluster.0[0].ours(&writes).code(1);
}

#[test]
fn a_server_without_cluster_support_is_an_error() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let ran = server.ours(&["--cluster", "-n", "10"]).code(1);
    ran.with_stderr("cannot read the cluster's configuration")
        .with_stderr("cluster support disabled");
}

#[test]
fn redirects_without_the_cluster_flag_are_an_error() {
    if !tools() {
        return;
    }
    let cluster = Cluster::new(0);
    let arguments = ["-n", "100", "-q", "-r", "1000", "-t", "set"];
    cluster.0[0].run(Program::Original, &arguments).code(1).with_stderr("MOVED");
    cluster.0[0].ours(&arguments).code(1).with_stderr("refers to").with_stderr("(add --cluster)");
}
