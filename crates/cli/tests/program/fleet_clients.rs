//! Blocking clients divided between the workers of a fleet: sessions, application caches, rows
//! behind a cache, keys and values in files.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::time::Duration;

use super::common::{Place, PortServer, Started, among, count, installed, skipped, wait_until};
use super::fleet::{Driver, PATIENCE, workers};
use super::{app_cache, cache_aside};

const TWO: [&str; 2] = ["--fleet", "local:2"];

/// Asserts that so many workers contributed to each point of a trial, that their clients and counts
/// add up, and that every write that was read back was found.
#[track_caller]
fn assert_divided(trial: &Value, workers: usize) {
    assert!(trial["failure"].is_null(), "{trial}");
    for point in trial["points"].as_array().unwrap() {
        let parts = point["contributors"].as_array().unwrap();
        assert_eq!(parts.len(), workers, "{point}");
        let sum = |get: &dyn Fn(&Value) -> u64| parts.iter().map(|p| get(&p["point"])).sum::<u64>();
        let clients = |point: &Value| point["clients"].as_u64().unwrap();
        assert_eq!(sum(&clients), clients(point), "{point}");
        let whole = |point: &Value| point["operations"].as_array().unwrap().last().cloned();
        for kind in ["ok", "miss", "error", "wrong", "stale"] {
            let counted = |point: &Value| {
                whole(point).map_or(0, |whole| whole["counts"][kind].as_u64().unwrap_or(0))
            };
            assert_eq!(sum(&counted), counted(point), "{kind}: {point}");
        }
    }
}

/// Asserts that a sample of the writes was read back, and that none of them is missing or wrong.
#[track_caller]
fn assert_kept(trial: &Value) {
    let read_back = &trial["read_back"];
    assert!(read_back["read"].as_u64() > Some(0) && read_back["unread"].is_null(), "{trial}");
    for lost in ["older", "wrong", "missing"] {
        assert_eq!(read_back[lost], 0, "{read_back}");
    }
}

fn trials_of<'a>(trials: &'a [Value], cell: &str) -> Vec<&'a Value> {
    let found: Vec<&Value> =
        trials.iter().filter(|t| t["cell"].as_str().unwrap().contains(cell)).collect();
    assert!(!found.is_empty(), "no trial of {cell}");
    found
}

#[test]
fn sessions_are_divided_between_workers() {
    if !installed(&["redis-server", "mariadbd", "mariadb-install-db"]) {
        return;
    }
    let place = Place::new();
    let arguments = ["--set", "profile=page,maxcluster-2019", "--timeout", "60s"];
    let arguments = [&arguments[..], &["--set", "sessions=40"], &TWO].concat();
    let summary = Place::finish(place.fast(&arguments)).measured().json();
    assert_eq!(summary["failures"], Value::Array(Vec::new()));
    for row in summary["cells"].as_array().unwrap() {
        assert!(count(row, "ok") > 0, "{row}");
        for bad in ["miss", "error", "wrong", "lock_broken", "lock_timeouts"] {
            assert_eq!(count(row, bad), 0, "{bad} of {row}");
        }
        let clients = row["load"]["clients"].as_u64().unwrap();
        // The script ends by count: each operation runs once per session of each client.
        if row["workload"] == "maxcluster-2019" {
            assert_eq!(count(row, "ok"), 40 * clients, "{row}");
        }
        // Parallel requests of one visitor wait for each other, also in a fleet.
        if row["load"]["one_session"] == true && row["operation"] == "page.open" {
            assert!(count(row, "lock_waits") > 0, "{row}");
        }
    }
    let trials = place.record().trials();
    for target in ["files", "redis", "mysql"] {
        for (load, workers) in [("1", 1), ("8", 2), ("8-one", 1)] {
            for trial in trials_of(&trials, &format!("{target}/page/{load}")) {
                if trial["cell"].as_str().unwrap().ends_with(&format!("/{load}")) {
                    assert_divided(trial, workers);
                    assert_kept(trial);
                }
            }
        }
    }
    place.assert_nothing_left();
}

