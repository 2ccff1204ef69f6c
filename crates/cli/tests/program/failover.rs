//! `bench` on a Redis cluster whose servers die, fail over or join during the run.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::common::{
    Cluster, Place, PortServer, Started, among, count, installed, row, wait_until,
};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);

fn tools() -> bool {
    installed(&["redis-server", "redis-cli", "setpriv"])
}

/// Starts a run on the cluster of the server `through`.
fn bench(place: &Place, through: &PortServer, more: &[&str]) -> Started {
    let mut command = place.command();
    command.arg("bench").arg(format!("c=redis+cluster://127.0.0.1:{}", through.port));
    command.args(["--warmup", "0ms", "--blocks", "1", "--format", "json"]);
    command.args(["--keys", "500", "--clients", "4", "--op", "get=0.5,set=0.5"]);
    command.args(more).arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    Started::new(command)
}

/// Waits until the fill is over and the measurement has started.
fn wait_for_measurement(server: &PortServer) {
    let reads = || (server.calls("get") > 200).then_some(());
    wait_until("keys are read", Duration::from_secs(30), reads);
}

/// The only trial.
fn trial(place: &Place) -> Value {
    place.record().trials().remove(0)
}

/// Requests answered in the last full second of a phase with this planned length.
fn answered_at_the_end(trial: &Value, planned_ns: u64) -> u64 {
    let length_ns = trial["points"][0]["length_ns"].as_u64().unwrap();
    assert!(length_ns > planned_ns / 10 * 9, "{length_ns} of {planned_ns}");
    let done = trial["series"].as_array().unwrap().last().unwrap()["done_per_interval"]
        .as_array()
        .unwrap();
    done.iter().skip(planned_ns as usize / 100_000_000 - 10).map(|n| n.as_u64().unwrap()).sum()
}

fn assert_reported(summary: &Value, words: &str) {
    let found = !among(&summary["reasons"], |r| r.as_str().unwrap().contains(words)).is_empty();
    assert!(found, "no `{words}` in {}", summary["reasons"]);
}

/// Waits until no server has keys, including replicas, which lag behind.
fn wait_until_empty(cluster: &Cluster) {
    let empty = || cluster.sizes().iter().all(|keys| *keys == 0).then_some(());
    wait_until("no keys are left", Duration::from_secs(10), empty);
}

/// The replica of a server, found by the port in its `INFO replication`.
fn replica_of<'a>(cluster: &'a Cluster, primary: &PortServer) -> &'a PortServer {
    let info = primary.ask(&["INFO", "replication"]);
    let is_named = |server: &&PortServer| info.contains(&format!("port={},", server.port));
    cluster.0.iter().find(is_named).unwrap()
}

fn a_primary_dies(more: &[&str]) {
    let mut cluster = Cluster::with_replicas();
    let (dies, heir) = (cluster.0[1].port, replica_of(&cluster, &cluster.0[1]).port);
    let place = Place::new();
    let arguments = [&["--duration", "9s", "--timeout", "20s"], more].concat();
    let run = bench(&place, &cluster.0[0], &arguments);
    wait_for_measurement(&cluster.0[1]);
    drop(cluster.0.remove(1));
    let summary = run.finish_within(PATIENCE).code(4).json();
    assert_eq!(summary["failures"], serde_json::json!([]));
    let trial = trial(&place);
    assert!(answered_at_the_end(&trial, 9_000_000_000) > 100, "{trial}");
    let heir_answered = cluster.0.iter().find(|s| s.port == heir).unwrap().calls("get");
    assert!(heir_answered > 100, "{heir_answered}");
    let outages = trial["outages"].as_array().unwrap();
    assert_eq!(outages.len(), 1, "{outages:?}");
    assert_eq!(outages[0]["server"], format!("127.0.0.1:{dies}"));
    assert_eq!(outages[0]["taken_over_by"], format!("127.0.0.1:{heir}"));
    // The other servers vote after a timeout of one second.
    let length_ns = outages[0]["length_ns"].as_u64().unwrap();
    assert!((800_000_000..8_500_000_000).contains(&length_ns), "{length_ns}");
    assert_reported(&summary, &format!("127.0.0.1:{dies} was unavailable for "));
    assert_reported(&summary, &format!("127.0.0.1:{heir} took over from it"));
    let reasons = summary["reasons"].to_string();
    assert!(!reasons.contains("lower rate"), "{reasons}");
    let mixed = row(&summary, "c", "mixed");
    // At most the requests in flight at the crash. Until a replica is elected, the other servers
    // may refuse requests, since some slots are not served.
    let (classes, examples) =
        (&mixed["counts"]["errors_by_class"], &mixed["counts"]["error_examples"]);
    let refused = classes["reply"].as_u64().unwrap_or(0);
    assert!(count(mixed, "error") - refused < 200, "{mixed}");
    assert!(refused == 0 || examples["reply"].to_string().contains("CLUSTERDOWN"), "{mixed}");
    wait_until_empty(&cluster);
    place.assert_nothing_left();
}

