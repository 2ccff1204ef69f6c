//! The ramp study, which raises the load until stores are saturated, on real servers.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::common::{Place, RedisServer, Started, among, child_named, installed, wait_until};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Settings for one block with stages of a fraction of a second.
const FAST: [&str; 19] = [
    "ramp",
    "--scale",
    "quick",
    "--format",
    "json",
    "--set",
    "stage_ms=120",
    "--set",
    "measure_ms=150",
    "--set",
    "warmup_ms=20",
    "--set",
    "blocks_min=1",
    "--set",
    "blocks_max=1",
    "--set",
    "keys=20000",
    "--set",
    "verify_one_in=1",
];

fn tools() -> bool {
    installed(&["redis-server", "redis-cli", "memcached", "setpriv"])
}

fn small(place: &Place, arguments: &[&str]) -> Command {
    place.run(&[&FAST[..], arguments].concat())
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// The only point of a trial's phase without stages.
fn phase<'a>(trial: &'a Value, name: &str) -> &'a Value {
    let found = among(&trial["points"], |p| p["phase"] == name);
    assert_eq!(found.len(), 1, "points of phase {name} of {}", trial["cell"]);
    assert!(found[0]["stage"].is_null(), "{name} has stages");
    found[0]
}

/// The stages of a trial's ramp.
fn stages_of(trial: &Value) -> Vec<Value> {
    let found = among(&trial["points"], |p| p["phase"] == "ramp");
    found.into_iter().cloned().collect()
}

fn operation<'a>(of: &'a Value, name: &str) -> &'a Value {
    let found = among(&of["operations"], |o| o["operation"] == name);
    assert_eq!(found.len(), 1, "operations {name} of stage {}", of["stage"]);
    found[0]
}

fn counted(operation: &Value, name: &str) -> u64 {
    operation["counts"][name].as_u64().unwrap()
}

/// Asserts that the operations of a stage add up to its total row. An operation without a due
/// request has no row.
fn assert_adds_up(stage: &Value) {
    let both = operation(stage, "ramp");
    let all = list(&stage["operations"]);
    let single = || all.iter().filter(|o| o["operation"] != "ramp");
    assert!(single().all(|o| o["operation"] == "set" || o["operation"] == "get"), "{stage}");
    for kind in ["ok", "miss", "error", "wrong"] {
        let sum: u64 = single().map(|o| counted(o, kind)).sum();
        assert_eq!(sum, counted(both, kind), "{kind} in stage {}", stage["stage"]);
    }
    assert_eq!(counted(both, "wrong"), 0, "{both}");
    // All values read were verified byte by byte.
    let gets = single().filter(|o| o["operation"] == "get");
    gets.for_each(|get| assert_eq!(counted(get, "verified"), counted(get, "ok"), "{get}"));
}

/// Asserts that the control phases of a trial ran: every operation found its key, each phase has
/// both operations, and pairs have as many sets as gets.
fn assert_controls(trial: &Value) {
    for name in ["pair", "swapped", "apart"] {
        let all = phase(trial, name);
        let ok = |operation_name: &str| counted(operation(all, operation_name), "ok");
        let (set, get) = (ok("set"), ok("get"));
        assert!(set > 0 && get > 0, "{name}: {set} and {get}");
        let whole = operation(all, name);
        assert_eq!((counted(whole, "miss"), counted(whole, "wrong")), (0, 0), "{whole}");
        assert_eq!(counted(whole, "ok"), set + get);
        // At each end of the measurement, at most one pair per client is only half counted.
        let most = if name == "apart" { u64::MAX } else { 128 };
        assert!(set.abs_diff(get) <= most, "{name}: {set} and {get}");
        let order: Vec<_> = list(&all["operations"]).iter().map(|o| &o["operation"]).collect();
        let first = if name == "swapped" { "get" } else { "set" };
        assert_eq!((order.len(), order[0].as_str()), (3, Some(first)));
    }
}

