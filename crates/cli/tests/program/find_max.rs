//! `find-max`: its result, curve and record, and every case without a result. The only assertions
//! on rates are upper bounds that follow from a server's script.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::common::{
    Finished, Place, RedisServer, Scripted, Started, child_named, installed, points_so_far,
    wait_until,
};

/// Timeout, far more than any search here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// A search of minimum length.
const SHORT: [&str; 8] = ["--probe", "500ms", "--warmup", "50ms", "--rounds", "2", "--keys", "200"];
const LIMITS: [&str; 4] = ["--slo", "p99<100ms", "--slo", "error<1%"];

fn find_max(place: &Place, target: &str, more: &[&str]) -> Command {
    let mut command = place.command();
    command.args(["find-max", target]).args(SHORT).args(more);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

fn search(place: &Place, target: &str, more: &[&str]) -> Finished {
    let more = [&["--quiet", "--format", "json"], more].concat();
    Started::new(find_max(place, target, &more)).finish_within(PATIENCE)
}

fn probes(summary: &Value) -> &Vec<Value> {
    summary["searches"][0]["probes"].as_array().unwrap()
}

/// Asserts what every summary of a search contains: an unlimited peak probe, then probes at a rate.
fn assert_has_curve(summary: &Value) {
    let probes = probes(summary);
    assert_eq!((&probes[0]["purpose"], &probes[0]["rate_per_s"]), (&"peak".into(), &Value::Null));
    for probe in &probes[1..] {
        assert!(probe["rate_per_s"].as_u64().unwrap() > 0, "{probe}");
        let limits = probe["beyond"].as_array().unwrap().len();
        assert_eq!(limits, summary["searches"][0]["limits"].as_array().unwrap().len(), "{probe}");
    }
    assert!(summary["searches"][0]["peak_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
#[ignore = "takes more than a minute: `make soak` runs it"]
fn a_private_redis_is_searched() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let summary = search(&place, "redis", &LIMITS).measured().json();
    assert_has_curve(&summary);
    place.assert_nothing_left();
    assert_record_matches(&place, &summary);
}

fn assert_record_matches(place: &Place, summary: &Value) {
    assert_eq!(summary["searches"][0]["limits"], serde_json::json!(["p99<100ms", "error<1%"]));
    let record = place.record();
    assert_eq!(record.seal()["status"], "complete");
    let load = &record.header()["plan"]["cells"][0]["load"];
    assert_eq!(load["schedule"]["search"]["slos"][1], "error<1%");
    let trials = record.trials();
    assert_eq!(trials.len(), 1);
    for point in trials[0]["points"].as_array().unwrap() {
        let probe = &point["probe"];
        assert!(probe["purpose"].is_string() && probe["length_ns"].is_u64(), "{point}");
    }
    assert_eq!(points_so_far(&place.records()), 0, "the points are in the trial's line");
    let again = |arguments: &[&str]| {
        let mut command = place.command();
        command.args(arguments).arg("--out").arg(place.records());
        Started::new(command).finish_within(PATIENCE).code(0)
    };
    assert_eq!(
        again(&["show", "latest", "--format", "json"]).json()["searches"],
        summary["searches"]
    );
    let sentence = summary["searches"][0]["sentence"].as_str().unwrap();
    let text = again(&["show", "latest", "--details"]).stdout;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&text).contains(&words(sentence)), "{sentence}\n{text}");
    assert!(text.contains("bracket") && text.contains("peak, ignoring"), "{text}");
    let listed = again(&["list"]).stdout;
    let state = summary["validity"].as_str().unwrap().to_uppercase();
    assert!(listed.contains(&format!(" {state} ")), "{listed}");
    let is_rate =
        |line: &str| line.contains(" p99<100ms, error<1%: ") && line.trim_end().ends_with("/s");
    let is_listed = listed.lines().any(is_rate);
    assert_eq!(is_listed, summary["searches"][0]["outcome"] == "found", "{listed}");
    let compared = again(&["compare", "latest", "latest"]).stdout;
    assert!(compared.lines().any(|l| l.starts_with("peak ") && l.contains(" 1.00×")), "{compared}");
    let csv = again(&["export", "latest", "--csv-probes"]).stdout;
    assert_eq!(csv.lines().count(), 1 + probes(summary).len(), "{csv}");
    assert!(csv.lines().next().unwrap().ends_with(",beyond p99<100ms,beyond error<1%"), "{csv}");
    let markdown = again(&["show", "latest", "--format", "markdown"]).stdout;
    assert!(markdown.contains("## Probes\n"), "{markdown}");
    again(&["report", "latest"]);
    let mut resume = place.command();
    resume.args(["run", "--resume", "latest", "--out"]).arg(place.records());
    Started::new(resume).finish_within(PATIENCE).usage_error(&["complete"]);
}

/// The server handles one request at a time, each in 1 ms: at most 1,000 replies per second.
#[test]
#[ignore = "takes half a minute: `make soak` runs it"]
fn a_search_stays_within_the_servers_rate_and_matches_its_record() {
    let (place, server) = (Place::new(), Scripted::new("service=constant:1ms"));
    let slo = [&LIMITS[..], &["--allow-shared", "--clients", "20"]].concat();
    let summary = search(&place, &server.url(), &slo).measured().json();
    assert_has_curve(&summary);
    for probe in probes(&summary) {
        assert!(probe["answered_per_s"].as_f64().unwrap() < 1_100.0, "{probe}");
    }
    if let Some(center) = summary["searches"][0]["answer"]["center"].as_f64() {
        let (lo, hi) =
            (&summary["searches"][0]["answer"]["lo"], &summary["searches"][0]["answer"]["hi"]);
        assert!(lo.as_f64().unwrap() <= center && center <= hi.as_f64().unwrap());
    }
    place.assert_nothing_left();
    assert_record_matches(&place, &summary);
}

#[test]
fn an_unreachable_limit_is_reported_with_advice() {
    let (place, server) = (Place::new(), Scripted::new("service=constant:5ms,servers=1000"));
    let slo = ["--slo", "p99<1ms", "--allow-shared", "--clients", "20"];
    let summary = search(&place, &server.url(), &slo).code(4).json();
    assert_eq!(
        (&summary["searches"][0]["outcome"], &summary["validity"]),
        (&"missed".into(), &"invalid".into())
    );
    let sentence = summary["searches"][0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("does not keep p99 < 1 ms even at"), "{sentence}");
    assert!(sentence.contains("raise the limit"), "{sentence}");
    assert_eq!(summary["searches"][0]["answer"], Value::Null);
}

/// The server handles a thousand requests at once, each in 5 ms: two clients reach at most 400
/// requests per second.
#[test]
#[ignore = "takes most of a minute: `make soak` runs it"]
fn a_client_bottleneck_is_reported_with_advice() {
    let (place, server) = (Place::new(), Scripted::new("service=constant:5ms,servers=1000"));
    let slo = ["--slo", "p99<2s", "--allow-shared", "--clients", "2"];
    let finished = search(&place, &server.url(), &slo).measured();
    let summary = finished.json();
    for probe in probes(&summary) {
        assert!(probe["answered_per_s"].as_f64().unwrap() < 440.0, "{probe}");
    }
    let sentence = summary["searches"][0]["sentence"].as_str().unwrap();
    match summary["searches"][0]["outcome"].as_str().unwrap() {
        "clients" | "never-missed" => {
            assert!(sentence.contains("--clients"), "{sentence}");
            assert_eq!((finished.code, &summary["validity"]), (Some(4), &"invalid".into()));
        }
        // With stolen CPU time the machine can be slower than the clients.
        other => assert!(matches!(other, "found" | "unsettled"), "{sentence}"),
    }
}

#[test]
fn errors_beyond_their_limit_fail_a_probe() {
    let script = "error=0.2:OOM command not allowed,faults-on=get,faults-after=250";
    let (place, server) = (Place::new(), Scripted::new(script));
    let slo = ["--slo", "error<1%", "--allow-shared", "--clients", "4"];
    let summary = search(&place, &server.url(), &slo).code(4).json();
    assert_eq!(summary["searches"][0]["outcome"], "missed", "{}", summary["searches"][0]);
    for probe in &probes(&summary)[1..] {
        assert!(probe["error_share"].as_f64().unwrap() > 0.05, "{probe}");
    }
}

#[test]
fn a_search_continues_after_its_server_dies() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let more = ["--slo", "p99<200ms", "--quiet", "--format", "json"];
    let run = Started::new(find_max(&place, "redis", &more));
    wait_until("the search has started", Duration::from_secs(120), || {
        (points_so_far(&place.records()) >= 2).then_some(())
    });
    let server = wait_until("a server runs", Duration::from_secs(60), || {
        child_named(run.pid(), "redis-server")
    });
    kill(Pid::from_raw(server.cast_signed()), Signal::SIGKILL).unwrap();
    let before = points_so_far(&place.records());
    wait_until("the search continues", Duration::from_secs(60), || {
        (points_so_far(&place.records()) > before + 2).then_some(())
    });
    run.signal(Signal::SIGINT);
    let summary = run.finish_within(PATIENCE).code(130).json();
    let probes = probes(&summary);
    let died = |probe: &Value| {
        probe["verdict"] == "broke" && probe["failure"].as_str().unwrap().contains("died")
    };
    let at = probes.iter().position(died).unwrap_or_else(|| panic!("{probes:?}"));
    assert!(at + 1 < probes.len(), "the search stopped: {probes:?}");
    assert_eq!(summary["failures"].as_array().unwrap().len(), 1);
    place.assert_nothing_left();
}