#[test]
fn workers_are_shops_of_their_own_in_an_application_cache() {
    if !installed(&["redis-server", "memcached"]) {
        return;
    }
    let place = Place::new();
    let targets = ["zend-file", "cm-redis", "two-levels-redis", "symfony-memcached"];
    let arguments: Vec<&str> = targets.iter().flat_map(|name| ["--target", name]).collect();
    let run = app_cache::small(&place, &[&arguments[..], &TWO, &["--seed", "5"]].concat());
    let summary = Place::finish(run).measured().json();
    assert_eq!(summary["failures"], Value::Array(Vec::new()));
    let lost = among(&summary["reasons"], |r| r.as_str().unwrap().contains("lost acknowledged"));
    assert!(lost.is_empty(), "{lost:?}");
    let trials = place.record().trials();
    for target in targets {
        let rows = among(&summary["cells"], |row| row["target"] == target);
        assert!(rows.iter().all(|row| count(row, "ok") > 0 && count(row, "wrong") == 0));
        for trial in trials_of(&trials, target) {
            assert_divided(trial, 2);
            let filled = &trial["fill"]["operations"][0]["counts"]["ok"];
            assert_eq!(filled, 300, "{target}");
            assert!(trial["read_back"]["read"].as_u64() > Some(0), "{trial}");
            assert_eq!(trial["read_back"]["wrong"], 0, "{trial}");
        }
    }
    place.assert_nothing_left();
}

#[test]
fn the_peak_of_all_workers_sets_the_rates_of_a_ramp() {
    if !installed(&["redis-server", "memcached", "mariadbd"]) {
        return;
    }
    let place = Place::new();
    let arguments = ["--target", "redis-mariadb", TWO[0], TWO[1]];
    let run = cache_aside::run(&place, "rising,stampede-lock", &arguments);
    let summary = Place::finish(run).measured().json();
    assert_eq!(summary["failures"], Value::Array(Vec::new()));
    let trials = place.record().trials();
    let rising = trials_of(&trials, "redis-mariadb/rising")[0];
    assert_divided(rising, 2);
    let points = rising["points"].as_array().unwrap();
    let rate = |point: &Value| {
        point["operations"].as_array().unwrap().last().unwrap()["rate_per_s"].as_f64().unwrap()
    };
    let peak = points.iter().find(|point| point["phase"] == "peak").unwrap();
    let stages: Vec<&Value> = points.iter().filter(|point| point["phase"] == "ramp").collect();
    assert_eq!(stages.len(), 6);
    for (stage, share) in stages.iter().zip([0.25, 0.5, 0.75, 1.0, 1.5, 2.0]) {
        let planned = |point: &Value| point["planned_per_s"].as_f64().unwrap();
        assert!((planned(stage) / rate(peak) / share - 1.0).abs() < 1e-6, "{stage}");
        for part in stage["contributors"].as_array().unwrap() {
            let half = planned(&part["point"]) / planned(stage);
            assert!((half - 0.5).abs() < 1e-6, "{stage}");
        }
    }
    // Only one process knows all expiries of a single row.
    assert_divided(trials_of(&trials, "redis-mariadb/stampede-lock")[0], 1);
    let row = among(&summary["cells"], |row| {
        row["workload"] == "stampede-lock" && row["operation"] == "read"
    });
    let per_expiry = row[0]["metrics"]["queries_per_expiry"]["center"].as_f64().unwrap();
    assert!((per_expiry - 1.0).abs() < 1e-9, "{per_expiry}");
    place.assert_nothing_left();
}