/// Asserts that both operations succeeded in at least one stage.
fn assert_both_succeeded(stages: &[Value]) {
    for name in ["set", "get"] {
        let of_stages = stages.iter().flat_map(|stage| list(&stage["operations"]));
        let ok: u64 = of_stages.filter(|o| o["operation"] == name).map(|o| counted(o, "ok")).sum();
        assert!(ok > 0, "no {name} in any stage");
    }
}

#[test]
fn rates_are_shares_of_each_stores_peak() {
    if !tools() {
        return;
    }
    let place = Place::new();
    Place::finish(small(&place, &["--seed", "5"])).measured();
    let (header, trials) = (place.record().header(), place.record().trials());
    let shares = header["plan"]["cells"][0]["load"]["schedule"]["shares"]["permille"].clone();
    let shares: Vec<f64> = list(&shares).iter().map(|s| s.as_f64().unwrap()).collect();
    assert_eq!((trials.len(), shares.len()), (2, 31));
    for trial in &trials {
        assert!(trial["failure"].is_null(), "{}", trial["failure"]);
        assert_controls(trial);
        let peak = phase(trial, "peak");
        let peak_per_s = operation(peak, "peak")["rate_per_s"].as_f64().unwrap();
        // The share applies to operations, not to pairs.
        for name in ["pair", "swapped", "apart"] {
            let ok = counted(operation(phase(trial, name), name), "ok") as f64;
            let due = 0.25 * peak_per_s * 0.12;
            assert!((ok - due).abs() < 12.0 * due.sqrt() + due * 0.02, "{name}: {ok} of {due}");
        }
        let stages = stages_of(trial);
        assert_eq!(stages.len(), shares.len());
        let started_ns = |stage: &Value| stage["begun_ns"].as_u64().unwrap();
        for ((number, stage), share) in stages.iter().enumerate().zip(&shares) {
            assert_adds_up(stage);
            assert_eq!(stage["stage"], number);
            assert_eq!(stage["length_ns"], 96_000_000);
            assert_eq!(started_ns(stage) - started_ns(&stages[0]), 120_000_000 * number as u64);
            let planned = stage["planned_per_s"].as_f64().unwrap();
            assert!((planned - share * peak_per_s / 1e3).abs() < 1.0, "{planned} of {peak_per_s}");
        }
        assert_both_succeeded(&stages);
        // On a busy machine a single stage can lack CPU time of server or generator.
        for name in ["server_cpu_ns", "generator_cpu_ns"] {
            let in_all: u64 = stages.iter().map(|stage| stage[name].as_u64().unwrap()).sum();
            assert!(in_all > 0, "{name} of {}", trial["cell"]);
        }
        // Every planned operation is answered, even if late; allows 9 standard deviations plus 2 %.
        let due: f64 = stages.iter().map(|s| s["planned_per_s"].as_f64().unwrap() * 0.096).sum();
        let ended = |stage: &Value| counted(operation(stage, "ramp"), "ok");
        let ok: u64 = stages.iter().map(ended).sum();
        assert!((ok as f64 - due).abs() < 9.0 * due.sqrt() + due * 0.02, "{ok} of {due}");
    }
    place.assert_nothing_left();
}

#[test]
fn effects_of_place_and_operation_are_separated() {
    if !tools() {
        return;
    }
    let place = Place::new();
    let sets = ["--target", "redis", "--set", "blocks_min=3", "--set", "blocks_max=3"];
    let summary =
        Place::finish(small(&place, &[&sets[..], &["--set", "rates=2000"]].concat())).json();
    let place_row = &summary["ramps"][0]["place"];
    assert_eq!(
        (&place_row["blocks"], &place_row["doubt"]),
        (&Value::from(3), &Value::Null),
        "{place_row}"
    );
    let ratio = |name: &str| place_row["metrics"][name]["center"].as_f64().unwrap();
    for name in ["first_by_second", "set_by_get.apart", "set_by_get.both_orders"] {
        assert!(ratio(&format!("{name}.ns_p99")) > 0.0 && ratio(&format!("{name}.ns_p50")) > 0.0);
    }
    let time = |place: &str| ratio(&format!("{place}.ns_p50"));
    let square = time("set.first") / time("set.second") * (time("get.first") / time("get.second"));
    let off = ratio("first_by_second.ns_p50") / square.sqrt();
    assert!((0.9..1.1).contains(&off), "{place_row}");
    let claims = among(&summary["claims"], |claim| claim["id"] == "set-slower-than-get");
    assert_eq!(claims[0]["verdict"], "not run", "memcached is missing: {}", claims[0]);
    place.assert_nothing_left();
}

