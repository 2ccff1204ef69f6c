//! The study of failovers: private servers whose service the plan interrupts.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::time::Duration;

use super::common::one_block::{events, fact, started};
use super::common::{Place, Started, among, installed, not_possible, row, wait_until};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn run(place: &Place, profiles: &[&str], sets: &[&str], target: &str) -> Started {
    let sets = profiles.iter().chain(sets).flat_map(|set| ["--set", set]);
    let arguments: Vec<&str> = ["failover", "--target", target].into_iter().chain(sets).collect();
    started(place, &arguments)
}

/// What clients noticed of the fault of a profile.
fn noticed<'a>(summary: &'a Value, workload: &str) -> &'a Value {
    among(&summary["failovers"], |one| one["workload"] == workload)[0]
}

#[test]
fn failover_after_a_killed_primary_is_measured() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["fault_ms=1500", "restore_ms=7000", "measure_ms=8000", "rate=1000"];
    let summary = run(&place, &["profile=kill"], &sets, "redis").finish_within(PATIENCE).json();
    for kind in ["killed", "promoted", "named"] {
        assert_eq!(events(&summary, kind).len(), 1, "{kind}: {}", summary["events"]);
    }
    // No other server is reported as silent, even though a Sentinel closes connections.
    assert!(events(&summary, "silent").is_empty(), "{}", summary["events"]);
    let (killed, promoted) = (events(&summary, "killed")[0], events(&summary, "promoted")[0]);
    assert!((1.4..2.5).contains(&killed) && promoted > killed + 0.9, "{killed}, {promoted}");
    let outage_s = place.record().trials()[0]["outages"][0]["length_ns"].as_f64().unwrap() / 1e9;
    for operation in ["get", "set"] {
        let name = format!("{operation}.unavailable_ns");
        let silent_s = fact(&summary, "kill", &name, "clients").unwrap() / 1e9;
        assert!(silent_s > promoted - killed, "{operation} was silent for {silent_s} s");
        assert!((silent_s - outage_s).abs() < 0.3, "{silent_s} s silent, outage of {outage_s} s");
        let row = row(&summary, "redis", &format!("steady.{operation}"));
        assert!(row["counts"]["ok"].as_u64() > Some(2_500), "{row}");
    }
    assert_eq!(fact(&summary, "kill", "writes_lost", "clients"), Some(0.0));
    assert!(fact(&summary, "kill", "writes_read_back", "clients") > Some(100.0));
    // A planned kill does not invalidate the run.
    assert_ne!(summary["validity"], "invalid", "{}", summary["reasons"]);
    wait_until("its servers are gone", Duration::from_secs(5), || {
        (!place.has_processes()).then_some(())
    });
    place.assert_nothing_left();
}

/// Process id of the replica, the second store to start; `None` until all servers of a run are up.
fn replica(place: &Place) -> Option<u32> {
    let (sentinels, mut stores): (Vec<_>, Vec<_>) = place
        .processes()
        .into_iter()
        .filter(|process| process.contains("redis-server"))
        .partition(|process| process.contains("[sentinel]"));
    stores.sort();
    let pid = |process: &String| process.split_once(' ')?.0.parse().ok();
    stores.get(1).filter(|_| sentinels.len() == 3).and_then(pid)
}

/// Waits until the replica of a trial is in sync and under load. The servers that check the target
/// end within four seconds, so one that lives longer is not theirs.
fn replica_under_load(place: &Place) -> u32 {
    wait_until("a replica is under load", PATIENCE, || {
        let pid = replica(place)?;
        std::thread::sleep(Duration::from_secs(4));
        (replica(place) == Some(pid)).then_some(pid)
    })
}

#[test]
fn a_replica_that_dies_before_its_primary_is_reported() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    // The primary is killed at 7 s; requests fail before it is restored.
    let sets = ["fault_ms=7000", "restore_ms=11500", "measure_ms=12000", "timeout_ms=2000"];
    let run = run(&place, &["profile=kill"], &sets, "redis");
    let pid = replica_under_load(&place);
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
    let summary = run.finish_within(PATIENCE).code(4).json();
    let trial = place.record().trials().remove(0);
    let why = trial["failure"]["message"].as_str().unwrap();
    // The message identifies which of the five servers died: the last one with the data.
    let parts = ["the replica 127.0.0.1:", "after the primary 127.0.0.1:", "died (was killed by"];
    assert!(parts.iter().all(|part| why.contains(part)), "{why}");
    assert_eq!(summary["validity"], "invalid", "{}", summary["reasons"]);
    // Nothing was read back, so nothing is known to be lost.
    assert_eq!(fact(&summary, "kill", "writes_lost", "clients"), None);
    place.assert_nothing_left();
}

