//! Limits that cannot be set, and stores that stop answering.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::common::{Place, Started, child_named, freeze, installed, skipped, wait_until};

const SOON: Duration = Duration::from_secs(60);

/// A quick run of a study by a user without rights; `None`, with a printed reason, if this user is
/// not root.
fn without_rights(place: &Place, arguments: &[&str]) -> Option<Command> {
    if fs::metadata(place.path()).unwrap().uid() != 0 || !installed(&["redis-server", "setpriv"]) {
        skipped("only root can run as another user");
        return None;
    }
    // The other user may not reach the directory of the build.
    let program = place.path().join("cachedyno-copy");
    fs::copy(env!("CARGO_BIN_EXE_cachedyno"), &program).unwrap();
    let (mut command, shared) = place.command_by_nobody(&program);
    command.args(["run", "--scale", "quick"]).args(arguments);
    command.arg("--out").arg(shared.join("records")).arg("--disk").arg(&shared);
    Some(command)
}

#[test]
fn a_limit_that_needs_root_is_refused_with_its_cure() {
    let place = Place::new();
    let arguments = ["beyond-ram", "--set", "profile=swap", "--set", "memory=64MiB"];
    let Some(command) = without_rights(&place, &arguments) else { return };
    let text = Place::finish(command).code(3).stdout;
    for part in ["redis: not available: memory cannot be limited", "(expected root"] {
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn a_fault_that_needs_root_is_not_run_and_the_others_are() {
    let place = Place::new();
    let sets = ["profile=kill,partition", "measure_ms=6000", "fault_ms=1500", "blocks_min=1"];
    let sets = sets.into_iter().chain(["restore_ms=4000", "blocks_max=1", "clients=2", "rate=200"]);
    let sets = sets.flat_map(|set| ["--set", set]);
    let arguments = ["failover", "--format", "json", "--target", "redis"];
    let arguments: Vec<&str> = arguments.into_iter().chain(sets).collect();
    let Some(command) = without_rights(&place, &arguments) else { return };
    let summary = Place::finish(command).json();
    let why = summary["cells_not_run"]["redis/partition/2"].as_str().unwrap();
    let parts = ["servers cannot be partitioned: ", "(expected root)", "without `partition`"];
    assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    assert_eq!(summary["failures"].as_array().map(Vec::len), Some(0), "{summary}");
    assert_ne!(summary["validity"], "invalid", "{}", summary["reasons"]);
    let measured = |row: &Value| row["workload"] == "kill";
    assert!(summary["cells"].as_array().unwrap().iter().all(measured), "{summary}");
}

#[test]
fn a_store_that_stops_answering_ends_its_cell() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["bench", "redis", "--keys", "500", "--clients", "4", "--duration", "60s"]);
    command.args(["--warmup", "100ms", "--stall-limit", "1s", "--blocks", "1"]);
    command.args(["--format", "json", "--out"]).arg(place.records());
    command.arg("--disk").arg(place.disk());
    let run = Started::new(command);
    let parent = run.pid();
    // The first server is that of the check.
    let server = wait_until("the load runs", SOON, || {
        let server = child_named(parent, "redis-server")?;
        let ticks = fs::read_to_string(format!("/proc/{server}/stat")).ok()?;
        let user: u64 = ticks.split_whitespace().nth(13)?.parse().ok()?;
        (user > 30).then_some(server)
    });
    freeze(server);
    let summary = run.finish_within(SOON).code(4).json();
    let failure = &summary["failures"][0];
    assert_eq!(failure["class"], "stalled", "{failure}");
    assert!(failure["phase"].is_string(), "{failure}");
    let reason = summary["reasons"][0].as_str().unwrap();
    assert!(
        reason.contains("1 of 1 trials ended early, first: stalled: no answer for"),
        "{reason}"
    );
    assert!(summary["cells"][0]["counts"]["ok"].as_u64() > Some(100), "{summary}");
    place.assert_nothing_left();
}