#[test]
fn the_published_ramp_adds_clients_that_pause() {
    if !tools() {
        return;
    }
    let place = Place::new();
    let sets = ["--set", "profile=putra-2024", "--set", "stages=3", "--set", "step=1"];
    Place::finish(small(&place, &sets)).measured();
    for trial in place.record().trials() {
        assert!(trial["failure"].is_null(), "{}", trial["failure"]);
        assert_controls(&trial);
        let stages = stages_of(&trial);
        assert_eq!(list(&trial["points"]).len(), 3 + stages.len());
        let clients: Vec<_> = stages.iter().map(|s| s["clients"].as_u64().unwrap()).collect();
        assert_eq!(clients, [20, 40, 60]);
        for stage in &stages {
            assert_adds_up(stage);
            assert!(stage["planned_per_s"].is_null());
            // A pause of 24.5 ms on average precedes each pair; allows 9 standard deviations.
            let most = stage["clients"].as_f64().unwrap() * 0.096 / 0.0245;
            let pairs = counted(operation(stage, "ramp"), "ok") as f64 / 2.0;
            assert!(pairs < most + 9.0 * most.sqrt(), "{pairs} of {most}");
        }
        assert_both_succeeded(&stages);
    }
    place.assert_nothing_left();
}

#[test]
fn given_rates_are_planned_up_and_down() {
    if !tools() {
        return;
    }
    let place = Place::new();
    let sets =
        ["--target", "memcached-2", "--set", "rates=500,2000,4000", "--set", "value_bytes=64"];
    Place::finish(small(&place, &sets)).measured();
    let trial = place.record().trials().remove(0);
    let stages = stages_of(&trial);
    let planned: Vec<_> = stages.iter().map(|s| s["planned_per_s"].as_f64().unwrap()).collect();
    assert_eq!(planned, [500.0, 2000.0, 4000.0, 2000.0, 500.0]);
    let threads = &place.record().header()["plan"]["targets"][0]["settings"]["threads"];
    assert_eq!(threads, "2");
    let one = place.on_records(&["compare", "latest", "latest"]);
    one.usage_error(&["has 1 block and cannot be compared", "3 or more", "--blocks 3"]);
}

/// Starts a ramp on an existing server as target `mine`; returns it with the keys written so far.
fn start_and_wait_for_keys(place: &Place, server: &RedisServer) -> (Started, Vec<String>) {
    let target = format!("--target=mine={}", server.url());
    let run =
        Started::new(small(place, &[&target, "--set", "rates=2000", "--set", "stage_ms=900"]));
    let names = wait_until("keys are written", Duration::from_secs(60), || {
        let keys = server.keys();
        (keys.len() > 50).then_some(keys)
    });
    (run, names)
}

