//! `bench` with complex loads: YCSB's D and F, stages, and thousands of connections.

use serde_json::{Value, json};
use std::process::Command;

use super::common::{Place, count, installed, row};

const S: u64 = 1_000_000_000;

/// A small `bench redis` with these arguments; prints the summary as JSON.
fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.args(["bench", "redis", "--format", "json", "--warmup", "50ms"]).args(arguments);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

fn small(place: &Place, arguments: &[&str]) -> Value {
    let mut command = bench(place, arguments);
    command.args(["--duration", "300ms", "--blocks", "2", "--clients", "6", "--verify", "1"]);
    // Several threads if the generator has enough CPUs.
    let threads = rig::Pinning::for_this_process().generator.len().min(2);
    command.args(["--threads", &threads.to_string()]);
    if !arguments.contains(&"--keys") {
        command.args(["--keys", "500"]);
    }
    Place::finish(command).measured().json()
}

fn good(row: &Value) {
    assert!(count(row, "ok") > 20, "{row}");
    for bad in ["error", "wrong", "miss"] {
        assert_eq!(count(row, bad), 0, "{bad} of {row}");
    }
}

#[test]
fn ycsb_d_reads_its_inserted_keys() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    for arguments in [
        &["--preset", "ycsb-d"][..],
        &["--op", "insert=0.05,get=0.95", "--dist", "latest", "--pipeline", "4"],
    ] {
        let place = Place::new();
        let summary = small(&place, arguments);
        let (get, insert) =
            (row(&summary, "redis", "mixed.get"), row(&summary, "redis", "mixed.insert"));
        good(get);
        good(insert);
        // Inserted values are verified byte by byte as well.
        assert_eq!(count(get, "verified"), count(get, "ok"));
        let share = count(insert, "ok") as f64 / (count(insert, "ok") + count(get, "ok")) as f64;
        assert!((0.04..0.06).contains(&share), "{share}");
        place.assert_nothing_left();
    }
    let place = Place::new();
    good(row(&small(&place, &["--op", "insert", "--key-size", "30"]), "redis", "insert"));
}

#[test]
fn flags_that_override_a_preset_appear_in_the_name() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    for (arguments, name) in [
        (&["--preset", "twitter-c12"][..], "twitter-c12"),
        (
            &["--preset", "twitter-c12", "--ttl", "60s", "--key-size", "30"],
            "twitter-c12,key-size=30,ttl=60s",
        ),
        (
            &["--preset", "ycsb-b", "--value", "64", "--dist", "zipf:0.99"],
            "ycsb-b,value=64,dist=zipf:0.99",
        ),
    ] {
        let place = Place::new();
        let summary = small(&place, arguments);
        for operation in ["mixed", "mixed.get", "mixed.set"] {
            let row = row(&summary, "redis", operation);
            good(row);
            assert_eq!(row["workload"], name);
        }
        place.assert_nothing_left();
    }
}

#[test]
fn ycsb_f_writes_back_the_keys_it_reads() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    for arguments in [
        &["--preset", "ycsb-f"][..],
        &["--op", "rmw=0.5,get=0.5", "--pipeline", "8", "--value", "10-300"],
        &["--op", "rmw=0.5,get=0.5", "--rate", "3000"],
    ] {
        let place = Place::new();
        let summary = small(&place, arguments);
        let (get, both) =
            (row(&summary, "redis", "mixed.get"), row(&summary, "redis", "mixed.rmw"));
        good(get);
        good(both);
        assert_eq!(count(both, "verified"), count(both, "ok"));
        assert_eq!(
            row(&summary, "redis", "mixed")["counts"]["ok"],
            count(get, "ok") + count(both, "ok")
        );
    }
    let place = Place::new();
    let missed = small(&place, &["--op", "rmw", "--no-fill", "--keys", "1000000"]);
    let alone = row(&missed, "redis", "rmw");
    assert!(count(alone, "miss") > count(alone, "ok"), "{alone}");
    assert_eq!((count(alone, "wrong"), count(alone, "error")), (0, 0), "{alone}");
}

