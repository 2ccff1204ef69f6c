//! Every profile on every store, and options that change a plan.

use serde_json::Value;

use super::common::{Place, among, count, installed, row};

fn rows<'a>(summary: &'a Value, target: &str, workload: &str) -> Vec<&'a Value> {
    let rows = among(&summary["cells"], |c| c["target"] == target && c["workload"] == workload);
    for row in &rows {
        assert!(count(row, "ok") > 0, "{row}");
        for bad in ["miss", "error", "wrong", "lock_broken", "lock_timeouts"] {
            assert_eq!(count(row, bad), 0, "{bad} of {row}");
        }
    }
    rows
}

fn operations(rows: &[&Value], clients: u64, one_session: bool) -> Vec<String> {
    let load = |row: &&&Value| {
        row["load"]["clients"] == clients && row["load"]["one_session"] == one_session
    };
    let of_load = rows.iter().filter(load);
    let mut names: Vec<_> = of_load.map(|r| r["operation"].as_str().unwrap().to_string()).collect();
    names.sort();
    names
}

#[test]
fn pages_and_the_2019_script_run_on_all_stores() {
    if !installed(&["redis-server", "mariadbd", "mariadb-install-db"]) {
        return;
    }
    let place = Place::new();
    // A long timeout, since other processes can stall the disk.
    let arguments = ["--set", "profile=page,maxcluster-2019", "--timeout", "60s"];
    let arguments = [&arguments[..], &["--set", "sessions=40"]].concat();
    let summary = Place::finish(place.fast(&arguments)).measured().json();
    assert_eq!(summary["failures"], Value::Array(Vec::new()));
    for target in ["files", "redis", "mysql"] {
        let pages = rows(&summary, target, "page");
        for (clients, one_session) in [(1, false), (8, false), (8, true)] {
            let names = operations(&pages, clients, one_session);
            assert_eq!(names, ["page", "page.close", "page.open"], "{target}, {clients} clients");
        }
        for page in &pages {
            let contended = page["load"]["one_session"] == true;
            let waits = count(page, "lock_waits");
            if contended && page["operation"] != "page.close" {
                assert!(waits > 0, "no client waited for the lock: {page}");
            }
            // With one client on MySQL, a stalled statement looks like a wait.
            if page["load"]["clients"] == 1 && target != "mysql" {
                assert_eq!(waits, 0, "a single client waited: {page}");
            }
        }
        let script = rows(&summary, target, "maxcluster-2019");
        for clients in [1, 8] {
            assert_eq!(operations(&script, clients, false), ["change", "read", "write"]);
        }
        // The script ends by count: each operation runs once per session of each client.
        for row in &script {
            assert_eq!(count(row, "ok"), 40 * row["load"]["clients"].as_u64().unwrap(), "{row}");
        }
    }
    place.assert_nothing_left();
}

