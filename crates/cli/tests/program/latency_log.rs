//! `latency.hlog` of a record, read with an independent library.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

use super::common::{Place, count, installed, row, skipped};

/// Reads a log with the library of the web page's tests; `None` where that is not installed.
fn read(log: &Path) -> Option<Value> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    if !web.join("node_modules/hdr-histogram-js").is_dir() || !installed(&["node"]) {
        skipped("hdr-histogram-js is missing (make test installs it)");
        return None;
    }
    let mut node = Command::new("node");
    let done = node.arg(web.join("tests/read-hlog.mjs")).arg(log).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(serde_json::from_slice(&done.stdout).unwrap())
}

#[test]
fn other_tools_read_the_same_percentiles_from_the_log() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["bench", "redis", "--op", "get=0.5,set=0.5", "--rate", "3000", "--keys", "500"]);
    command.args(["--duration", "2500ms", "--warmup", "100ms", "--blocks", "1"]);
    command.args(["--clients", "4", "--format", "json"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let summary = Place::finish(command).measured().json();
    let record = place.record();
    let Some(log) = read(&record.path.join("latency.hlog")) else { return };
    assert_eq!(log.as_object().unwrap().len(), 4, "{log}");
    assert_percentiles(&record.trials()[0], "mixed");
    let started = record.header()["started_unix_ms"].as_f64().unwrap();
    for operation in ["get", "set"] {
        let of_summary = row(&summary, "redis", &format!("mixed.{operation}"));
        for time in ["service", "response"] {
            let tag = format!("redis/get=0.5;set=0.5/4:mixed:{operation}:{time}");
            let of_log = &log[&tag];
            let all = count(of_summary, "ok") + count(of_summary, "miss");
            assert_eq!(of_log["count"].as_u64(), Some(all), "{tag} of {log}");
            assert!((2..=3).contains(&of_log["intervals"].as_u64().unwrap()), "{log}");
            for quantile in ["p50", "p99", "p999"] {
                let ours = &of_summary["metrics"][format!("{time}_ns_{quantile}")]["center"];
                let theirs = of_log[quantile].as_f64().unwrap();
                let ratio = theirs / ours.as_f64().unwrap();
                // Both keep three digits but may report either end of the same step.
                assert!((0.998..1.002).contains(&ratio), "{tag} {quantile}: {theirs}, {ours}");
            }
            let (begun, ended) = (&of_log["begun_ms"], &of_log["ended_ms"]);
            let lasted = ended.as_f64().unwrap() - begun.as_f64().unwrap();
            assert!((2_400.0..10_000.0).contains(&lasted), "{lasted} ms");
            let since_start = begun.as_f64().unwrap() - started;
            assert!((0.0..60_000.0).contains(&since_start), "{since_start} ms");
        }
    }
}

/// A phase has its 99th percentile over time, in intervals within it.
fn assert_percentiles(trial: &Value, phase: &str) {
    let of_phase = |list: &str| {
        let mut all = trial[list].as_array().unwrap().iter();
        all.find(|one| one["phase"] == phase).unwrap().clone()
    };
    let p99: Vec<(u64, u64)> = serde_json::from_value(of_phase("series")["p99"].clone()).unwrap();
    let length_ns = of_phase("points")["length_ns"].as_u64().unwrap();
    assert!(p99.len() >= 3 && p99.iter().all(|(_, ns)| *ns > 0), "{p99:?}");
    assert!(p99.windows(2).all(|pair| pair[0].0 < pair[1].0), "{p99:?}");
    assert!(p99.last().unwrap().0 <= length_ns + 300_000_000, "{p99:?}, {length_ns} ns");
}

#[test]
fn blocking_clients_have_latencies_over_time_as_well() {
    let place = Place::new();
    let arguments = ["--set", "clients=2", "--set", "measure_ms=1200", "--target", "files"];
    let command = place.fast_at(&place.records(), &place.disk(), &arguments);
    Place::finish(command).measured();
    let record = place.record();
    let trial = &record.trials()[0];
    let phases: Vec<&str> =
        trial["points"].as_array().unwrap().iter().map(|p| p["phase"].as_str().unwrap()).collect();
    for phase in &phases {
        assert_percentiles(trial, phase);
    }
    let Some(log) = read(&record.path.join("latency.hlog")) else { return };
    for phase in phases {
        let tags = log.as_object().unwrap();
        let of_phase = |tag: &&String| tag.contains(&format!(":{phase}:"));
        assert!(tags.keys().any(|tag| of_phase(&tag)), "{phase}: {log}");
    }
}