#[test]
fn requests_continue_on_the_replica_of_a_dead_primary() {
    if tools() {
        a_primary_dies(&[]);
    }
}

#[test]
#[ignore = "forms another cluster: `make soak` runs it"]
fn open_load_continues_on_the_replica_of_a_dead_primary() {
    if tools() {
        a_primary_dies(&["--rate", "2000"]);
    }
}

/// Asserts that the death of a primary without a replica fails the trial.
fn a_primary_without_replica_dies(more: &[&str]) {
    let mut cluster = Cluster::new();
    let place = Place::new();
    let arguments = [&["--duration", "60s", "--timeout", "1s"], more].concat();
    let run = bench(&place, &cluster.0[0], &arguments);
    wait_for_measurement(&cluster.0[2]);
    let port = cluster.0.remove(2).port;
    let summary = run.finish_within(PATIENCE).code(4).json();
    assert_eq!(summary["validity"], "invalid");
    let failures = among(&summary["failures"], |f| f["class"] == "refused");
    let reason = failures[0]["reason"].as_str().unwrap();
    let named = reason.contains(&format!("cannot connect to 127.0.0.1:{port}"));
    assert!(named && reason.contains("no other server took over its keys"), "{reason}");
}

#[test]
#[ignore = "forms another cluster: `make soak` runs it"]
fn a_primary_without_replica_that_dies_fails_the_trial() {
    if !tools() {
        return;
    }
    a_primary_without_replica_dies(&[]);
}

#[test]
#[ignore = "forms another cluster: `make soak` runs it"]
fn a_primary_without_replica_that_dies_fails_the_trial_of_an_open_load() {
    if !tools() {
        return;
    }
    a_primary_without_replica_dies(&["--rate", "2000"]);
}

#[test]
#[ignore = "forms another cluster: `make soak` runs it"]
fn a_manual_failover_loses_no_request() {
    if !tools() {
        return;
    }
    let cluster = Cluster::with_replicas();
    let heir = replica_of(&cluster, &cluster.0[1]);
    let place = Place::new();
    let run = bench(&place, &cluster.0[0], &["--duration", "4s"]);
    wait_for_measurement(&cluster.0[1]);
    heir.ask(&["CLUSTER", "FAILOVER"]);
    let summary = run.finish_within(PATIENCE).measured().json();
    let mixed = row(&summary, "c", "mixed");
    assert_eq!(count(mixed, "error"), 0, "{mixed}");
    let trial = trial(&place);
    assert!(answered_at_the_end(&trial, 4_000_000_000) > 100, "{trial}");
    assert!(heir.calls("get") > 100);
    wait_until_empty(&cluster);
}

