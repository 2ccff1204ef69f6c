//! `bench` on real servers that die, restart, stall or run out of resources during the run.

use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::common::{
    Place, PortServer, RedisServer, Started, among, count, installed, row, trials_so_far,
    wait_until,
};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);

fn tools() -> bool {
    installed(&["redis-server", "redis-cli", "setpriv"])
}

/// `bench` of an existing server for the given time.
fn bench(place: &Place, url: &str, duration: &str, more: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("bench").arg(format!("x={url}"));
    command.args(["--duration", duration, "--warmup", "0ms", "--blocks", "1", "--format", "json"]);
    command.args(["--keys", "500", "--clients", "4", "--op", "get=0.5,set=0.5"]);
    command.args(more).arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// Waits until the fill is over and the measurement has started.
fn wait_for_measurement(server: &RedisServer) {
    let reads = || {
        let stats = server.ask(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|l| l.strip_prefix("cmdstat_get:calls="))?;
        line.split(',').next()?.parse::<u64>().ok().filter(|calls| *calls > 500)
    };
    wait_until("keys are read", Duration::from_secs(30), reads);
}

/// Injects `fault` into the server during the measurement; returns the summary.
fn disturbed(
    server: &mut RedisServer,
    duration: &str,
    more: &[&str],
    fault: impl FnOnce(&mut RedisServer),
) -> (Place, Value) {
    let place = Place::new();
    server.ask(&["CONFIG", "RESETSTAT"]);
    let run = Started::new(bench(&place, &server.port_url(), duration, more));
    wait_for_measurement(server);
    fault(server);
    // A small share of errors is acceptable.
    let summary = run.finish_within(PATIENCE).measured().json();
    place.assert_nothing_left();
    (place, summary)
}

fn errors(row: &Value, class: &str) -> u64 {
    row["counts"]["errors_by_class"][class].as_u64().unwrap_or(0)
}

/// Requests answered in the last full second of the only phase.
fn answered_at_the_end(place: &Place) -> u64 {
    let trial = place.record().trials().remove(0);
    let done = trial["series"].as_array().unwrap().last().unwrap()["done_per_interval"]
        .as_array()
        .unwrap();
    done.iter().rev().take(10).map(|n| n.as_u64().unwrap()).sum()
}

#[test]
fn a_killed_server_fails_its_trial_in_time() {
    if !tools() {
        return;
    }
    let mut server = RedisServer::on_a_port();
    let more = ["--timeout", "500ms"];
    let (_, summary) = disturbed(&mut server, "60s", &more, RedisServer::kill);
    let failures = among(&summary["failures"], |f| f["class"] == "refused");
    assert_eq!(failures.len(), 1, "{}", summary["failures"]);
    let reason = failures[0]["reason"].as_str().unwrap();
    assert!(reason.contains("cannot connect to 127.0.0.1:"), "{reason}");
    assert!(reason.ends_with("connection refused"), "{reason}");
    assert_eq!(summary["validity"], "invalid");
}

/// Every client eventually waits for the dead server, and earlier replies are not a result.
#[test]
fn killing_one_of_several_servers_fails_the_trial() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    for more in [&[][..], &["--rate", "2000"]] {
        let (stays, dies) = (PortServer::memcached(&[]), PortServer::memcached(&[]));
        let url = format!("memcached://127.0.0.1:{},127.0.0.1:{}", stays.port, dies.port);
        let (place, port) = (Place::new(), dies.port);
        let more = [&["--timeout", "500ms"], more].concat();
        let run = Started::new(bench(&place, &url, "60s", &more));
        wait_until("keys are read", Duration::from_secs(30), || {
            (dies.stat("get_hits") > 500).then_some(())
        });
        drop(dies);
        let summary = run.finish_within(PATIENCE).measured().json();
        assert_eq!(summary["validity"], "invalid");
        let failures = among(&summary["failures"], |f| f["class"] == "refused");
        let reason = failures[0]["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("127.0.0.1:{port}")), "{reason}");
    }
}

/// Runs a closed load on `count` servers and stops the last one for two seconds. Returns the
/// summary, the only trial, and that server's address.
fn stall_last_of(count: usize, timeout: &str) -> (Value, Value, String) {
    let servers: Vec<_> = (0..count).map(|_| PortServer::memcached(&[])).collect();
    let places: Vec<_> = servers.iter().map(|s| format!("127.0.0.1:{}", s.port)).collect();
    let place = Place::new();
    let url = format!("memcached://{}", places.join(","));
    let run = Started::new(bench(&place, &url, "5s", &["--timeout", timeout]));
    let last = servers.last().unwrap();
    wait_until("keys are read", Duration::from_secs(30), || {
        (last.stat("get_hits") > 500).then_some(())
    });
    last.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_secs(2));
    last.signal(Signal::SIGCONT);
    let summary = run.finish_within(PATIENCE).measured().json();
    let trial = place.record().trials().remove(0);
    (summary, trial, places.last().unwrap().clone())
}

