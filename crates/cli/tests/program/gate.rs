//! Features for automation: requirements, failing comparisons, and test cases.

use std::process::Command;

use serde_json::Value;

use super::common::{Place, count, installed, row};

/// A small `bench` of a private Redis with these arguments.
fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.args(["bench", "redis", "--keys", "500", "--clients", "4", "--warmup", "50ms"]);
    command.args(["--blocks", "3"]).args(arguments);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

#[test]
fn requirements_are_checked_per_row_and_set_the_exit_code() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let limits = ["p50<1ns", "max<1h", "error<1%", "rate>1"];
    let required = limits.iter().flat_map(|limit| ["--require", limit]);
    let arguments: Vec<&str> = ["--duration", "800ms"].into_iter().chain(required).collect();
    let finished = Place::finish(bench(&place, &arguments));
    // A run that is INVALID or NOT-STEADY yields no decision.
    assert!(matches!(finished.code, Some(4 | 5)), "{finished:?}");
    assert!(finished.stdout.contains("p50 < 1 ns: missed"), "{finished:?}");
    assert!(finished.stdout.contains("rate > 1.00 /s: met"), "{finished:?}");
    let summary = place.on_records(&["show", "--format", "json"]).code(0).json();
    let decides = ["valid", "unreplicated"].map(Value::from).contains(&summary["validity"]);
    assert_eq!(finished.code == Some(5), decides, "{finished:?}");
    let mixed = row(&summary, "redis", "mixed");
    let met: Vec<_> = mixed["required"].as_array().unwrap().iter().map(|r| &r["is_met"]).collect();
    assert_eq!(met, [false, true, true, true]);
    assert!(row(&summary, "redis", "mixed.get").get("required").is_none());
    let cases = place.on_records(&["show", "--format", "junit"]).code(0).stdout;
    assert!(cases.contains("name=\"p50 &lt; 1 ns: mixed of redis, "), "{cases}");
    assert!(cases.contains("<testcase classname=\"cachedyno.requirement\""), "{cases}");
}

#[test]
fn each_block_sends_the_requested_number_of_requests() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let arguments = ["-n", "2k", "--format", "json", "--verify", "1"];
    let summary = Place::finish(bench(&place, &arguments)).measured().json();
    assert_eq!(count(row(&summary, "redis", "mixed"), "ok"), 3 * 2_000);
    let both = bench(&place, &["-n", "2k", "--rate", "1k"]);
    Place::finish(both).code(2);
}

#[test]
fn a_run_is_not_slower_than_itself() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let summary =
        Place::finish(bench(&place, &["--duration", "800ms", "--format", "json"])).measured();
    let code = if summary.json()["validity"] == "valid" { 0 } else { 4 };
    let arguments = ["compare", "latest", "latest", "--fail-on", "slower"];
    let compared = place.on_records(&arguments).code(code);
    assert!(compared.stderr.contains("--fail-on: "), "{compared:?}");
    let cases = place.on_records(&["compare", "latest", "latest", "--format", "junit"]).code(0);
    assert!(cases.stdout.contains("classname=\"cachedyno.compare\""), "{cases:?}");
}

#[test]
fn invalid_requirements_are_reported() {
    let place = Place::new();
    for (arguments, expected) in [
        (["bench", "redis", "--require", "p99"], ["--require", "has no `<`"]),
        (["run", "ramp", "--require", "p99<1ms"], ["searches for a limit", "find-max"]),
    ] {
        let mut command = place.command();
        command.args(arguments);
        Place::finish(command).usage_error(&expected);
    }
}
