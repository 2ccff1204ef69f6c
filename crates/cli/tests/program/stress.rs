//! Studies that limit a store's memory, on real servers.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use super::common::one_block::{events, fact, started};
use super::common::{Place, among, installed, row, skipped};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn info_and_the_control_group_agree_on_pages_copied_by_a_save() {
    copied_pages_agree("save");
}

#[test]
fn info_and_the_control_group_agree_on_pages_copied_by_a_rewrite() {
    copied_pages_agree("rewrite");
}

/// Runs the profile of a save or a rewrite, which has the name of what it requests.
fn copied_pages_agree(name: &str) {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let profile = format!("profile={name}");
    let sets = ["--set", &profile, "--set", "memory=64MiB", "--set", "measure_ms=1500"];
    let finished = started(&place, &[&["beyond-ram"], &sets[..]].concat()).finish_within(PATIENCE);
    let summary = finished.json();
    let targets = &summary["targets"][0];
    if let Some(why) = targets["not_run"].as_str() {
        skipped(why);
        return;
    }
    let began = events(&summary, &format!("{name}-began"));
    // It starts after a quarter of the twelve seconds.
    assert!(began.len() == 1 && (2.8..4.5).contains(&began[0]), "{began:?}");
    let of = |of: &str, source| fact(&summary, name, &of.replace('*', name), source).unwrap();
    let (info, group) = (of("*_copied_bytes", "INFO"), of("*_copied_bytes", "memory group"));
    assert!(info > 4e6 && (group / info - 1.0).abs() < 0.25, "INFO {info}, memory group {group}");
    let (lowest, fork_ns) = (of("*_lowest_rate_share", "clients"), of("fork_ns", "INFO"));
    assert!((0.0..1.2).contains(&lowest) && fork_ns > 0.0, "{lowest}, {fork_ns}");
    place.assert_nothing_left();
}

#[test]
fn huge_pages_are_compared_only_where_servers_get_them() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["--set", "profile=save-thp", "--set", "memory=64MiB", "--set", "measure_ms=100"];
    let finished = started(&place, &[&["beyond-ram"], &sets[..]].concat()).finish_within(PATIENCE);
    let summary = finished.json();
    let not_run = |name: &str| {
        let target = among(&summary["targets"], |target| target["name"] == name)[0];
        target["not_run"].as_str().map(String::from)
    };
    if let Some(why) = not_run("redis") {
        skipped(&why);
        return;
    }
    let mode = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let has_huge_pages = mode.unwrap_or_default().contains("[always]");
    let bytes = |name: &str| {
        let own = |f: &Value| f["target"] == name && f["name"] == "huge_page_bytes";
        among(&summary["facts"], own).first().map(|fact| fact["value"]["center"].clone())
    };
    assert_eq!(bytes("redis"), Some(0.0.into()));
    match not_run("redis-thp") {
        Some(why) => assert!(!has_huge_pages && why.contains("expected `[always]`"), "{why}"),
        None => assert!(has_huge_pages && bytes("redis-thp").unwrap().as_f64() > Some(0.0)),
    }
    place.assert_nothing_left();
}

#[test]
fn data_larger_than_memory_is_swapped_or_the_failure_says_why() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["--set", "profile=swap", "--set", "memory=64MiB", "--set", "measure_ms=300"];
    let finished = started(&place, &[&["beyond-ram"], &sets[..]].concat()).finish_within(PATIENCE);
    let trials = place.record().trials();
    assert_eq!(trials.len(), 3, "{}", finished.stderr);
    for trial in &trials {
        let failure = trial["failure"]["message"].as_str();
        if failure.is_some_and(|why| why.contains("cannot swap to") || why.contains("swap")) {
            skipped(failure.unwrap_or_default());
            continue;
        }
        assert!(failure.is_none(), "{trial}");
        let phases = trial["points"].as_array().unwrap();
        let names: Vec<&str> = phases.iter().map(|p| p["phase"].as_str().unwrap()).collect();
        assert_eq!(names, ["set", "get"]);
        assert!(trial["fill"]["length_ns"].as_u64() > Some(0));
        let swapped = trial["memory"]["swap"]["used_bytes"].as_u64().unwrap();
        let is_beyond = trial["cell"].as_str().unwrap().contains("1.5");
        assert!(!is_beyond || swapped > 8 << 20, "{swapped} bytes are swapped out: {trial}");
    }
    place.assert_nothing_left();
}