#[test]
fn a_killed_primary_comes_back_as_a_replica() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["fault_ms=1500", "restore_ms=5000", "measure_ms=9000", "shares=20", "keys=5000"];
    let run = run(&place, &["profile=failover-proof"], &sets, "redis");
    let summary = run.finish_within(PATIENCE).json();
    for kind in ["killed", "restored", "replica-attached"] {
        assert_eq!(events(&summary, kind).len(), 1, "{kind}: {}", summary["events"]);
    }
    let one = noticed(&summary, "failover-proof-20");
    assert_eq!((&one["fault"], &one["faults"]), (&"kill".into(), &1.into()));
    assert!((one["share"].as_f64().unwrap() - 0.2).abs() < 1e-9);
    let [planned, peak] =
        ["planned_per_s", "peak_per_s"].map(|key| one[key]["center"].as_f64().unwrap());
    assert!((planned / peak - 0.2).abs() < 1e-6, "{planned}, {peak}");
    let away_ns = one["writes_unavailable_ns"]["median"].as_f64().unwrap();
    assert!((1e9..6e9).contains(&away_ns), "{away_ns}");
    assert!(one["cpu_peak_share"]["worst"].as_f64().unwrap() > 0.0, "{one}");
    assert!(fact(&summary, "failover-proof-20", "resync_ns", "clients") > Some(0.0));
    let survival = &summary["survivals"][0];
    assert_eq!(survival["on_one_host"], true);
    assert!(survival["sentence"].as_str().unwrap().contains("the death of its primary"));
    place.assert_nothing_left();
}

#[test]
fn sentinels_that_cannot_agree_promote_nobody() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["fault_ms=7000", "restore_ms=9000", "measure_ms=13000", "rate=300", "keys=500"];
    let run = run(&place, &["profile=kill"], &sets, "redis");
    replica_under_load(&place);
    // Two of three hang, so the third has no majority.
    let sentinels = place.processes().into_iter().filter(|own| own.contains("[sentinel]"));
    let pids = sentinels.map(|own| own.split_once(' ').unwrap().0.parse().unwrap());
    for pid in pids.take(2) {
        kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    }
    let summary = run.finish_within(PATIENCE).json();
    assert_eq!(events(&summary, "killed").len(), 1, "{}", summary["failures"]);
    assert!(events(&summary, "promoted").is_empty(), "{}", summary["events"]);
    let one = noticed(&summary, "kill");
    assert_eq!(one["not_promoted"], 1, "{one}");
    // The outage ends with the restoration of the primary, which waited for another one.
    let silent_s = one["writes_unavailable_ns"]["worst"].as_f64().unwrap() / 1e9;
    assert!(silent_s > 3.5, "{one}");
    let shown = place.on_records(&["show"]).measured().stdout;
    assert!(shown.contains("no server was promoted after 1 of 1 faults"), "{shown}");
    place.assert_nothing_left();
}

#[test]
fn a_partition_leaves_two_primaries_until_it_ends() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    // The primary is demoted some seconds after the partition ends.
    let sets = ["fault_ms=1500", "restore_ms=5000", "measure_ms=19000", "keys=2000", "rate=300"];
    let run = run(&place, &["profile=partition"], &sets, "redis");
    let summary = run.finish_within(PATIENCE).json();
    if not_possible(&summary, "redis") {
        return;
    }
    for kind in ["partitioned", "promoted", "restored", "demoted"] {
        assert_eq!(events(&summary, kind).len(), 1, "{kind}: {}", summary["events"]);
    }
    let [promoted, restored, demoted] =
        ["promoted", "restored", "demoted"].map(|kind| events(&summary, kind)[0]);
    assert!(promoted < restored && restored < demoted, "{}", summary["events"]);
    let one = noticed(&summary, "partition");
    let both_s = one["two_primaries_ns"]["median"].as_f64().unwrap() / 1e9;
    assert!((both_s - (demoted - promoted)).abs() < 0.01, "{one}");
    // Clients stay with the old primary, which loses what it acknowledged meanwhile.
    assert_eq!(one["fault"], "partition");
    assert!(one["writes_lost"][0].as_u64() > Some(20), "{one}");
    place.assert_nothing_left();
}

#[test]
fn faults_of_clusters_with_tls_are_measured() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["fault_ms=1500", "restore_ms=6000", "measure_ms=8000", "keys=2000", "rate=300"];
    let sets = [&sets[..], &["redis.listen=tls"]].concat();
    let run = run(&place, &["profile=partition,migration"], &sets, "redis-cluster");
    let summary = run.finish_within(PATIENCE).json();
    let happens = |kind| events(&summary, kind).len();
    assert_eq!(happens("migration-ended"), 1, "{}", summary["events"]);
    if summary["cells_not_run"].is_null() {
        assert_eq!(["partitioned", "promoted"].map(happens), [1, 1], "{}", summary["events"]);
        assert_eq!(among(&summary["cells"], |row| row["workload"] == "partition").len(), 3);
    }
    place.assert_nothing_left();
}

