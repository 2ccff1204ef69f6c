//! Faults of servers at a URL, which a command of the user causes.

use std::fs;
use std::time::Duration;

use super::common::one_block::{events, started};
use super::common::{Cluster, Finished, Place, PortServer, Started, among, installed, row};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);
const SECRET: &str = "correct-horse";

/// A block of a profile on a server, with a fault after 1.5 s and an end after 4 s.
fn run(place: &Place, profile: &str, target: &str, command: &str) -> Finished {
    let profile = format!("profile={profile}");
    let mut arguments = vec!["failover", "--target", target, "--fault-command", command];
    for set in ["fault_ms=1500", "restore_ms=3000", "measure_ms=4000", "keys=2000", "rate=1000"] {
        arguments.extend(["--set", set]);
    }
    arguments.extend(["--set", &profile, "--set", "blocks_min=1"]);
    arguments.extend(["--scale", "quick", "--format", "json", "--set", "blocks_max=1"]);
    let mut run = place.run(&arguments);
    run.env("CACHEDYNO_PASSWORD_OTHER", SECRET);
    Started::new(run).finish_within(PATIENCE)
}

#[test]
fn a_command_is_needed_at_a_url_and_nowhere_else() {
    let place = Place::new();
    let refused = |arguments: &[&str], parts: &[&str]| {
        started(&place, arguments).finish_within(PATIENCE).usage_error(parts);
    };
    let at_url = ["failover", "--target", "redis=redis://127.0.0.1:1"];
    refused(&at_url, &["target `redis`", "did not start", "--fault-command COMMAND", "`kill`"]);
    let command = ["--fault-command", "true"];
    let no_effect = "--fault-command has no effect";
    refused(&[&["failover"], &command[..]].concat(), &[no_effect, "at a URL"]);
    let sessions = ["sessions", "--target", "redis=redis://127.0.0.1:1"];
    refused(&[&sessions, &command[..]].concat(), &[no_effect, "study `sessions`"]);
    let mut bench = place.command();
    bench.args(["bench", "redis"]).args(command);
    Place::finish(bench).usage_error(&["--fault-command"]);
    assert!(place.all_records().is_empty());
}

#[test]
fn a_command_interrupts_a_server_at_a_url() {
    if !installed(&["redis-server", "redis-cli"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let pid = server.ask(&["INFO", "server"]);
    let pid = pid.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap().trim();
    let file = place.path().join("said");
    let command = format!(
        "PASSWORD={SECRET} printenv CACHEDYNO_FAULT CACHEDYNO_TARGET CACHEDYNO_ADDRESS >> {0}; \
         env | grep -c CACHEDYNO_PASSWORD >> {0}; kill -STOP {pid}; sleep 0.7; kill -CONT {pid}",
        file.display()
    );
    let target = format!("own=redis://127.0.0.1:{}", server.port);
    let summary = run(&place, "hang", &target, &command).json();
    assert_eq!(summary["failures"], serde_json::json!([]));
    let said = fs::read_to_string(file).unwrap();
    assert_eq!(said, format!("hang\nown\n127.0.0.1:{}\n0\n", server.port));
    let [began, ended] =
        ["fault-command-began", "fault-command-ended"].map(|kind| events(&summary, kind)[0]);
    assert!((1.4..2.5).contains(&began) && ended > began + 0.6, "{began}, {ended}");
    assert!(events(&summary, "silent").is_empty(), "{}", summary["events"]);
    let one = &summary["failovers"][0];
    assert_eq!((&one["fault"], &one["by_command"]), (&"hang".into(), &true.into()));
    let away_ns = one["writes_unavailable_ns"]["median"].as_f64().unwrap();
    assert!((6e8..2.5e9).contains(&away_ns), "{away_ns}");
    assert_eq!(one["writes_lost"][0], 0);
    let steady = row(&summary, "own", "steady");
    assert!(steady["counts"]["ok"].as_u64() > Some(2_500), "{steady}");
    assert_eq!(server.ask(&["DBSIZE"]), "0", "the keys of the run are removed");

    let record = place.record();
    assert!(!record.contains(SECRET), "the record contains the command");
    let command = record.header()["command"].to_string();
    assert!(command.contains("\"--fault-command\",\"printenv …\""), "{command}");
}

#[test]
fn a_command_that_fails_or_hangs_is_a_failure_of_the_trial() {
    if !installed(&["redis-server", "redis-cli"]) {
        return;
    }
    let server = PortServer::redis(&[]);
    let target = format!("redis=redis://127.0.0.1:{}", server.port);
    let failure = |command: &str| {
        let place = Place::new();
        let summary = run(&place, "kill", &target, command).code(4).json();
        assert!(!place.record().contains(SECRET));
        place.assert_nothing_left();
        assert_eq!(server.ask(&["DBSIZE"]), "0");
        summary["failures"][0]["reason"].as_str().unwrap().to_string()
    };
    let failed =
        failure(&format!("echo begun >&2; echo no login redis://:{SECRET}@h/1 >&2; exit 3"));
    for part in ["the fault command ended with exit code 3", "no login redis://"] {
        assert!(failed.contains(part), "no `{part}` in {failed}");
    }
    let hung = failure("echo waiting >&2; sleep 1000");
    for part in ["the fault command did not end in time and was killed", "waiting"] {
        assert!(hung.contains(part), "no `{part}` in {hung}");
    }
}

#[test]
fn a_command_makes_a_cluster_at_a_url_fail_over() {
    if !installed(&["redis-server", "redis-cli"]) {
        return;
    }
    let cluster = Cluster::with_replicas();
    let primary = &cluster.0[0];
    let info = primary.ask(&["INFO", "replication"]);
    let port = info.split("port=").nth(1).unwrap().split(',').next().unwrap();
    let target = format!("redis-cluster=redis+cluster://127.0.0.1:{}", primary.port);
    let command = format!("redis-cli -p {port} CLUSTER FAILOVER | grep OK");
    let place = Place::new();
    let summary = run(&place, "failover", &target, &command).json();
    assert_eq!(summary["failures"], serde_json::json!([]));
    assert_eq!(events(&summary, "fault-command-ended").len(), 1, "{}", summary["events"]);
    assert_eq!(events(&summary, "demoted").len(), 1, "{}", summary["events"]);
    // On a loaded machine, servers may miss each other's messages for a moment.
    let steady = among(&summary["cells"], |cell| cell["operation"] == "steady")[0];
    assert!(steady["counts"]["error"].as_u64() < Some(200), "{steady}");
    assert_eq!(summary["failovers"][0]["writes_lost"][0], 0);
    let asked = cluster.0.iter().filter(|server| server.calls("get") > 0);
    assert_eq!(asked.count(), 4, "the three primaries and the new one");
}
