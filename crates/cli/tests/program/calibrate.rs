//! `calibrate`: measures the machine and saves the result for later runs.

use serde_json::Value;
use std::fs;
use std::process::Command;

use super::common::{Finished, Place, among, installed, row};

fn calibrate(place: &Place, arguments: &[&str]) -> Finished {
    let mut command = place.command();
    command.args(["calibrate", "--seconds", "0.05"]).args(arguments);
    command.arg("--out").arg(place.records());
    Place::finish(command)
}

/// `bench` of a private server, small.
fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.args(["bench", "redis", "--duration", "200ms", "--warmup", "20ms", "--blocks", "1"]);
    command.args(["--keys", "200", "--clients", "4"]).args(arguments);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// Header of the newest record.
fn header(place: &Place) -> Value {
    let records = place.all_records().into_iter().filter(|path| path.is_dir());
    let latest = records.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
    let text = fs::read(latest.unwrap().join("header.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Asserts that the percentiles are ascending.
fn assert_ascending(late: &Value) {
    let points = ["ns_p50", "ns_p99", "ns_p999", "ns_max"].map(|name| number(&late[name]));
    assert!(points.is_sorted() && points[3] > 0.0, "{late}");
}

#[test]
fn results_are_plausible_and_saved() {
    let place = Place::new();
    let found = calibrate(&place, &["--format", "json"]).code(0).json();
    let shapes = found["shapes"].as_array().unwrap();
    assert_eq!(shapes.len(), 12);
    for shape in shapes {
        for cost in [&shape["engine"], &shape["bare"]] {
            assert!(number(&cost["rate_per_s"]) > 0.0, "{shape}");
            let each = number(&cost["user_ns_per_op"]) + number(&cost["system_ns_per_op"]);
            assert!(each > 0.0, "{shape}");
        }
        assert!(number(&shape["engine_to_bare"]) > 0.0, "{shape}");
    }
    for socket in ["unix", "tcp"] {
        assert_eq!(among(&found["shapes"], |s| s["socket"] == socket).len(), 6);
    }
    assert!(number(&found["clock"]["reading_ns"]) > 0.0, "{found}");
    assert!((0.0..=1.0).contains(&number(&found["pauses"]["share_over_1ms"])), "{found}");
    assert!(number(&found["load"]["rate_per_s"]) > 0.0, "{found}");
    assert_ascending(&found["timer"]);
    assert_ascending(&found["load"]["lag"]);
    let kept = fs::read(place.records().join("calibration.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), found);
    place.assert_nothing_left();
}

#[test]
fn a_later_run_records_the_calibration_and_the_null_rate() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let text = Place::finish(bench(&place, &["--op", "get=1"])).measured();
    assert!(text.stderr.contains("not calibrated; run `cachedyno calibrate`"), "{text:#?}");
    assert!(header(&place)["calibration"].is_null());
    let text = calibrate(&place, &[]).code(0);
    assert!(text.stdout.contains("This machine can judge servers of up to "), "{text:#?}");
    assert!(text.stdout.contains("saved for later runs: "), "{text:#?}");

    let summary = Place::finish(bench(&place, &["--value", "10-200", "--format", "json"]));
    let summary = summary.measured().json();
    let header = header(&place);
    let kept = fs::read(place.records().join("calibration.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!((&header["calibration"], &summary["calibration"]), (&kept, &kept));
    let rates = header["null_rates"].as_array().unwrap();
    assert_eq!(rates.len(), 1, "{rates:?}");
    assert_eq!(rates[0]["phase"], "mixed");
    assert!(number(&rates[0]["rate_per_s"]) > 0.0);
    let mixed = row(&summary, "redis", "mixed");
    // If the store was nearly as fast, the null rate is measured again, and the higher one counts.
    let null_rate = number(&mixed["metrics"]["null_rate_per_s"]["center"]);
    assert!(null_rate >= number(&rates[0]["rate_per_s"]), "{null_rate}");
    place.assert_nothing_left();
}

#[test]
fn a_command_unknown_to_the_null_server_is_not_checked() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let command = ["--command", "OBJECT HELP", "--format", "json"];
    let summary = Place::finish(bench(&place, &command)).measured().json();
    let rates = &header(&place)["null_rates"];
    assert_eq!(rates[0]["not_checked"], "unknown command", "{rates}");
    let notes = among(&summary["footnotes"], |note| {
        note.as_str().is_some_and(|n| n.contains("not checked against the null server: unknown"))
    });
    assert_eq!(notes.len(), 1, "{}", summary["footnotes"]);
}

#[test]
fn a_damaged_or_foreign_calibration_is_not_used() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let mut found = calibrate(&place, &["--format", "json"]).code(0).json();
    let path = place.records().join("calibration.json");
    found["host"]["cpu"] = "another CPU".into();
    let mut newer = found.clone();
    newer["format"] = 2.into();
    for (text, reason) in [
        (found.to_string(), "another host: CPU `another CPU`, not `"),
        (newer.to_string(), "has format 2"),
        ("{\"format\":1,".into(), "damaged"),
        (String::new(), "damaged"),
    ] {
        fs::write(&path, text).unwrap();
        let finished = Place::finish(bench(&place, &[])).measured();
        let warned = finished.stderr.lines().find(|l| l.starts_with("warning: "));
        let warned = warned.unwrap_or_else(|| panic!("{finished:#?}"));
        for part in ["calibration.json", "is not used", reason, "`cachedyno calibrate` again"] {
            assert!(warned.contains(part), "no `{part}` in {warned}");
        }
        assert!(header(&place)["calibration"].is_null());
    }
    let quiet = Place::finish(bench(&place, &["--quiet"])).measured();
    assert_eq!(quiet.stderr, "");
}

#[test]
fn impossible_calibrations_are_refused_at_once() {
    let place = Place::new();
    for seconds in ["0", "-1", "nan", "1e9"] {
        let mut command = place.command();
        command.args(["calibrate", &format!("--seconds={seconds}")]);
        Place::finish(command).usage_error(&["--seconds `", "expected 0.01 to 600"]);
    }
    let file = place.write("file", "");
    let mut command = place.command();
    command.arg("calibrate").arg("--out").arg(file);
    Place::finish(command).code(1).error(&["--out `", "cannot be written"]);
    assert_eq!(place.all_records().len(), 0);
}
