//! Limits of private servers, as a provider's instances have them.

use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::common::{
    Place, Started, among, child_with, command_line, count, installed, not_possible, row, skipped,
    target, wait_until,
};

/// A short `bench` with these arguments; prints the summary as JSON.
fn bench(place: &Place, arguments: &[&str], duration: &str) -> Command {
    let mut command = place.command();
    command.arg("bench").args(arguments).args(["--duration", duration, "--warmup", "50ms"]);
    command.args(["--blocks", "1", "--format", "json", "--keys", "500", "--clients", "4"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

fn metric(row: &Value, name: &str) -> f64 {
    row["metrics"][name]["center"].as_f64().unwrap_or_else(|| panic!("no {name} in {row}"))
}

#[test]
fn a_quota_of_cpu_time_holds_and_is_named_in_the_answer() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let tier = "tier.small=memory=128MiB,cpus=1,quota=0.1,connections=200";
    let command = bench(&place, &["redis", "small:redis", "--set", tier], "1s");
    let finished = Place::finish(command);
    let summary = finished.json();
    if not_possible(&summary, "small:redis") {
        return;
    }
    let whole = row(&summary, "small:redis", "mixed");
    // A period at either end of the second can have its whole quota.
    assert!(metric(whole, "server_cpus") <= 0.13, "{}", metric(whole, "server_cpus"));
    assert!(metric(whole, "cpu_throttled_share") > 0.0);
    let facts = among(&summary["facts"], |fact| fact["target"] == "small:redis");
    let throttled = facts.iter().find(|fact| fact["name"] == "cpu_periods_throttled").unwrap();
    assert!(throttled["value"]["center"].as_f64() > Some(0.0), "{throttled}");
    let settings = &target(&summary, "small:redis")["settings"];
    assert_eq!(settings["maxclients"], "200");
    let tiers = summary["tiers"].as_array().unwrap();
    assert_eq!(tiers.len(), 1, "the other target has no limits");
    assert_eq!(tiers[0]["phases"][0]["reached"][0]["limit"], "CPU time");
    let answer = summary["answer"].to_string();
    assert!(answer.contains("its CPU time is the limit"), "{answer}");
    // The record has the limits, and the other target has no trace of them.
    let planned = &place.record().header()["plan"]["targets"];
    assert_eq!(planned[1]["tier"]["quota"], "0.1");
    assert_eq!(planned[0].get("tier"), None);
    place.assert_nothing_left();
}

#[test]
fn bandwidth_and_distance_hold_and_leave_nothing() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let tier = "tier.far=bandwidth_mbit=20,distance=5ms";
    let finished = Place::finish(bench(&place, &["far:redis", "--set", tier], "1s"));
    let summary = finished.json();
    if not_possible(&summary, "far:redis") {
        return;
    }
    let whole = row(&summary, "far:redis", "mixed");
    assert!(count(whole, "ok") > 0 && count(whole, "error") == 0, "{whole}");
    // The least of all times, as all requests go through the relay.
    assert!(metric(whole, "service_ns_p50") >= 5e6, "{}", metric(whole, "service_ns_p50"));
    for direction in ["link_received_bit_per_s", "link_sent_bit_per_s"] {
        assert!(metric(whole, direction) <= 22e6, "{direction}: {}", metric(whole, direction));
    }
    assert_eq!(target(&summary, "far:redis")["settings"]["listen"], "tcp");
    place.assert_nothing_left();
}

#[test]
fn a_tier_that_is_too_large_for_the_machine_is_not_run() {
    let place = Place::new();
    let tiers = [
        ("tier.redis=cpus=1000", "it needs 1000 CPUs, and this machine has"),
        ("tier.redis=memory=1TiB", "it needs 1 TiB of memory, and this machine has"),
    ];
    for (tier, reason) in tiers {
        let finished = Place::finish(bench(&place, &["redis", "--set", tier], "100ms")).code(3);
        let summary = finished.json();
        let why = target(&summary, "redis")["not_run"].as_str().unwrap().to_string();
        assert!(why.contains("too small for the tier") && why.contains(reason), "{why}");
    }
}

#[test]
fn more_clients_than_connections_are_refused_with_the_reason() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let tier = "tier.redis=connections=3";
    let finished = Place::finish(bench(&place, &["redis", "--set", tier], "200ms"));
    let summary = finished.json();
    let failures = summary["failures"].as_array().unwrap();
    assert_eq!((failures.len(), &failures[0]["class"]), (1, &"refused".into()), "{failures:?}");
    let reason = failures[0]["reason"].as_str().unwrap();
    assert!(reason.contains("max number of clients reached"), "{reason}");
    place.assert_nothing_left();
}

#[test]
fn a_neighbour_is_there_during_a_trial_and_ends_with_a_killed_run() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let tier = "tier.redis=neighbour=20ms/100ms,bandwidth_mbit=100";
    let mut run = Started::new(bench(&place, &["redis", "--set", tier], "60s"));
    let neighbour =
        wait_until("a neighbour runs, or it is impossible", Duration::from_secs(60), || {
            match child_with(run.pid(), "rig-neighbour") {
                Some(pid) => Some(Some(pid)),
                None => (!run.is_running()).then_some(None),
            }
        });
    let Some(neighbour) = neighbour else {
        skipped("no network is possible here");
        return;
    };
    let words = command_line(neighbour);
    assert!(words.contains("20000000") && words.contains("100000000"), "{words}");
    let own = format!("cd-{}-", run.pid());
    let interfaces = || {
        let names = fs::read_dir("/sys/class/net").unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(&own)).count()
    };
    assert_eq!(interfaces(), 1);
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    wait_until("all have ended", Duration::from_secs(20), || {
        let has_ended = !Path::new(&format!("/proc/{neighbour}")).exists();
        (has_ended && interfaces() == 0 && !place.has_processes()).then_some(())
    });
    wait_until("the guard has removed everything", Duration::from_secs(20), || {
        place.left().is_empty().then_some(())
    });
}

#[test]
fn wrong_tiers_are_usage_errors() {
    let place = Place::new();
    for (set, parts) in [
        ("tier.redis=C9", &["`C9` is not a limit"][..]),
        ("tier.x=cpus=1", &["`x` is not a chosen target"]),
        ("tier.redis=cpu=1", &["unknown limit `cpu`", "`cpus`"]),
        ("tier.redis=quota=2,cpus=1", &["limit `quota` is `2`"]),
    ] {
        Place::finish(bench(&place, &["redis", "--set", set], "1s")).usage_error(parts);
    }
    let at_url = ["x=redis://127.0.0.1:1", "--set", "tier.x=cpus=1"];
    let cannot = ["cannot be limited to 1 CPU (expected a private server, without a URL)"];
    Place::finish(bench(&place, &at_url, "1s")).usage_error(&cannot);
    let memcached = ["memcached", "--set", "tier.memcached=bandwidth_mbit=100"];
    let listens = ["expected Redis or a compatible server, which listens on a port"];
    Place::finish(bench(&place, &memcached, "1s")).usage_error(&listens);
    // Through a relay's port, other users could reach a server without a password.
    let unix = ["redis", "--set", "listen=unix", "--set", "tier.redis=distance=1ms"];
    Place::finish(bench(&place, &unix, "1s")).usage_error(&listens);
    let of_study = |set: &str| {
        let mut command = place.command();
        command.args(["run", "sizing", "--scale", "quick", "--set", set]);
        Place::finish(command)
    };
    of_study("tier.redis=C9").usage_error(&["tier.redis", "`C0`", "`P1`"]);
    of_study("tier.files=C0").usage_error(&["no chosen target has this label or name"]);
}
