//! Custom commands on shared servers: only the run's own keys are accessed.

use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::common::{
    Finished, Place, PortServer, Started, count, installed, row, target, trials_so_far, wait_until,
};

/// `bench` or `find-max` with small numbers.
fn command(place: &Place, program: &str, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.arg(program).args(arguments).args(["--keys", "300", "--clients", "2"]);
    command.args(["--format", "json"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

fn bench(arguments: &[&str]) -> Finished {
    let short = ["--duration", "100ms", "--warmup", "20ms", "--blocks", "1"];
    Place::finish(command(&Place::new(), "bench", &[arguments, &short].concat()))
}

fn redis_with_an_order() -> (PortServer, String) {
    let server = PortServer::redis(&[]);
    server.ask(&["SET", "order:1", "three eggs"]);
    let url = format!("x=redis://127.0.0.1:{}", server.port);
    (server, url)
}

#[test]
fn redis_commands_that_could_access_other_keys_are_never_sent() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, url) = redis_with_an_order();
    let cases = [
        (
            "EVAL \"return redis.call(\\\"FLUSHALL\\\")\" 0",
            "argument 0, `EVAL`, is not on the list",
        ),
        ("DEL order:1", "argument 1, `order:1`, names a key that does not start with `__key__`"),
        ("Unlink __key__ 'order:1'", "argument 2, `order:1`"),
        ("rename __key__ order:1", "argument 2, `order:1`"),
        ("SELECT 1", "`SELECT`"),
        ("SORT __key__ STORE order:1", "argument 2, `STORE`"),
    ];
    for (text, problem) in cases {
        let refused = bench(&[&url, "--allow-shared", "--command", text]);
        refused.usage_error(&["--command `", problem, "(expected ", "--i-own-this-server"]);
    }
    // Every `--command` is checked, by `bench` and by `find-max`.
    let several = [&url, "--allow-shared", "--command", "GET __key__", "--command", "DEL order:1"];
    bench(&several).usage_error(&["`DEL order:1`"]);
    let search = [&several[..], &["--slo", "p99<1s"]].concat();
    Place::finish(command(&Place::new(), "find-max", &search)).usage_error(&["`DEL order:1`"]);
    assert_eq!(server.ask(&["GET", "order:1"]), "three eggs");
    for sent in ["eval", "del", "unlink", "rename", "select", "sort"] {
        assert_eq!(server.calls(sent), 0, "{sent}");
    }

    let owner = [&url, "--allow-shared", "--i-own-this-server", "--command", "DEL order:1"];
    bench(&owner).measured();
    assert_eq!(server.ask(&["DBSIZE"]), "0", "the owner's command ran");
}

#[test]
fn commands_on_own_keys_run_next_to_foreign_keys() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, url) = redis_with_an_order();
    let commands = [
        "MSET __key__ __data__ __key__:2 order:1",
        "copy \"__key__\" __key__:3 REPLACE",
        "DEL __key__:2 __key__:3",
        "OBJECT ENCODING __key__",
        "ZUNION 2 __key__:z __key__:y",
        "SORT __key__:z ALPHA",
        "XREAD COUNT 1 STREAMS __key__:x 0",
        "MEMORY USAGE __key__",
        "PING",
    ];
    let mut arguments = vec![&*url, "--allow-shared"];
    arguments.extend(commands.iter().flat_map(|text| ["--command", text]));
    let summary = bench(&arguments).measured().json();
    for operation in ["mset", "copy", "del", "zunion", "sort", "xread", "ping"] {
        let row = row(&summary, "x", &format!("mixed.{operation}"));
        assert!(count(row, "ok") > 0 && count(row, "error") == 0, "{row}");
    }
    assert_eq!(server.ask(&["KEYS", "*"]), "order:1", "only the foreign key remains");
    assert_eq!(server.ask(&["GET", "order:1"]), "three eggs");
}

#[test]
fn a_command_is_refused_if_the_server_reports_other_keys_for_it() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let renamed = ["--rename-command", "GET", "READ", "--rename-command", "FLUSHALL", "GET"];
    let server = PortServer::redis(&renamed);
    server.ask(&["SET", "order:1", "three eggs"]);
    let url = format!("x=redis://127.0.0.1:{}", server.port);
    let finished = bench(&[&url, "--allow-shared", "--command", "GET __key__"]).code(3).json();
    let why = target(&finished, "x")["not_run"].as_str().unwrap();
    for part in ["`GET __key__`", "the server reports the keys", "--i-own-this-server"] {
        assert!(why.contains(part), "no `{part}` in {why}");
    }
    assert_eq!(server.ask(&["READ", "order:1"]), "three eggs");
}

#[test]
fn an_edited_command_in_a_record_is_never_sent() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, url) = redis_with_an_order();
    let place = Place::new();
    let blocks = ["--blocks", "3", "--duration", "400ms", "--warmup", "0s"];
    let allowed = [&url, "--allow-shared", "--command", "DEL __key__"];
    let run = Started::new(command(&place, "bench", &[&allowed[..], &blocks].concat()));
    wait_until("a trial has ended", Duration::from_secs(60), || {
        (trials_so_far(&place.records()) >= 1).then_some(())
    });
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    wait_until("the guard has ended", Duration::from_secs(20), || {
        (!place.has_processes()).then_some(())
    });

    let header = place.record().path.join("header.json");
    let text = fs::read_to_string(&header).unwrap();
    let edited = text.replace("\"DEL __key__\"", "\"DEL order:1\"");
    assert_ne!(edited, text, "the record names the command");
    fs::write(&header, edited).unwrap();
    let resume = ["--resume", "latest", "--target", &url, "--allow-shared", "--trust-record"];
    let refused = Place::finish(place.run(&resume));
    refused.usage_error(&["not made on this host sends", "`DEL order:1`"]);
    assert_eq!(server.ask(&["GET", "order:1"]), "three eggs");
}

#[test]
fn memcached_commands_that_could_access_other_keys_are_never_sent() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let server = PortServer::memcached(&[]);
    server.say("set order:1 0 0 10\r\nthree eggs");
    let url = format!("x=memcached://127.0.0.1:{}", server.port);
    let shared =
        |text: &str| bench(&[&url, "--allow-shared", "--i-own-this-server", "--command", text]);
    let cases = [
        ("flush_all", "argument 0, `flush_all`"),
        ("get __key__ order:1", "argument 2, `order:1`"),
        ("delete order:1", "argument 1, `order:1`"),
        ("set __key__ x 0 flush_all", "argument 2, `x`"),
        ("md b3JkZXI6MQ== b", "argument 1, `b3JkZXI6MQ==`"),
        ("mn", "argument 0, `mn`"),
    ];
    for (text, problem) in cases {
        let refused = bench(&[&url, "--allow-shared", "--command", text]);
        refused.usage_error(&["--command `", problem, "--i-own-this-server"]);
    }
    assert!(server.say("get order:1").contains("three eggs"));
    let summary = shared("mg __key__ v t").measured().json();
    assert_eq!(count(row(&summary, "x", "mg"), "error"), 0);
    let summary = shared("gat 60 __key__").measured().json();
    assert_eq!(count(row(&summary, "x", "gat"), "error"), 0);
    assert_eq!(server.stat("curr_items"), 1, "only the foreign item remains");
    shared("delete order:1").measured();
    assert_eq!(server.stat("curr_items"), 0, "the owner's command ran");
}
