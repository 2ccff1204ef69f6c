//! `bench`: custom key-value load on a real server.

use serde_json::Value;
use std::process::Command;

use super::common::{Place, RedisServer, among, count, installed, row};

/// A small `bench` with these arguments; prints the summary as JSON.
fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("bench").args(arguments);
    command.args(["--duration", "300ms", "--warmup", "50ms", "--blocks", "2", "--format", "json"]);
    command.args(["--keys", "500", "--clients", "4", "--verify", "1"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

fn good(row: &Value) {
    assert!(count(row, "ok") > 100, "{row}");
    for bad in ["error", "wrong", "miss"] {
        assert_eq!(count(row, bad), 0, "{bad} of {row}");
    }
}

#[test]
fn a_private_server_is_measured_and_leaves_nothing() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let arguments = ["redis", "--op", "get=0.8,set=0.2", "--pipeline", "8", "--value", "16-400"];
    let summary = Place::finish(bench(&place, &arguments)).measured().json();
    for operation in ["mixed", "mixed.get", "mixed.set"] {
        good(row(&summary, "redis", operation));
    }
    let get = row(&summary, "redis", "mixed.get");
    // Every value read was verified byte by byte, including those written during the run.
    assert_eq!(count(get, "verified"), count(get, "ok"));
    let load = serde_json::json!(
        {"arrivals": "closed", "schedule": {"steady": 4}, "clients": 4, "pipeline": 8,
         "one_session": false}
    );
    assert_eq!(get["load"], load);
    let both = count(get, "ok") + count(row(&summary, "redis", "mixed.set"), "ok");
    let share = count(get, "ok") as f64 / both as f64;
    assert!((0.77..0.83).contains(&share), "{share}");
    place.assert_nothing_left();
    place.on_records(&["show"]).measured();
}

#[test]
fn bytes_per_operation_include_request_and_reply() {
    for (server, target, reply) in [("redis-server", "redis", 1_033), ("memcached", "memcached", 0)]
    {
        if !installed(&[server, "setpriv"]) {
            continue;
        }
        let place = Place::new();
        let arguments = [target, "--op", "get", "--value", "1KiB", "--pipeline", "8"];
        let summary = Place::finish(bench(&place, &arguments)).measured().json();
        let get = row(&summary, target, "get");
        let metric = |name: &str| get["metrics"][name]["center"].as_f64().unwrap();
        let sent = metric("network_sent_bytes_per_op");
        let received = metric("network_received_bytes_per_op");
        // Length and line ends of RESP; name, flags and lines of memcached's text.
        let least = f64::from(if reply > 0 { reply } else { 1_024 + 20 });
        // Bytes are counted between samples, where the rate differs slightly from the phase's.
        assert!((0.8 * least..1.3 * least).contains(&sent), "{target}: {sent} of {least}");
        assert!((12.0..100.0).contains(&received), "{target}: {received}");
        let both = metric("network_bytes_per_op");
        assert!((both / (sent + received) - 1.0).abs() < 0.05, "{both}");
    }
}

#[test]
fn open_load_latency_counts_from_the_due_time() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let arguments = ["redis", "--op", "get=1", "--rate", "2000", "--even"];
    let summary = Place::finish(bench(&place, &arguments)).measured().json();
    let get = row(&summary, "redis", "get");
    good(get);
    // Requests due during the measurement in both blocks, plus earlier ones answered during it.
    assert!((1_200..1_300).contains(&count(get, "ok")), "{get}");
    for metric in ["lag_ns_p99", "response_ns_p99", "service_ns_p99"] {
        assert!(get["metrics"][metric]["center"].as_f64().unwrap() > 0.0, "{metric} of {get}");
    }
    let of = |metric: &str| get["metrics"][metric]["center"].as_f64().unwrap();
    assert!(of("response_ns_mean") >= of("service_ns_mean"), "{get}");
}