#[test]
fn ctrl_c_seals_the_probes_so_far() {
    let place = Place::new();
    let server = Scripted::new("service=constant:1ms");
    let more = ["--slo", "p99<100ms", "--allow-shared", "--quiet", "--format", "json"];
    let run = Started::new(find_max(&place, &server.url(), &more));
    wait_until("the search has started", Duration::from_secs(120), || {
        (points_so_far(&place.records()) >= 3).then_some(())
    });
    run.signal(Signal::SIGINT);
    let summary = run.finish_within(PATIENCE).code(130).json();
    assert_eq!(
        (&summary["status"], &summary["searches"][0]["outcome"]),
        (&"interrupted".into(), &"ended-early".into())
    );
    let sentence = summary["searches"][0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("ended early (interrupted)"), "{sentence}");
    assert_eq!(place.record().seal()["status"], "interrupted");
    place.assert_nothing_left();
}

/// The limit cannot be met at any rate, which keeps the search short.
#[test]
fn a_killed_search_is_shown_and_resumed() {
    let (place, server) = (Place::new(), Scripted::new("service=constant:5ms,servers=1000"));
    let more = ["--slo", "p99<1ms", "--allow-shared", "--clients", "20", "--quiet"];
    let mut run = find_max(&place, &server.url(), &more).spawn().unwrap();
    wait_until("the search has started", Duration::from_secs(120), || {
        (points_so_far(&place.records()) >= 3).then_some(())
    });
    run.kill().unwrap();
    run.wait().unwrap();
    let again = |arguments: &[&str]| {
        let mut command = place.command();
        command.args(arguments).arg("--out").arg(place.records());
        Started::new(command).finish_within(PATIENCE)
    };
    let shown = again(&["show", "latest", "--format", "json"]).code(0).json();
    let before = probes(&shown).clone();
    assert_eq!((&shown["status"], &shown["blocks"]), (&"unsealed".into(), &0.into()));
    assert_eq!(shown["searches"][0]["outcome"], "ended-early");
    assert!(!before.is_empty() && before[0]["purpose"] == "peak", "{before:?}");
    let store = format!("redis={}", server.url());
    let quiet = ["--quiet", "--format", "json"];
    let resume = ["run", "--resume", "latest", "--allow-shared", "--target", &store];
    let resumed = again(&[&resume[..], &quiet].concat()).code(4).json();
    assert_eq!(resumed["searches"][0]["outcome"], "missed", "{}", resumed["searches"][0]);
    let after = probes(&resumed);
    assert!(after.len() > before.len(), "{after:?}");
    assert_eq!(after[..before.len()], before[..], "the resumed search keeps the earlier probes");
    assert_eq!((&resumed["resumed"], &resumed["blocks"]), (&true.into(), &1.into()));
    assert_eq!(points_so_far(&place.records()), 0);
    place.assert_nothing_left();
}