#[test]
fn keys_in_an_existing_store_are_unique_to_the_run_and_removed() {
    if !tools() {
        return;
    }
    let (place, server) = (Place::new(), RedisServer::new());
    let (run, names) = start_and_wait_for_keys(&place, &server);
    let uuid = |key: &String| {
        let own = key.strip_prefix("cachedyno-").and_then(|k| k.split_once('-'));
        own.is_some_and(|(run, uuid)| run.len() == 8 && uuid.len() == 36)
    };
    assert!(names.iter().all(uuid), "{:?}", &names[..2]);
    run.finish_within(PATIENCE).measured();
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn results_are_kept_if_keys_cannot_be_removed() {
    if !tools() {
        return;
    }
    let (place, server) = (Place::new(), RedisServer::new());
    let (run, _) = start_and_wait_for_keys(&place, &server);
    server.ask(&["ACL", "SETUSER", "default", "-unlink", "-del"]);
    let finished = run.finish_within(PATIENCE);
    let summary = finished.json();
    assert_eq!(summary["failures"], serde_json::json!([]), "{}", finished.stderr);
    let ramp = &summary["ramps"][0];
    assert!(ramp["metrics"]["knee_per_s"]["center"].as_f64().unwrap() > 1_000.0, "{ramp}");
    let notes = summary["footnotes"].to_string();
    let left = "in block 1: denied: this run's data is still in the store, remove all names \
        that start with `cachedyno-";
    assert!(notes.contains("mine/open/64") && notes.contains(left), "{notes}");
    assert!(!server.keys().is_empty());
}

#[test]
fn stages_before_a_server_dies_are_kept() {
    if !tools() {
        return;
    }
    let place = Place::new();
    let sets = ["--target", "redis", "--set", "stage_ms=300", "--timeout", "400ms"];
    let run = Started::new(small(&place, &sets));
    // The first server is only checked. Some seconds later, the second one has finished peak and
    // controls and is in its ramp.
    let server = |not: Option<u32>| {
        wait_until("a server runs", Duration::from_secs(60), || {
            child_named(run.pid(), "redis-server").filter(|pid| Some(*pid) != not)
        })
    };
    let checked = server(None);
    wait_until("the check is over", Duration::from_secs(60), || {
        (child_named(run.pid(), "redis-server") != Some(checked)).then_some(())
    });
    let measured = server(Some(checked));
    std::thread::sleep(Duration::from_secs(5));
    kill(Pid::from_raw(measured.cast_signed()), Signal::SIGKILL).unwrap();
    let summary = run.finish_within(PATIENCE).code(4).json();
    let trial = place.record().trials().remove(0);
    let reason = trial["failure"]["message"].as_str().unwrap();
    assert!(reason.starts_with("the server died"), "{reason}");
    assert_eq!(among(&summary["failures"], |_| true).len(), 1, "{}", summary["failures"]);
    let stages = stages_of(&trial);
    assert!((1..29).contains(&stages.len()), "{} stages", stages.len());
    stages.iter().for_each(assert_adds_up);
    place.assert_nothing_left();
}

#[test]
fn a_server_out_of_connections_fails_its_trial_with_its_message() {
    if !tools() {
        return;
    }
    let place = Place::new();
    let sets = ["--target", "redis", "--set", "redis.maxclients=20", "--set", "clients=40"];
    let summary = Place::finish(small(&place, &sets)).code(4).json();
    let failures = among(&summary["failures"], |_| true);
    assert_eq!(failures.len(), 1, "{}", summary["failures"]);
    let reason = failures[0]["reason"].as_str().unwrap();
    assert!(reason.contains("max number of clients reached"), "{reason}");
    place.assert_nothing_left();
}

#[test]
fn too_many_threads_are_refused_before_anything_starts() {
    let place = Place::new();
    for (sets, part) in [
        (["threads=500", "clients=20,400"], "exceeds the number of clients (expected at most 400"),
        (["threads=500", "clients=20,500"], "exceeds the number of generator CPUs"),
        (["threads=500", "profile=putra-2024"], "exceeds the number of generator CPUs"),
    ] {
        let sets = ["--target", "redis", "--set", sets[0], "--set", sets[1]];
        Place::finish(small(&place, &sets)).usage_error(&["--set threads `500`", part]);
    }
    assert!(!place.records().exists());
    place.assert_nothing_left();
}

#[test]
fn evicted_keys_are_misses_and_not_errors() {
    if !tools() {
        return;
    }
    let place = Place::new();
    let sets = [
        "--target=redis",
        "--set=redis.maxmemory=4mb",
        "--set=redis.maxmemory-policy=allkeys-random",
        "--set=value_bytes=4096",
        "--set=order=up",
    ];
    Place::finish(small(&place, &sets)).measured();
    let trial = place.record().trials().remove(0);
    assert!(trial["failure"].is_null(), "{}", trial["failure"]);
    let stages = stages_of(&trial);
    let counted = |kind: &str| -> u64 {
        stages.iter().map(|stage| counted(operation(stage, "ramp"), kind)).sum()
    };
    assert!(counted("miss") > 0, "{trial}");
    assert_eq!((counted("error"), counted("wrong")), (0, 0), "{trial}");
}