#[test]
fn a_run_on_an_existing_server_keeps_foreign_data() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::new();
    let url = format!("x={}", server.url());
    let place = Place::new();
    let summary = Place::finish(bench(&place, &[&url])).measured().json();
    good(row(&summary, "x", "mixed"));
    assert_eq!(server.keys(), [""; 0], "keys left in an empty database");

    server.ask(&["SET", "key:000000000001", "foreign"]);
    let place = Place::new();
    let refused = Place::finish(bench(&place, &[&url])).code(3).json();
    let targets = among(&refused["targets"], |t| t["name"] == "x");
    assert!(targets[0]["not_run"].as_str().unwrap().contains("--allow-shared"));
    let place = Place::new();
    let summary = Place::finish(bench(&place, &[&url, "--allow-shared"])).measured().json();
    good(row(&summary, "x", "mixed"));
    assert_eq!(server.keys(), ["key:000000000001"]);
    assert_eq!(server.ask(&["GET", "key:000000000001"]), "foreign");
}

#[test]
fn keys_without_a_fill_miss_as_planned() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let arguments = ["redis", "--op", "get=1", "--hit-ratio", "0.75"];
    let summary = Place::finish(bench(&place, &arguments)).measured().json();
    let get = row(&summary, "redis", "get");
    let (ok, miss) = (count(get, "ok") as f64, count(get, "miss") as f64);
    assert!((0.72..0.78).contains(&(ok / (ok + miss))), "{get}");
    assert_eq!((count(get, "wrong"), count(get, "error")), (0, 0));

    let place = Place::new();
    let command = ["redis", "--command", "HSET __key__ field __data__", "--no-fill"];
    let summary = Place::finish(bench(&place, &command)).measured().json();
    good(row(&summary, "redis", "hset"));
}

#[test]
fn invalid_arguments_are_refused_before_anything_starts() {
    let place = Place::new();
    for (arguments, parts) in [
        (&["files"][..], &["`files` is not a key-value server", "redis://"][..]),
        (&["redis", "redis"], &["`redis` is given twice"]),
        (&["redis", "--value", "x"], &["--value", "`x`", "1KiB"]),
        (&["redis", "--dist", "zipf:-1"], &["--dist", "zipf:0.99"]),
        (&["redis", "--op", "fly=1"], &["--op", "unknown operation `fly`", "get, set"]),
        (&["redis", "--command", "GET \"x"], &["--command", "quotation mark"]),
        (&["redis", "--hit-ratio", "2"], &["--hit-ratio `2`", "0 to 1"]),
        (&["redis", "--preset", "ycsb-e"], &["`ycsb-e`", "ycsb-a"]),
        (&["redis", "--ttl", "5ms"], &["--ttl `5ms` is too short"]),
        (&["redis", "--key-size", "3"], &["`3` bytes are too short", "500 keys"]),
        (&["redis", "--clients", "-1"], &["'-1' for '--clients"]),
        (
            &["redis", "--duration", "400d", "--blocks", "3"],
            &[
                "--duration 34560000 s",
                "times --blocks 3 and 1 target(s)",
                "`1200` days",
                "at most 30",
            ],
        ),
        (&["redis", "--warmup", "999d"], &["--warmup 86313600 s", "`4995` days"]),
        (
            &["redis", "--value", "512MiB", "--pipeline", "1000"],
            &["--clients 50 times --pipeline 1000 times 512 MiB", "`24.4 TiB` in flight", "memory"],
        ),
        (&["redis", "--pipeline", "99999", "--clients", "20000"], &["`1999980000` requests"]),
        (
            &["redis", "--threads", "60"],
            &["--threads `60` exceeds the number of clients", "at most 50"],
        ),
        (
            &["redis", "--threads", "3", "--client-stages", "1s:1-2"],
            &["--threads `3` exceeds the number of clients", "at most 2"],
        ),
        (
            &["redis", "--threads", "512", "--clients", "512"],
            &["--threads `512` exceeds the number of generator CPUs", "cachedyno doctor"],
        ),
    ] {
        let mut command = place.command();
        command.arg("bench").args(arguments).args(["--keys", "500"]);
        Place::finish(command).usage_error(parts);
    }
    let mut command = place.command();
    command.args(["bench", "redis", "--keys", "1000000000000", "--hit-ratio", "0.5"]);
    let parts =
        ["--keys 1000000000000 times --hit-ratio 0.5 times 1 KiB", "of filled data", "memory"];
    Place::finish(command).usage_error(&parts);
    assert_eq!(place.all_records().len(), 0);
    place.assert_nothing_left();
}