#[test]
fn two_stores_are_searched_in_blocks() {
    let place = Place::new();
    let scripts = ["service=constant:5ms,servers=1000", "service=constant:6ms,servers=1000"];
    let servers = scripts.map(Scripted::new);
    let [a, b] = [("a", &servers[0]), ("b", &servers[1])].map(|(n, s)| format!("{n}={}", s.url()));
    let more = ["--slo", "p99<1ms", "--allow-shared", "--clients", "20", "--blocks", "2"];
    let summary = search(&place, &a, &[&[&b[..]], &more[..]].concat()).code(4).json();
    let searches = summary["searches"].as_array().unwrap();
    assert_eq!((searches.len(), &summary["blocks"]), (2, &2.into()));
    for (search, target) in searches.iter().zip(["a", "b"]) {
        assert_eq!((&search["target"], &search["blocks"]), (&target.into(), &2.into()));
        assert_eq!(search["outcome"], "missed", "{search}");
        let blocks = search["by_block"].as_array().unwrap();
        assert_eq!(blocks.len(), 2, "{search}");
    }
    assert_eq!(place.record().trials().len(), 4);
    place.assert_nothing_left();
}

#[test]
fn an_existing_server_keeps_foreign_keys() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (place, server) = (Place::new(), RedisServer::new());
    server.ask(&["SET", "cart:17", "three eggs"]);
    let refused = search(&place, &server.url(), &["--slo", "p99<1s"]).code(3).json();
    assert_eq!(refused["searches"], Value::Null);
    let more = ["--slo", "p99<1s", "--allow-shared", "--quiet"];
    let run = Started::new(find_max(&place, &server.url(), &more));
    wait_until("some probes have finished", Duration::from_secs(120), || {
        (points_so_far(&place.records()) >= 4).then_some(())
    });
    assert_eq!(server.ask(&["GET", "cart:17"]), "three eggs");
    run.signal(Signal::SIGINT);
    run.finish_within(PATIENCE).code(130);
    assert_eq!(server.keys(), ["cart:17"]);
    place.assert_nothing_left();
}