#[test]
fn a_save_while_swapping_says_where_data_and_swap_were() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let directory = place.path().join("swap");
    fs::create_dir(&directory).unwrap();
    let swap_dir = format!("swap_dir={}", directory.display());
    let sets = ["--set", "profile=save-swap", "--set", "memory=64MiB", "--set", "measure_ms=150"];
    let arguments = [&["beyond-ram", "--set", &swap_dir], &sets[..]].concat();
    let finished = started(&place, &arguments).finish_within(PATIENCE);
    if finished.stderr.contains("which has no swap files") {
        skipped(&finished.stderr);
        return;
    }
    let trial = place.record().trials().remove(0);
    if let Some(why) = trial["failure"]["message"].as_str().filter(|why| why.contains("swap")) {
        skipped(why);
        return;
    }
    let summary = finished.json();
    assert_eq!(events(&summary, "save-began").len(), 1, "{}", summary["events"]);
    assert!(trial["memory"]["swap"]["written_bytes"].as_u64() > Some(0), "{trial}");
    let fact = |group: &str, name: &str| {
        let own = |f: &Value| f["group"] == group && f["name"] == name;
        among(&summary["conditions"]["facts"], own)[0].clone()
    };
    let real = directory.canonicalize().unwrap();
    assert_eq!(fact("disk of swap", "directory")["value"], real.to_str().unwrap());
    let [data, swap] = ["disk", "disk of swap"].map(|group| fact(group, "device"));
    let warns = swap["warning"].as_str().is_some_and(|text| text.contains("on the same disk"));
    assert_eq!(warns, data["value"] == swap["value"], "{swap}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    fs::remove_dir(&directory).unwrap();
    place.assert_nothing_left();
}

#[test]
fn collections_are_filled_before_they_are_used() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let sets = ["--set", "profile=hashes,lists-one-by-one", "--set", "memory=64MiB"];
    let arguments = [&["beyond-ram", "--set", "measure_ms=200"], &sets[..]].concat();
    let finished = started(&place, &arguments).finish_within(PATIENCE);
    let summary = finished.json();
    if let Some(why) = summary["targets"][0]["not_run"].as_str() {
        skipped(why);
        return;
    }
    for operation in ["hset", "hget", "rpoplpush", "lrange"] {
        let row = row(&summary, "redis", operation);
        let counts = &row["counts"];
        assert!(counts["ok"].as_u64() > Some(1_000), "{row}");
        let others = ["miss", "error", "wrong"].map(|count| counts[count].as_u64());
        assert_eq!(others, [Some(0); 3], "{row}");
    }
    for (workload, elements) in [("hashes", 10.0), ("lists-one-by-one", 100.0)] {
        let of = |name, source| fact(&summary, workload, name, source).unwrap();
        let (keys, values) = (of("fill_keys", "clients"), of("fill_value_bytes", "clients"));
        assert!((values / keys / (64.0 * elements) - 1.0).abs() < 1e-9, "{values} in {keys}");
        // The amount of data is computed from the memory that the server uses for a key.
        let data = keys * of("bytes_per_key", "INFO");
        assert!((data / f64::from(64 << 20) - 1.0).abs() < 0.1, "{data} bytes");
    }
    place.assert_nothing_left();
}

#[test]
fn a_deadline_ends_a_cell_and_keeps_its_results() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    // The fill of 120,000 keys at 40,000 per second takes longer than what is added to 2 × 3.2 s.
    let mut arguments = vec!["beyond-ram", "--set", "profile=stores", "--set", "memory=64MiB"];
    arguments.extend(["--target", "redis", "--set", "measure_ms=1500", "--set", "deadline_s=1"]);
    let finished = started(&place, &arguments).finish_within(PATIENCE);
    let trial = place.record().trials().remove(0);
    if let Some(why) = trial["failure"]["message"].as_str().filter(|why| why.contains("group")) {
        skipped(why);
        return;
    }
    let point = trial["points"].as_array().unwrap().last().unwrap();
    let why = point["failure"]["message"].as_str().unwrap();
    assert!(why.contains("deadline of 7.40 s"), "{why}");
    let length_ns = point["length_ns"].as_u64().unwrap();
    assert!(length_ns < 2_900_000_000, "{length_ns}: {}", finished.stderr);
    assert!(point["operations"][0]["counts"]["ok"].as_u64() > Some(0));
    place.assert_nothing_left();
}

#[test]
fn an_existing_server_is_never_limited_saved_or_killed() {
    for study in ["beyond-ram", "failover"] {
        let place = Place::new();
        let arguments = [study, "--target", "redis=redis://127.0.0.1:1/0"];
        let finished = started(&place, &arguments).finish_within(PATIENCE);
        finished.usage_error(&[
            "the server of target `redis`, which it did not start",
            "a private server",
        ]);
    }
}