#[test]
#[ignore = "forms another cluster: `make soak` runs it"]
fn a_server_that_joins_under_load_gets_requests() {
    if !tools() {
        return;
    }
    let mut cluster = Cluster::new();
    let joins = Cluster::server("15000");
    let old = format!("127.0.0.1:{}", cluster.0[0].port);
    let ids = [&cluster.0[0], &joins].map(|server| server.ask(&["CLUSTER", "MYID"]));
    let bus = cluster.0[0].ask(&["CONFIG", "GET", "cluster-port"]);
    let (port, bus) = (cluster.0[0].port.to_string(), bus.lines().last().unwrap().to_string());
    joins.ask(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
    cluster.0.push(joins);
    wait_until("all servers know the new one", Duration::from_secs(30), || {
        let known = |server: &PortServer| {
            server.ask(&["CLUSTER", "INFO"]).contains("cluster_known_nodes:4")
        };
        cluster.0.iter().all(known).then_some(())
    });
    // Wait until every server knows about the moved slot.
    wait_until("all servers agree on the slots", Duration::from_secs(30), || {
        let check = Command::new("redis-cli").args(["--cluster", "check", &old]).output().unwrap();
        check.status.success().then_some(())
    });
    let place = Place::new();
    // The hash tag puts all keys into slot 0. The new server has no slots, so no map lists it.
    let arguments = ["--duration", "8s", "--key-prefix", "{06S}:"];
    let run = bench(&place, &cluster.0[1], &arguments);
    wait_for_measurement(&cluster.0[0]);
    // Moves slot 0 key by key. Requests for moved keys are redirected by ASK, and at the end by
    // MOVED.
    let output = Command::new("redis-cli")
        .args(["--cluster", "reshard", &old, "--cluster-from", &ids[0], "--cluster-to", &ids[1]])
        .args(["--cluster-slots", "1", "--cluster-yes"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let summary = run.finish_within(PATIENCE).measured().json();
    let mixed = row(&summary, "c", "mixed");
    assert_eq!(count(mixed, "error"), 0, "{mixed}");
    let trial = trial(&place);
    assert!(answered_at_the_end(&trial, 8_000_000_000) > 100, "{trial}");
    assert!(cluster.0[3].calls("get") > 100);
    assert_eq!(trial["outages"], serde_json::json!([]));
    wait_until_empty(&cluster);
}

/// A replica without its primary's newest data stands for no election.
#[test]
fn a_primary_whose_replica_is_too_far_behind_fails_the_trial() {
    if !tools() {
        return;
    }
    let mut cluster = Cluster::with_replicas();
    let dies = &cluster.0[1];
    let heir = replica_of(&cluster, dies);
    // It may be one node timeout and one ping behind: two seconds.
    for (name, value) in
        [("cluster-replica-validity-factor", "1"), ("repl-ping-replica-period", "1")]
    {
        heir.ask(&["CONFIG", "SET", name, value]);
    }
    // A wrong password keeps it from its primary.
    heir.ask(&["CONFIG", "SET", "masterauth", "wrong"]);
    dies.ask(&["CLIENT", "KILL", "TYPE", "replica"]);
    wait_until("the replica is behind", PATIENCE, || {
        let info = heir.ask(&["INFO", "replication"]);
        let since = info.lines().find_map(|l| l.strip_prefix("master_link_down_since_seconds:"))?;
        (since.trim().parse::<i64>().ok()? > 4).then_some(())
    });
    let place = Place::new();
    let run = bench(&place, &cluster.0[0], &["--duration", "60s", "--timeout", "4s"]);
    wait_for_measurement(dies);
    let (port, heir_port) = (dies.port, heir.port);
    drop(cluster.0.remove(1));
    let summary = run.finish_within(PATIENCE).code(4).json();
    let reason = &summary["failures"][0]["reason"];
    let reason = reason.as_str().unwrap();
    let named = reason.contains(&format!("cannot connect to 127.0.0.1:{port}"));
    assert!(
        named && reason.contains("no other server took over its keys within 4000 ms"),
        "{reason}"
    );
    let heir = cluster.0.iter().find(|server| server.port == heir_port).unwrap();
    assert!(heir.ask(&["ROLE"]).starts_with("slave"), "it was promoted");
}
