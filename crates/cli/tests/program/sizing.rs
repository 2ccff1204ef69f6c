//! The study of sizing: private servers on ports, with TLS and without.

use std::os::unix::fs::symlink;

use serde_json::Value;

use super::common::{Place, among, count, installed, row, target};

#[test]
fn a_server_with_tls_is_measured_beside_one_without() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["run", "sizing", "--scale", "quick", "--budget", "1s", "--format", "json"]);
    command.args(["--set", "profile=printed-throughput,latency", "--set", "measure_ms=200"]);
    command.args(["--set", "keys=500", "--set", "rate=500", "--set", "blocks_min=1"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let summary = Place::finish(command).measured().json();
    for target in ["redis", "redis-tls"] {
        let rows = among(&summary["cells"], |row| row["target"] == target);
        assert_eq!(rows.len(), 3, "gets of one key, and gets and sets at a rate");
        assert!(rows.iter().all(|row| row["blocks"] == 1 && count(row, "ok") > 0), "{rows:?}");
    }
    let record = place.record();
    let planned = &record.header()["plan"]["targets"];
    let listens = |name: &str| {
        let mut all = planned.as_array().unwrap().iter();
        all.find(|target| target["name"] == name).unwrap()["settings"]["listen"].clone()
    };
    assert_eq!((listens("redis"), listens("redis-tls")), ("tcp".into(), "tls".into()));
    // Passwords and keys of the start are in no file of the record.
    for entry in std::fs::read_dir(&record.path).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(!text.contains("PRIVATE KEY") && !text.contains("requirepass"));
    }
    place.assert_nothing_left();
}

#[test]
fn a_wrong_way_to_listen_is_a_target_that_is_not_run() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["run", "sizing", "--scale", "quick", "--target", "redis", "--format", "json"]);
    command.args(["--set", "redis.listen=udp", "--set", "profile=latency"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let finished = Place::finish(command);
    let text = format!("{}{}", finished.stdout, finished.stderr);
    assert!(text.contains("`unix`, `tcp`, `tls` or `stunnel`"), "{text}");
    place.assert_nothing_left();
}

/// Runs the study at its smallest size on these targets and profiles.
fn run(place: &Place, targets: &[&str], profiles: &str) -> Value {
    let mut command = place.command();
    command.args(["run", "sizing", "--scale", "quick", "--budget", "1s", "--format", "json"]);
    command.args(["--set", "keys=6000", "--set", "measure_ms=300", "--set", "blocks_min=1"]);
    command.args(["--set", "clients=4", "--set", &format!("profile={profiles}")]);
    for target in targets {
        command.args(["--target", target]);
    }
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    Place::finish(command).measured().json()
}

/// Asserts that each request of a row was answered.
#[track_caller]
fn assert_good(row: &Value) {
    assert!(count(row, "ok") > 50 && count(row, "error") + count(row, "miss") == 0, "{row}");
}

fn center(row: &Value, metric: &str) -> f64 {
    row["metrics"][metric]["center"].as_f64().unwrap_or_else(|| panic!("no {metric}: {row}"))
}

#[test]
fn servers_behind_a_proxy_share_the_keys_and_the_proxy_is_accounted_for() {
    if !installed(&["redis-server", "nutcracker"]) {
        return;
    }
    let place = Place::new();
    let summary = run(&place, &["redis-3-proxied"], "shards");
    for operation in ["get", "set"] {
        let row = row(&summary, "redis-3-proxied", operation);
        assert_good(row);
        let [proxy, all] = ["proxy_cpus", "server_cpus"].map(|metric| center(row, metric));
        assert!(proxy > 0.0 && proxy < all, "{proxy} of {all}");
    }
    // The keys of all servers behind it are counted.
    let trial = place.record().trials().remove(0);
    let facts = trial["facts"].as_array().unwrap();
    assert!(facts.iter().any(|fact| fact["name"] == "bytes_per_key"), "{facts:?}");
    place.assert_nothing_left();
}

#[test]
fn handshakes_are_timed_with_tls_of_the_server_and_of_stunnel() {
    if !installed(&["redis-server", "stunnel4"]) {
        return;
    }
    let place = Place::new();
    let targets = ["redis", "redis-tls", "redis-stunnel"];
    let summary = run(&place, &targets, "tls,handshakes");
    let in_profile = |target: &str, profile: &str| {
        let is_own = |row: &Value| row["target"] == target && row["workload"] == profile;
        among(&summary["cells"], is_own)[0].clone()
    };
    for target in targets {
        assert_good(&in_profile(target, "tls"));
        let row = in_profile(target, "handshakes");
        assert_good(&row);
        assert_eq!(row["load"]["reconnects"], true);
        // The response time includes that of connecting, and the request's own.
        let [connect, service, response] = ["connect", "service", "response"]
            .map(|times| center(&row, &format!("{times}_ns_mean")));
        assert!(connect > 0.0 && (connect + service) / response < 1.1, "{row}");
        assert!(row["metrics"]["lag_ns_p50"].is_null(), "{row}");
    }
    let connect = |target: &str| center(&in_profile(target, "handshakes"), "connect_ns_p50");
    assert!(connect("redis-tls") > connect("redis"), "a handshake takes time");
    let proxies = |target: &str| in_profile(target, "tls")["metrics"]["proxy_cpus"].clone();
    assert!(proxies("redis-stunnel").is_object() && proxies("redis-tls").is_null());
    let shown = place.on_records(&["show", "--details"]).measured().stdout;
    assert!(shown.contains("connect p50"), "{shown}");
    place.assert_nothing_left();
}

#[test]
fn a_cluster_of_ours_uses_tls() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let summary = run(&place, &["redis-3-shards-tls"], "throughput");
    for operation in ["get", "set"] {
        assert_good(row(&summary, "redis-3-shards-tls", operation));
    }
    // Its servers have no port without TLS.
    let planned = &place.record().header()["plan"]["targets"];
    let is_own = |target: &Value| target["name"] == "redis-3-shards-tls";
    assert_eq!(among(planned, is_own)[0]["settings"]["listen"], "tls");
    place.assert_nothing_left();
}

