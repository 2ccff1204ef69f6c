//! The cache-aside study on real servers: a database alone and behind caches.

use std::process::Command;

use serde_json::Value;

use super::common::{Place, among, installed};

/// Settings for one short block.
const FAST: [&str; 23] = [
    "cache-aside",
    "--scale",
    "quick",
    "--format",
    "json",
    "--set",
    "clients=4",
    "--set",
    "rows=500",
    "--set",
    "stage_ms=250",
    "--set",
    "measure_ms=150",
    "--set",
    "warmup_ms=20",
    "--set",
    "blocks_min=1",
    "--set",
    "blocks_max=1",
    "--set",
    "verify_one_in=1",
    "--seed=5",
    "--set",
];

fn tools() -> bool {
    installed(&["redis-server", "memcached", "mariadbd", "setpriv"])
}

pub(super) fn run(place: &Place, profile: &str, arguments: &[&str]) -> Command {
    let profile = format!("profile={profile}");
    place.run(&[&FAST[..], &[&profile], arguments].concat())
}

fn operation<'a>(of: &'a Value, name: &str) -> Option<&'a Value> {
    among(&of["operations"], |o| o["operation"] == name).first().copied()
}

fn counted(point: &Value, name: &str, kind: &str) -> u64 {
    operation(point, name).map_or(0, |o| o["counts"][kind].as_u64().unwrap_or(0))
}

/// The points of a target's only trial.
fn points(place: &Place, target: &str) -> Vec<Value> {
    let trials = place.record().trials();
    let own = |t: &&Value| t["cell"].as_str().unwrap().starts_with(&format!("{target}/"));
    let trial = trials.iter().find(own).unwrap_or_else(|| panic!("no trial of {target}"));
    assert!(trial["failure"].is_null(), "{}", trial["failure"]);
    trial["points"].as_array().unwrap().clone()
}

/// Asserts that a point has no unexpected outcome, and that every miss led to a query.
fn assert_queried(point: &Value, whole: &str) {
    for (name, kind) in [(whole, "wrong"), (whole, "miss"), (whole, "error"), ("query", "miss")] {
        assert_eq!(counted(point, name, kind), 0, "{name} {kind}: {point}");
    }
    let (missed, queries) = (counted(point, "get", "miss"), counted(point, "query", "ok"));
    let sets = counted(point, "set", "ok");
    // At each end of a closed load, calls of four clients' reads may be counted apart.
    assert!(missed.abs_diff(queries) <= 4 && queries.abs_diff(sets) <= 4, "{point}");
    let (hits, reads) = (counted(point, "get", "ok"), counted(point, whole, "ok"));
    assert!(hits > 0 && (hits + missed).abs_diff(reads) <= 4, "{point}");
}

#[test]
fn a_rising_load_is_offered_to_the_database_alone_and_behind_a_cache() {
    if !tools() {
        return;
    }
    let place = Place::new();
    let summary = Place::finish(run(&place, "rising", &[])).measured().json();
    for target in ["mariadb", "redis-mariadb", "memcached-mariadb"] {
        let all = points(&place, target);
        let (peaks, stages): (Vec<&Value>, Vec<&Value>) =
            all.iter().partition(|p| p["phase"] == "peak");
        assert_eq!((peaks.len(), stages.len()), (1, 6), "{target}");
        assert_eq!(counted(peaks[0], "get", "ok"), 0, "the peak bypasses the cache");
        let whole = operation(peaks[0], "peak").unwrap();
        let peak_per_s = whole["rate_per_s"].as_f64().unwrap();
        for (stage, share) in stages.iter().zip([0.25, 0.5, 0.75, 1.0, 1.5, 2.0]) {
            let planned = stage["planned_per_s"].as_f64().unwrap();
            assert!((planned / peak_per_s / share - 1.0).abs() < 1e-6, "{planned}");
            if target == "mariadb" {
                assert_eq!(counted(stage, "ramp", "wrong"), 0);
            } else {
                assert_queried(stage, "ramp");
            }
        }
    }
    let ramps = summary["ramps"].as_array().unwrap();
    let helps = |target: &str| {
        let own = ramps.iter().find(|ramp| ramp["target"] == target).unwrap();
        own["helps"]["alone"].clone()
    };
    assert_eq!((helps("mariadb"), helps("redis-mariadb")), (Value::Null, "mariadb".into()));
    let hits = &ramps.iter().find(|r| r["target"] == "redis-mariadb").unwrap()["stages"][0];
    assert!(hits["metrics"]["hit_ratio"]["center"].as_f64().unwrap() > 0.0, "{hits}");
}

#[test]
fn a_lock_admits_one_query_per_expiry() {
    if !tools() {
        return;
    }
    let place = Place::new();
    let targets = ["--target", "redis-mariadb", "--target", "memcached-mariadb"];
    let profiles = "stampede,stampede-lock,closed";
    let summary = Place::finish(run(&place, profiles, &targets)).measured().json();
    for target in ["redis-mariadb", "memcached-mariadb"] {
        let row = |profile: &str| {
            let own = |r: &Value| {
                r["target"] == target && r["workload"] == profile && r["operation"] == "read"
            };
            among(&summary["cells"], own)[0].clone()
        };
        let per_expiry =
            |profile: &str| row(profile)["metrics"]["queries_per_expiry"]["center"].as_f64();
        let without = per_expiry("stampede").unwrap();
        assert!((1.0..=4.0).contains(&without), "{target}: {without}");
        assert!((per_expiry("stampede-lock").unwrap() - 1.0).abs() < 1e-9, "{target}");
        let saved = row("closed")["metrics"]["queries_saved_share"]["center"].as_f64().unwrap();
        assert!(saved > 0.0 && saved < 1.0, "{target}: {saved}");
        for counts in ["wrong", "miss", "error"] {
            assert_eq!(row("closed")["counts"][counts], 0, "{target}: {counts}");
        }
    }
}

#[test]
fn only_private_servers_of_the_study_are_measured() {
    let place = Place::new();
    for (target, words) in
        [("mariadb=mysql://u@h/d", "expected no URL"), ("redis", "unknown target `redis`")]
    {
        Place::finish(run(&place, "closed", &["--target", target])).usage_error(&[words]);
    }
}