#[test]
fn errors_in_limits_are_located() {
    for (arguments, parts) in [
        (&["--slo", "p99<1"][..], &["--slo", "`1` at character 5 of `p99<1`", "1ms"][..]),
        (&["--slo", "p99"], &["has no `<`", "error<0.01%"]),
        (&["--slo", "mean<1ms"], &["`mean` at character 1", "as in p50"]),
        (&["--slo", "error<0.01"], &["`0.01` at character 7", "has no %", "error<0.01%"]),
        (&["--slo", "p99<20s"], &["`20.0 s` exceeds the timeout of 5.00 s", "--timeout"]),
        (
            &["--slo", "error<1%", "--slo", "p50<501ms", "--timeout", "500ms"],
            &["`501 ms` exceeds the timeout of 500 ms", "--timeout"],
        ),
        (&["--slo", "p99<1ms", "--probe", "10ms"], &["--probe `10ms`", "500ms"]),
        (&["--slo", "p99<1ms", "--probe", "99999h"], &["--probe 359996400 s", "--rounds 5"]),
        (&["--slo", "p99<1ms", "--probe", "3h", "--rounds", "900"], &["`338` days", "at most 30"]),
        (&["--slo", "p99<1ms", "--threads", "51"], &["--threads `51`", "at most 50"]),
        (&["--slo", "p99<1ms", "--op", "nonsense=1"], &["--op", "nonsense"]),
    ] {
        let place = Place::new();
        let mut command = place.command();
        command.args(["find-max", "redis"]).args(arguments).arg("--out").arg(place.records());
        Started::new(command).finish_within(PATIENCE).usage_error(parts);
        assert!(!place.records().exists());
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["find-max", "redis"]);
    let finished = Started::new(command).finish_within(PATIENCE).code(2);
    assert!(finished.stderr.contains("--slo"), "{finished:?}");
}