/// During the stall each client of the closed load waits for one request to the stopped server.
#[test]
fn a_stall_of_one_of_several_servers_is_reported() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    // Requests are lost only with short timeouts.
    for timeout in ["5s", "500ms"] {
        let (summary, trial, place) = stall_last_of(3, timeout);
        let expected = format!("{place} was unavailable for ");
        let is_reported = |r: &Value| r.as_str().unwrap().contains(&expected);
        assert_eq!(among(&summary["reasons"], is_reported).len(), 1, "{}", summary["reasons"]);
        let outages = trial["outages"].as_array().unwrap();
        assert_eq!(outages.len(), 1, "{timeout}: {outages:?}");
        let length_ns = outages[0]["length_ns"].as_u64().unwrap();
        assert!((1_700_000_000..4_000_000_000).contains(&length_ns), "{timeout}: {length_ns}");
        let errors = count(row(&summary, "x", "mixed"), "error");
        assert_eq!(errors == 0, timeout == "5s", "{timeout}: {errors}");
    }
}

#[test]
fn a_stall_of_a_single_server_is_not_an_outage() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let (summary, trial, _) = stall_last_of(1, "5s");
    assert_eq!(trial["outages"], json!([]));
    let slowest = &row(&summary, "x", "mixed")["metrics"]["response_ns_max"];
    assert!(slowest["center"].as_f64().unwrap() > 1.9e9, "{slowest}");
}