#[test]
fn clusters_fail_over_and_move_slots_without_losses() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["fault_ms=1500", "restore_ms=4000", "measure_ms=5000", "keys=5000", "rate=1000"];
    let profiles = ["profile=failover,migration"];
    let summary = run(&place, &profiles, &sets, "redis-cluster").finish_within(PATIENCE).json();
    for (profile, begins, ends) in [
        ("failover", "failover-requested", "promoted"),
        ("migration", "migration-began", "migration-ended"),
    ] {
        let (begun, ended) = (events(&summary, begins), events(&summary, ends));
        assert_eq!((begun.len(), ended.len()), (1, 1), "{profile}: {}", summary["events"]);
        assert!(ended[0] > begun[0], "{profile}: {begun:?}, {ended:?}");
        let steady =
            among(&summary["cells"], |c| c["workload"] == profile && c["operation"] == "steady");
        // A node that a busy machine delays may miss its neighbors and refuse some requests.
        let counts = &steady[0]["counts"];
        let by_class = counts["errors_by_class"].as_object().unwrap();
        assert!(by_class.keys().all(|class| class == "reply"), "{profile}: {counts}");
        let example = counts["error_examples"]["reply"].as_str().unwrap_or_default();
        assert!(example.is_empty() || example.starts_with("CLUSTERDOWN"), "{profile}: {counts}");
        assert!(counts["error"].as_u64() < Some(500), "{profile}: {counts}");
        assert_eq!(noticed(&summary, profile)["writes_lost"][0], 0, "{profile}");
    }
    place.assert_nothing_left();
}

#[test]
fn a_pair_without_sentinels_fails_over_on_request_without_losses() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["fault_ms=1500", "restore_ms=4000", "measure_ms=5000", "keys=5000", "rate=1000"];
    let profiles = ["profile=failover"];
    let summary = run(&place, &profiles, &sets, "redis-pair").finish_within(PATIENCE).json();
    assert_eq!(summary["failures"], serde_json::json!([]));
    let [requested, promoted, demoted] =
        ["failover-requested", "promoted", "demoted"].map(|kind| events(&summary, kind));
    assert_eq!((requested.len(), promoted.len(), demoted.len()), (1, 1, 1), "{summary}");
    assert!(promoted[0] > requested[0], "{requested:?}, {promoted:?}");
    let one = noticed(&summary, "failover");
    assert_eq!(one["writes_lost"][0], 0, "{one}");
    assert!(one["writes_lost"][1].as_u64() > Some(100), "{one}");
    assert!(one["writes_unavailable_ns"]["median"].as_f64() >= Some(0.0), "{one}");
    // Clients find the new primary: all later sets are answered.
    let set = row(&summary, "redis-pair", "steady.set");
    assert!(set["counts"]["ok"].as_u64() > Some(2_000), "{set}");
    assert!(set["counts"]["error"].as_u64() < Some(500), "{set}");
    place.assert_nothing_left();
}

#[test]
fn a_single_server_that_restarts_keeps_what_is_in_its_log() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["fault_ms=1500", "restore_ms=4000", "measure_ms=5000", "keys=5000", "rate=1000"];
    let profiles = ["profile=restart"];
    let summary = run(&place, &profiles, &sets, "redis-alone").finish_within(PATIENCE).json();
    for kind in ["shut-down", "restored"] {
        assert_eq!(events(&summary, kind).len(), 1, "{kind}: {}", summary["events"]);
    }
    let one = noticed(&summary, "restart");
    assert_eq!(one["writes_lost"][0], 0, "{one}");
    assert!(one["writes_lost"][1].as_u64() > Some(100), "{one}");
    // It may be back before clients notice a silence.
    assert!(one["reads_unavailable_ns"]["median"].as_f64() >= Some(0.0), "{one}");
    place.assert_nothing_left();
}

#[test]
fn a_fault_that_cannot_be_measured_is_refused() {
    let place = Place::new();
    let refused = |sets: &[&str], parts: &[&str]| {
        let finished = started(&place, &[&["failover"], sets].concat()).finish_within(PATIENCE);
        finished.usage_error(parts);
    };
    let late = ["--set", "restore_ms=9000", "--set", "measure_ms=9000"];
    refused(&late, &["restore_ms `9000` and measure_ms `9000` do not fit together"]);
    refused(&["--set", "fault_ms=0"], &["fault_ms", "1500"]);
    refused(&["--set", "shares=0"], &["shares", "1 to 100 percent"]);
    refused(&["--set", "profile=hang", "--set", "shares=50"], &["none of the chosen profiles"]);
    refused(&["--target", "memcached"], &["target `memcached`", "has no primary to kill"]);
}