#[test]
fn stages_change_the_rate_and_are_reported_separately() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let stages = "400ms:500,500ms:500-2500,400ms:2500";
    let mut command = bench(&place, &["--stages", stages, "--even", "--keys", "500"]);
    command.args(["--op", "get=0.8,set=0.2", "--blocks", "2"]);
    let summary = Place::finish(command).measured().json();
    let ramp = &summary["ramps"][0];
    let stage = |length_ns: u64, from: u64, to: u64| serde_json::json!({"length_ns": length_ns, "from": from, "to": to});
    let expected =
        [stage(S * 2 / 5, 500, 500), stage(S / 2, 500, 2_500), stage(S * 2 / 5, 2_500, 2_500)];
    assert_eq!(ramp["load"]["schedule"]["stages"], Value::from(expected.to_vec()));
    assert_eq!(
        (&ramp["operation"], &ramp["load"]["arrivals"]),
        (&"mixed".into(), &"constant".into())
    );
    // The expected rate of the rising stage excludes its first fifth.
    for (stage, planned) in ramp["stages"].as_array().unwrap().iter().zip([500, 1_700, 2_500]) {
        let own = stage["metrics"]["planned_per_s"]["center"].as_f64().unwrap();
        assert!((own - f64::from(planned)).abs() < 1.0, "{own}");
        let all = &stage["operations"]["all"];
        // Both blocks together, without the first fifth of each stage.
        let length_s = if planned == 1_700 { 0.4 } else { 0.32 };
        let due = (2.0 * length_s * f64::from(planned)) as u64;
        assert!(count(all, "ok").abs_diff(due) <= 10, "{due}: {}", all["counts"]);
        let parts = ["get", "set"].map(|name| count(&stage["operations"][name], "ok"));
        assert_eq!(parts.iter().sum::<u64>(), count(all, "ok"));
        assert!(all["metrics"]["response_ns_p99"]["center"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(ramp["stages"].as_array().unwrap().len(), 3);
    assert_eq!((&ramp["outcome"], &summary["cells"]), (&"never-missed".into(), &json!([])));
    let sentence = ramp["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("redis sustains at least 2,"), "{sentence}");
    // A planned increase of the rate is not drift.
    let reasons = summary["reasons"].to_string();
    assert!(!reasons.contains("the rate"), "{reasons}");
    let text = place.on_records(&["show", "--details"]).measured().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected =
        "500/s for 0.4 s, then 500 to 2500/s in 0.5 s, then 2500/s for 0.4 s, evenly spaced";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn stages_change_the_number_of_clients() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let stages = "400ms:1,400ms:1-20,400ms:20";
    let arguments = ["--client-stages", stages, "--think", "2ms", "--keys", "500", "--blocks", "1"];
    let summary = Place::finish(bench(&place, &arguments)).measured().json();
    let ramp = &summary["ramps"][0];
    assert_eq!((&ramp["load"]["clients"], &ramp["times"]), (&20.into(), &"service".into()));
    let stage =
        |from: u64, to: u64| serde_json::json!({"length_ns": S * 2 / 5, "from": from, "to": to});
    let expected = [stage(1, 1), stage(1, 20), stage(20, 20)];
    assert_eq!(ramp["load"]["schedule"]["stages"], Value::from(expected.to_vec()));
    let stages = ramp["stages"].as_array().unwrap();
    let counts: Vec<u64> =
        stages.iter().map(|stage| count(&stage["operations"]["all"], "ok")).collect();
    // With a pause of 2 ms a client sends at most 160 requests in the settled part of a stage.
    assert!(counts[0] <= 161 && counts[0] * 2 < counts[1] && counts[1] < counts[2], "{counts:?}");
    let clients: Vec<u64> = stages.iter().map(|s| s["clients"].as_u64().unwrap()).collect();
    assert_eq!(clients, [1, 12, 20]);
    let text = place.on_records(&["show", "--details"]).measured().stdout;
    let expected = "1 client for 0.4 s, then 1 to 20 clients in 0.4 s, then 20 clients for 0.4 s";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn two_thousand_connections_work_and_too_many_are_refused_with_the_calculation() {
    if !installed(&["redis-server", "setpriv", "prlimit"]) {
        return;
    }
    let limited = |place: &Place, limits: &str, clients: &str| {
        let bench = bench(place, &["--clients", clients, "--blocks", "1", "--duration", "300ms"]);
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limits}")).arg(bench.get_program());
        command.args(bench.get_args()).args(["--keys", "500", "--op", "get"]);
        for (name, value) in bench.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = bench.get_current_dir() {
            command.current_dir(directory);
        }
        Place::finish(command)
    };
    let place = Place::new();
    // The soft limit of open files is raised.
    let summary = limited(&place, "200:2500", "2000").measured().json();
    good(row(&summary, "redis", "get"));
    place.assert_nothing_left();
    let place = Place::new();
    let parts = ["--clients `2000`", "need 2160 open files", "may open 500", "at most 340 clients"];
    limited(&place, "200:500", "2000").usage_error(&parts);
    assert_eq!(place.all_records().len(), 0);
}

#[test]
fn invalid_stages_are_refused() {
    let place = Place::new();
    for (arguments, parts) in [
        (&["--stages", "10s"][..], &["--stages", "`10s` at character 1", "LENGTH:RATE"][..]),
        (&["--stages", "1s:5,0s:5"], &["`0s` at character 6", "more than 0"]),
        (&["--stages", "1s:-3"], &["`-3` at character 4", "is not a rate"]),
        (&["--stages", "1s:100000001"], &["`100000001`", "0 to 100000000"]),
        (&["--stages", "1s:0"], &["`1s:0` sends nothing"]),
        (&["--stages", "1s:5", "--rate", "5"], &["--rate", "cannot be used with"]),
        (&["--stages", "1s:5", "--duration", "5s"], &["--duration", "cannot be used with"]),
        (&["--stages", "1s:5", "--think", "5ms"], &["--think", "cannot be used with"]),
        (&["--client-stages", "1s:20001"], &["`20001` at character 4", "0 to 20000"]),
        (&["--client-stages", "1s:0"], &["a number of clients above 0"]),
        (&["--client-stages", "1s"], &["LENGTH:CLIENTS"]),
        (&["--client-stages", "1s:5", "--clients", "5"], &["--clients", "cannot be used with"]),
        (&["--client-stages", "1s:5", "--rate", "5"], &["--rate", "cannot be used with"]),
        (&["--op", "insert=1", "--key-size", "8"], &["`8` bytes are too short", "--key-size"]),
    ] {
        Place::finish(bench(&place, arguments)).usage_error(parts);
    }
    assert_eq!(place.all_records().len(), 0);
}