#[test]
fn measurement_continues_after_a_server_restart() {
    if !tools() {
        return;
    }
    let mut server = RedisServer::on_a_port();
    let (place, summary) = disturbed(&mut server, "3s", &[], |server| {
        server.kill();
        std::thread::sleep(Duration::from_millis(300));
        server.start_again();
    });
    let mixed = row(&summary, "x", "mixed");
    // Requests in flight at the crash fail, and lost data causes misses.
    assert_eq!(errors(mixed, "closed"), count(mixed, "error"), "{mixed}");
    assert!(count(mixed, "error") <= 4, "{mixed}");
    assert!(count(mixed, "miss") > 0, "{mixed}");
    assert!(answered_at_the_end(&place) > 100, "{mixed}");
    let missing = |r: &Value| r.as_str().unwrap().contains("that should exist were not found");
    assert!(!among(&summary["reasons"], missing).is_empty(), "{}", summary["reasons"]);
    // The run's data was removed over a separate connection.
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn an_open_load_waits_for_a_restart_and_records_the_outage() {
    if !tools() {
        return;
    }
    let mut server = RedisServer::on_a_port();
    let rate = ["--rate", "1000", "--even"];
    let (_, summary) = disturbed(&mut server, "3s", &rate, |server| {
        server.kill();
        std::thread::sleep(Duration::from_millis(500));
        server.start_again();
    });
    let mixed = row(&summary, "x", "mixed");
    let ended = ["ok", "miss", "error"].map(|name| count(mixed, name));
    assert_eq!(ended.iter().sum::<u64>(), 3000, "{mixed}");
    // Requests due during the outage waited; the maximum response time shows it.
    let worst = &mixed["metrics"]["response_ns_max"];
    let worst_ns = worst["center"].as_f64().or(worst["at_least"].as_f64()).unwrap();
    assert!(worst_ns > 450e6, "{mixed}");
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn a_hung_server_fails_its_trial_in_time() {
    if !tools() {
        return;
    }
    let mut server = RedisServer::on_a_port();
    let more = ["--timeout", "300ms"];
    let (_, summary) =
        disturbed(&mut server, "60s", &more, |server| server.signal(Signal::SIGSTOP));
    let failures = among(&summary["failures"], |f| f["class"] == "timed out");
    assert_eq!(failures.len(), 1, "{}", summary["failures"]);
    let reason = failures[0]["reason"].as_str().unwrap();
    assert!(reason.contains("did not answer within 300 ms"), "{reason}");
}

#[test]
fn measurement_continues_after_a_stall() {
    if !tools() {
        return;
    }
    let mut server = RedisServer::on_a_port();
    let (place, summary) = disturbed(&mut server, "3s", &["--timeout", "400ms"], |server| {
        server.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(600));
        server.signal(Signal::SIGCONT);
    });
    let mixed = row(&summary, "x", "mixed");
    assert_eq!(errors(mixed, "timeout"), count(mixed, "error"), "{mixed}");
    assert!(count(mixed, "error") <= 4, "{mixed}");
    assert!(answered_at_the_end(&place) > 100, "{mixed}");
    // It lost requests, so the stall counts as an outage.
    let outages = &place.record().trials()[0]["outages"];
    let length_ns = outages[0]["length_ns"].as_u64().unwrap_or(0);
    assert!((550_000_000..2_000_000_000).contains(&length_ns), "{outages}");
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn connections_above_the_servers_limit_are_reported_with_its_error() {
    if !tools() {
        return;
    }
    let server = RedisServer::on_a_port();
    server.ask(&["CONFIG", "SET", "maxclients", "4"]);
    let place = Place::new();
    let run = Started::new(bench(&place, &server.port_url(), "3s", &[]));
    let summary = run.finish_within(PATIENCE).code(4).json();
    let failures = among(&summary["failures"], |f| f["class"] == "refused");
    assert_eq!(failures.len(), 1, "{}", summary["failures"]);
    let reason = failures[0]["reason"].as_str().unwrap();
    let expected = ["max number of clients reached", "is its limit reached?"];
    assert!(expected.iter().any(|words| reason.contains(words)), "{reason}");
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn closed_connections_are_reopened() {
    if !tools() {
        return;
    }
    let mut server = RedisServer::on_a_port();
    let (place, summary) = disturbed(&mut server, "3s", &[], |server| {
        // Closing a connection between a reply and the next request loses no request.
        for _ in 0..15 {
            server.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
            std::thread::sleep(Duration::from_millis(70));
        }
    });
    let mixed = row(&summary, "x", "mixed");
    assert_eq!(errors(mixed, "closed"), count(mixed, "error"), "{mixed}");
    assert!((1..=60).contains(&count(mixed, "error")), "{mixed}");
    assert!(answered_at_the_end(&place) > 100, "{mixed}");
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn a_server_out_of_memory_and_one_busy_with_a_script_answer_with_errors() {
    if !tools() {
        return;
    }
    let mut server = RedisServer::on_a_port();
    let own = ["--i-own-this-server"];
    let (_, summary) = disturbed(&mut server, "3s", &own, |server| {
        server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
        std::thread::sleep(Duration::from_millis(300));
        server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    });
    let set = row(&summary, "x", "mixed.set");
    assert!(errors(set, "full") > 0, "{set}");
    assert_eq!(errors(set, "full"), count(set, "error"), "{set}");
    assert!(set["counts"]["error_examples"]["full"].as_str().unwrap().starts_with("OOM "), "{set}");
    assert_eq!(count(row(&summary, "x", "mixed.get"), "error"), 0);

    server.ask(&["CONFIG", "SET", "lua-time-limit", "50"]);
    let (_, summary) = disturbed(&mut server, "3s", &[], |server| {
        let socket = server.url().replace("redis+unix://", "");
        let mut script = Command::new("redis-cli");
        script.args(["-s", &socket, "EVAL", "while true do end", "0"]);
        let mut script = script.stdout(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(400));
        server.ask(&["SCRIPT", "KILL"]);
        script.wait().unwrap();
    });
    let mixed = row(&summary, "x", "mixed");
    assert!(errors(mixed, "reply") > 0, "{mixed}");
    assert!(mixed["counts"]["error_examples"]["reply"].as_str().unwrap().starts_with("BUSY "));
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn a_replica_and_a_full_server_cannot_be_used() {
    if !tools() {
        return;
    }
    let (server, own) = (RedisServer::on_a_port(), ["--i-own-this-server"]);
    for (setting, words) in [
        (&["CONFIG", "SET", "maxmemory", "1"][..], "full: the server answered `OOM "),
        (&["REPLICAOF", "127.0.0.1", "1"], "error reply: the server answered `READONLY "),
    ] {
        server.ask(setting);
        let place = Place::new();
        let run = Started::new(bench(&place, &server.port_url(), "3s", &own));
        let summary = run.finish_within(PATIENCE).code(3).json();
        let why = summary["targets"][0]["not_run"].as_str().unwrap();
        assert!(why.starts_with(words), "{why}");
        assert_eq!(trials_so_far(&place.records()), 0);
        server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    }
}

#[test]
fn a_server_pause_is_fully_visible() {
    if !tools() {
        return;
    }
    let server = RedisServer::on_a_port();
    let place = Place::new();
    let rate = ["--rate", "500", "--even", "--timeout", "5s"];
    let run = Started::new(bench(&place, &server.port_url(), "3s", &rate));
    wait_for_measurement(&server);
    // Like a slow command or a fork.
    server.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(500));
    server.signal(Signal::SIGCONT);
    let summary = run.finish_within(PATIENCE).measured().json();
    let mixed = row(&summary, "x", "mixed");
    assert_eq!((count(mixed, "ok"), count(mixed, "error")), (1500, 0), "{mixed}");
    let metric = |name: &str| mixed["metrics"][name]["center"].as_f64().unwrap();
    assert!(metric("response_ns_max") > 480e6, "{mixed}");
    // A sixth of the requests were due during the pause and waited half of it on average.
    assert!(metric("response_ns_mean") > 30e6, "{mixed}");
    // The server was available: no outage.
    assert_eq!(place.record().trials()[0]["outages"], json!([]));
}