#[test]
fn expired_sessions_are_deleted_within_requests() {
    if !installed(&["redis-server", "mariadbd", "mariadb-install-db"]) {
        return;
    }
    let place = Place::new();
    let sets = ["profile=gc", "clients=2", "think_ms=0", "gc_divisor=20", "measure_ms=250"];
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let expiring = ["--set", "gc_maxlifetime_s=20", "--timeout", "60s"];
    let targets = ["files", "redis", "mysql", "sqlite"].map(|target| ["--target", target]);
    let arguments: Vec<&str> = sets.chain(expiring).chain(targets.concat()).collect();
    let summary = Place::finish(place.fast(&arguments)).measured().json();
    assert_eq!(summary["failures"], Value::Array(Vec::new()));
    for target in ["files", "redis", "mysql", "sqlite"] {
        let names = operations(&rows(&summary, target, "gc"), 2, false);
        let mut expected: Vec<String> = ["with-gc", "without-gc"]
            .iter()
            .flat_map(|phase| ["", ".open", ".close"].map(|call| [*phase, call].concat()))
            .collect();
        if target != "redis" {
            expected.push("with-gc.gc".into());
        }
        expected.sort();
        assert_eq!(names, expected, "{target}");
        let [deletion] = &among(&summary["deletions"], |d| d["target"] == target)[..] else {
            panic!("{}", summary["deletions"]);
        };
        let deleted = |phase: &str| deletion[phase]["deleted"].as_u64();
        assert!(deleted("with") > Some(0), "{deletion}");
        let by_handler = target != "redis";
        assert_eq!(deletion["by_handler"], by_handler);
        assert_eq!(deletion["collections"].as_u64() > Some(0), by_handler, "{deletion}");
        // A server expires sessions in both phases.
        assert_eq!(deleted("without") > Some(0), !by_handler, "{deletion}");
        for ratio in ["rate_ratio", "p99_ratio"] {
            assert!(deletion[ratio]["center"].as_f64() > Some(0.0), "{deletion}");
        }
        let sizes = among(&summary["facts"], |fact| {
            fact["target"] == target && fact["name"].as_str().unwrap().starts_with("session_")
        });
        let mut names: Vec<&str> =
            sizes.iter().map(|fact| fact["name"].as_str().unwrap()).collect();
        let [memory, resident, disk] =
            ["memory", "resident", "disk"].map(|of| format!("session_{of}_bytes"));
        let of_target = match target {
            "redis" => vec![memory, resident],
            "mysql" => vec![disk, resident],
            _ => vec![disk],
        };
        names.sort_unstable();
        assert_eq!(names, of_target, "{target}");
        for size in sizes {
            // Values have 1,500 bytes; 200 sessions are few for a table's file.
            let bytes = size["value"]["center"].as_f64().unwrap();
            let least = if size["name"] == "session_resident_bytes" { 1.0 } else { 1_500.0 };
            assert!((least..200_000.0).contains(&bytes), "{size}");
        }
    }
    for trial in place.record().trials() {
        let with = among(&trial["points"], |point| point["phase"] == "with-gc");
        let gc = among(&with[0]["operations"], |operation| operation["operation"] == "gc");
        let is_redis = trial["cell"].as_str().unwrap().starts_with("redis/");
        assert_eq!(gc.iter().any(|gc| count(gc, "deleted") > 0), !is_redis, "{trial}");
    }
    place.assert_nothing_left();
}

#[test]
fn drawing_values_inside_the_timed_span_is_recorded_and_noted() {
    let place = Place::new();
    let arguments = ["--set", "clients=1", "--target", "files", "--set", "generation=inside"];
    let summary = Place::finish(place.fast(&arguments)).measured().json();
    assert_eq!(summary["generation"]["steady"], "inside");
    let noted = among(&summary["footnotes"], |n| {
        n.as_str().unwrap().contains("values are drawn inside the timed span")
    });
    assert_eq!(noted.len(), 1, "{}", summary["footnotes"]);
    assert_eq!(place.record().header()["plan"]["cells"][0]["workload"]["generation"], "inside");
    let write = row(&summary, "files", "write");
    let p50 = |name: &str| write["metrics"][name]["center"].as_f64().unwrap();
    assert!(p50("response_ns_p50") > p50("service_ns_p50"), "{write}");
}

#[test]
fn the_aa_control_measures_one_target_twice() {
    let place = Place::new();
    let arguments = ["--set", "clients=1", "--target", "files", "--aa"];
    let blocks = ["--set", "blocks_min=2", "--set", "blocks_max=2"];
    let summary = Place::finish(place.fast(&[&arguments[..], &blocks].concat())).measured().json();
    let control = super::common::target(&summary, "files-again");
    assert_eq!(control["control_of"], "files");
    assert_eq!(row(&summary, "files-again", "read")["blocks"], 2);
    let pairs = among(&summary["comparisons"], |c| {
        [&c["a"], &c["b"]].iter().any(|side| **side == "files-again")
    });
    assert!(!pairs.is_empty(), "{}", summary["comparisons"]);
}

#[test]
fn a_seed_reproduces_its_plan_and_another_does_not() {
    let plan = |seed: Option<&str>| {
        let place = Place::new();
        let blocks = ["--set", "blocks_min=2", "--set", "blocks_max=2", "--set", "clients=1,2,3"];
        let seed = seed.map_or(Vec::new(), |seed| vec!["--seed", seed]);
        let fast = ["--target", "files", "--set", "measure_ms=10"];
        let arguments = [&blocks[..], &fast, &seed].concat();
        Place::finish(place.fast(&arguments)).measured();
        let record = place.record();
        let order: Vec<String> =
            record.trials().iter().map(|t| t["cell"].as_str().unwrap().into()).collect();
        (record.header()["plan"].clone(), order)
    };
    let (first, second, other) = (plan(Some("4711")), plan(Some("4711")), plan(Some("4712")));
    assert_eq!(first, second);
    assert_eq!(first.0["seed"], 4711);
    assert_ne!(first.1, other.1, "these two seeds are known to give other orders");
    let (drawn, again) = (plan(None), plan(None));
    assert_ne!(drawn.0["seed"], again.0["seed"]);
}