#[test]
fn keys_in_a_database_are_written_by_all_workers() {
    if !installed(&["mariadbd", "mariadb-install-db"]) {
        return;
    }
    let place = Place::new();
    let sets = "profile=stores memory=128MiB value_bytes=16384 measure_ms=300 clients=8 \
                blocks_max=1 blocks_min=1";
    let mut arguments = vec!["beyond-ram", "--scale", "quick", "--format", "json"];
    arguments.extend(sets.split_whitespace().flat_map(|set| ["--set", set]));
    arguments.extend(["--target", "mysql", TWO[0], TWO[1]]);
    let summary = Place::finish(place.run(&arguments)).json();
    if let Some(why) = summary["targets"][0]["not_run"].as_str() {
        skipped(why);
        return;
    }
    let trial = place.record().trials().remove(0);
    assert_divided(&trial, 2);
    for row in summary["cells"].as_array().unwrap() {
        assert!(count(row, "ok") > 0 && count(row, "wrong") + count(row, "miss") == 0, "{row}");
    }
    let unread = trial["read_back"]["unread"].as_str().unwrap();
    assert!(unread.contains("none knows the last write"), "{unread}");
    place.assert_nothing_left();
}

/// A run of sessions on an existing server, some seconds long, with its first measured writes.
fn sessions(place: &Place, server: &PortServer) -> Started {
    let url = format!("redis=redis://127.0.0.1:{}", server.port);
    let sets = "profile=steady sessions=400 clients=8 measure_ms=2000 blocks_max=1 blocks_min=1";
    let mut arguments = vec!["sessions", "--scale", "quick", "--format", "json", "--target", &url];
    arguments.extend(sets.split_whitespace().flat_map(|set| ["--set", set]));
    let started = Started::new(place.run(&[&arguments[..], &TWO].concat()));
    wait_until("the load runs", PATIENCE, || (server.calls("setex") > 2_000).then_some(()));
    started
}

#[test]
fn a_trial_with_blocking_clients_whose_worker_is_lost_is_measured_again() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let started = sessions(&place, &server);
    kill(Pid::from_raw(workers(&place)[1]), Signal::SIGKILL).unwrap();
    let summary = started.finish_within(PATIENCE).code(4).json();
    let failure = summary["reasons"].to_string();
    assert!(failure.contains("left the fleet") && failure.contains("worker "), "{failure}");
    wait_until("connections are closed", Duration::from_secs(5), || {
        (server.ask(&["CLIENT", "LIST"]).lines().count() == 1).then_some(())
    });
    assert_eq!(server.ask(&["DBSIZE"]).trim(), "0");
    let shown = place.on_records(&["show", "latest", "--format", "json"]).json();
    assert_eq!(shown["status"], "interrupted");
    let url = format!("redis=redis://127.0.0.1:{}", server.port);
    let resume = ["--resume", "latest", "--target", &url, TWO[0], TWO[1], "--format", "json"];
    let summary = Place::finish(place.run(&resume)).measured().json();
    assert_eq!((&summary["status"], &summary["blocks"]), (&"complete".into(), &1.into()));
    let footnotes = summary["footnotes"].to_string();
    assert!(footnotes.contains("1 of 1 trials was measured again"), "{footnotes}");
    assert!(footnotes.contains("resumed with new workers"), "{footnotes}");
    place.assert_nothing_left();
}

#[test]
fn an_interrupt_ends_workers_with_blocking_clients() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let started = sessions(&place, &server);
    started.signal(Signal::SIGINT);
    started.finish_within(PATIENCE).code(130);
    assert_eq!(server.ask(&["DBSIZE"]).trim(), "0");
    place.assert_nothing_left();
}

#[test]
fn workers_of_this_machine_run_its_files_and_private_servers() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let targets = ["--target", "files", "--target", "redis", "--set", "profile=steady"];
    let driver = Driver::of(&place, place.fast(&targets));
    let both = [driver.worker(&place), driver.worker(&place)];
    let finished = driver.started.finish_within(PATIENCE).measured();
    assert!(finished.stderr.contains("has joined (2 of 2)"), "{}", finished.stderr);
    let summary = finished.json();
    for target in ["files", "redis"] {
        assert!(among(&summary["cells"], |row| row["target"] == target).len() > 1, "{summary}");
    }
    let conditions = summary["conditions"].to_string();
    assert!(conditions.contains("CPUs of the workers"), "{conditions}");
    for worker in both {
        worker.finish_within(PATIENCE).code(0);
    }
    place.assert_nothing_left();
}