#[test]
fn a_missing_proxy_is_a_target_that_is_not_run() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let programs = place.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let mut directories = std::env::split_paths(&path);
    let redis = directories.find(|d| d.join("redis-server").is_file()).unwrap();
    symlink(redis.join("redis-server"), programs.join("redis-server")).unwrap();
    let mut command = place.command();
    command.args(["run", "sizing", "--scale", "quick", "--budget", "1s", "--format", "json"]);
    command.args(["--set", "keys=500", "--set", "measure_ms=100", "--set", "blocks_min=1"]);
    command.args(["--set", "profile=tls", "--target", "redis", "--target", "redis-stunnel"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command.env("PATH", &programs);
    let summary = Place::finish(command).code(3).json();
    let why = target(&summary, "redis-stunnel")["not_run"].as_str().unwrap();
    assert!(why.ends_with("stunnel4 is not installed (apt-get install stunnel4)"), "{why}");
    assert_good(row(&summary, "redis", "get"));
    place.assert_nothing_left();
}

#[test]
fn settings_that_contradict_a_proxy_are_named() {
    let place = Place::new();
    for (sets, parts) in [
        (&["redis.proxy=nutcracker"][..], ["`proxy`", "`shards` as well"]),
        (&["redis.proxy=envoy", "redis.shards=1"], ["`proxy`", "`nutcracker`"]),
        (&["redis.listen=stunnel", "redis.replicas=1"], ["`replicas`", "before one server"]),
        (&["redis.listen=unix", "redis.shards=1"], ["`listen`", "`tcp` or `tls`"]),
    ] {
        let mut command = place.command();
        command.args(["bench", "redis", "--duration", "100ms", "--keys", "100"]);
        for set in sets {
            command.args(["--set", set]);
        }
        command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
        let finished = Place::finish(command);
        let text = format!("{}{}", finished.stdout, finished.stderr);
        for part in parts {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
    place.assert_nothing_left();
}
