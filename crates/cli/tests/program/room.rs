//! Memory of existing servers: a measurement never evicts foreign keys.

use std::process::Command;
use std::time::Duration;

use super::common::{
    Finished, Place, PortServer, Started, count, installed, row, target, wait_until,
};
use nix::sys::signal::Signal;

const OWN: &str = "--i-own-this-server";
const FOREIGN: u64 = 1_000;
/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// A Redis with a `maxmemory` of 6 MB and foreign keys in database 0.
fn redis(policy: &str) -> PortServer {
    let server = PortServer::redis(&["--maxmemory", "6mb", "--maxmemory-policy", policy]);
    let words: Vec<String> =
        (0..FOREIGN).flat_map(|n| [format!("order:{n}"), format!("foreign {n}")]).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    server.ask(&[&["MSET"], &words[..]].concat());
    server
}

/// URL of the server's empty database 9.
fn url(server: &PortServer) -> String {
    format!("redis://127.0.0.1:{}/9", server.port)
}

fn field(server: &PortServer, name: &str) -> u64 {
    let info = server.ask(&["INFO"]);
    let of_line = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
    info.lines().find_map(of_line).unwrap()
}

/// Asserts that all foreign keys exist, none was evicted, and database 9 is empty.
fn assert_untouched(server: &PortServer) {
    assert_eq!(server.ask(&["DBSIZE"]), FOREIGN.to_string());
    assert_eq!(server.ask(&["-n", "9", "DBSIZE"]), "0");
    assert_eq!(field(server, "evicted_keys"), 0);
}

fn bench(place: &Place, target: &str, more: &[&str]) -> Command {
    let mut command = place.command();
    command.args(["bench", &format!("x={target}"), "--format", "json", "--clients", "2"]);
    command.args(["--warmup", "0ms", "--blocks", "1"]).args(more);
    if !more.contains(&"--duration") {
        command.args(["--duration", "300ms"]);
    }
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// Reason why a target was not run.
fn refusal(finished: Finished, name: &str) -> String {
    let summary = finished.code(3).json();
    target(&summary, name)["not_run"].as_str().unwrap().to_string()
}

/// Failure message of the only trial of a run.
fn failure(place: &Place) -> String {
    let trials = place.record().trials();
    let failures: Vec<&str> =
        trials.iter().filter_map(|trial| trial["failure"]["message"].as_str()).collect();
    assert_eq!(failures.len(), 1, "{trials:#?}");
    failures[0].to_string()
}

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn too_many_keys_are_refused_with_the_calculation() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    for (policy, harm) in [("allkeys-lru", "evicts keys"), ("noeviction", "makes all writes fail")]
    {
        let (server, place) = (redis(policy), Place::new());
        let many = ["--keys", "20000"];
        let reason = refusal(Place::finish(bench(&place, &url(&server), &many)), "x");
        let sum = ["by 1000 keys in all databases", "20000 keys", "5.4 MiB", "maxmemory of 6 MiB"];
        assert_contains(&reason, &[&sum[..], &[policy, harm, "--keys", "--value", OWN]].concat());
        assert_untouched(&server);
        // A separate database still shares the server's memory.
        let shared = [&many[..], &["--allow-shared"]].concat();
        let finished = Place::finish(bench(&place, &url(&server).replace("/9", "/0"), &shared));
        assert_contains(&refusal(finished, "x"), &["has no room", "20000 keys"]);
        assert_untouched(&server);
        assert_eq!(server.calls("set"), 0, "nothing was written");

        Place::finish(bench(&place, &url(&server), &["--keys", "500"])).measured();
        assert_untouched(&server);
        assert!(server.calls("set") >= 500);
    }
}

#[test]
fn searches_and_studies_check_the_memory() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (redis("allkeys-lfu"), Place::new());
    let named = |name: &str| format!("{name}={}", url(&server));
    let mut search = place.command();
    search.args(["find-max", &named("x"), "--slo", "p99<1s", "--keys", "20000"]);
    search.args(["--clients", "4", "--format", "json"]);
    search.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    assert_contains(&refusal(Place::finish(search), "x"), &["has no room", "20000 keys"]);
    let study = |name: &str, target: &str, size: &str| {
        let arguments = [name, "--scale", "quick", "--format", "json", "--set", size];
        let named = named(target);
        let arguments = [&arguments[..], &["--target", &named]].concat();
        refusal(Place::finish(place.run(&arguments)), target)
    };
    assert_contains(
        &study("sessions", "redis", "sessions=50000"),
        &["50000 sessions", "sessions=NUMBER"],
    );
    assert_contains(&study("ramp", "redis", "keys=50000"), &["50000 keys", "--set keys=NUMBER"]);
    assert_contains(
        &study("app-cache", "cm-redis", "keys=20000"),
        &["20000 records", "--set keys=NUMBER"],
    );
    assert_untouched(&server);
}

#[test]
fn unbounded_growth_is_refused_next_to_foreign_keys() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (redis("allkeys-random"), Place::new());
    let shared = ["--allow-shared", "--keys", "100", "--duration", "2s"];
    for load in [
        &["--op", "insert=1", "--value", "400", "--pipeline", "16"][..],
        &["--command", "APPEND __key__ __data__", "--value", "4KiB"],
        &["--command", "LPUSH __key__ x"],
        &["--command", "HSET __key__ __data__ 1"],
        &["--command", "SETRANGE __key__ 400000 x", "--value", "10"],
    ] {
        let finished = Place::finish(bench(&place, &url(&server), &[&shared[..], load].concat()));
        assert_contains(
            &refusal(finished, "x"),
            &["has no room for this run", "maxmemory of 6 MiB"],
        );
        assert_untouched(&server);
    }
    let bounded = ["--op", "insert=1", "--value", "400", "--rate", "500"];
    let bounded = [&["--allow-shared", "--keys", "100"], &bounded[..]].concat();
    Place::finish(bench(&place, &url(&server), &bounded)).measured();
    assert_untouched(&server);
}

#[test]
fn lowering_maxmemory_stops_a_run_and_a_search() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let lowered = |command: Command, place: &Place| {
        let server = redis("allkeys-lru");
        let mut command = command;
        command.arg(format!("x={}", url(&server)));
        let mut run = Started::new(command);
        wait_until("the load runs", PATIENCE, || (server.calls("get") > 1_000).then_some(()));
        wait_until("the run stops", PATIENCE, || {
            // Nothing is evicted yet, but less than a tenth is left. Connections come and go and
            // change what is in use, so one setting may leave more than a tenth a moment later.
            let limit = field(&server, "used_memory") * 109 / 100;
            server.ask(&["CONFIG", "SET", "maxmemory", &limit.to_string()]);
            (!run.is_running()).then_some(())
        });
        run.finish_within(PATIENCE).code(4);
        assert_contains(
            &failure(place),
            &["stopped to protect other users' data", "90 % of its maxmemory"],
        );
        assert_untouched(&server);
    };
    let small = ["--keys", "200", "--value", "64", "--clients", "2", "--format", "json"];
    let command = |place: &Place, words: &[&str]| {
        let mut command = place.command();
        command.args(words).args(small);
        command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
        command
    };
    let place = Place::new();
    lowered(command(&place, &["bench", "--duration", "60s", "--op", "get=1"]), &place);
    let place = Place::new();
    lowered(command(&place, &["find-max", "--slo", "p99<1s", "--op", "get=1"]), &place);
}

#[test]
fn replies_count_towards_the_memory() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (redis("allkeys-lru"), Place::new());
    let many = format!("MGET{}", " __key__".repeat(40));
    let one_string = ["--command", "SETRANGE __key__ 900000 x", "--command", "GET __key__"];
    let one_list = ["--command", "RPUSH __key__ __data__", "--command", "LRANGE __key__ 0 -1"];
    for (keys, load) in [
        ("100", &["--command", &many, "--pipeline", "100"][..]),
        ("1", &[&one_string[..], &["--pipeline", "3"]].concat()),
        ("100", &["--command", "SADD __key__ x", "--command", "SRANDMEMBER __key__ -50000"]),
        ("1", &[&one_list[..], &["--rate", "9000"]].concat()),
    ] {
        let words = [&["--keys", keys, "--duration", "500ms"], load].concat();
        let finished = Place::finish(bench(&place, &url(&server), &words));
        assert_contains(&refusal(finished, "x"), &["has no room for this run", "for 2 clients"]);
        assert_untouched(&server);
    }
    let small = ["--keys", "100", "--command", "MGET __key__ __key__"];
    Place::finish(bench(&place, &url(&server), &small)).measured();
    assert_untouched(&server);
}

#[test]
fn evictions_after_the_stop_are_reported() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    // The server is empty when the run starts, so an unbounded load is allowed.
    let server = PortServer::redis(&["--maxmemory", "30mb", "--maxmemory-policy", "allkeys-lru"]);
    let load = ["--keys", "10", "--op", "insert=1", "--value", "100KiB", "--pipeline", "20"];
    let place = Place::new();
    let run = bench(&place, &url(&server), &[&load[..], &["--duration", "30s"]].concat());
    Place::finish(run).code(4);
    let reason = failure(&place);
    assert_contains(&reason, &["stopped to protect other users' data"]);
    assert_eq!(reason.contains("has evicted"), field(&server, "evicted_keys") > 0, "{reason}");
    assert_eq!(server.ask(&["-n", "9", "DBSIZE"]), "0");
}

#[test]
fn a_fill_stops_when_another_client_fills_the_server() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (redis("allkeys-lru"), Place::new());
    server.ask(&["CONFIG", "SET", "maxmemory", "200mb"]);
    let many = ["--keys", "100000"];
    let run = Started::new(bench(&place, &url(&server), &many));
    wait_until("the fill runs", PATIENCE, || (server.calls("set") > 1_000).then_some(()));
    server.ask(&["SETRANGE", "order:0", "120000000", "x"]);
    run.finish_within(PATIENCE).code(4);
    assert_contains(&failure(&place), &["stopped to protect other users' data"]);
    assert_untouched(&server);
}

#[test]
fn an_owned_server_can_be_filled_and_this_is_recorded() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (PortServer::redis(&["--maxmemory", "6mb"]), Place::new());
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let many = ["--keys", "20000", OWN];
    Place::finish(bench(&place, &url(&server), &many));
    assert!(field(&server, "evicted_keys") > 0, "the server was filled");
    let shown = place.on_records(&["show", "--details"]).stdout;
    assert_contains(&shown, &["existing stores", OWN]);

    // The flag does not allow a database with keys.
    server.ask(&["-n", "9", "SET", "order:1", "foreign"]);
    let reason = refusal(Place::finish(bench(&place, &url(&server), &many)), "x");
    assert_contains(&reason, &["is not empty", "--allow-shared"]);
}

#[test]
fn a_resumed_run_checks_memory_and_records_the_ownership() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (redis("allkeys-lru"), Place::new());
    let target = format!("redis={}", url(&server));
    let short = ["--set", "value_bytes=32", "--set", "clients=1", "--set", "blocks_min=400"];
    let long = ["--set", "blocks_max=400", "--target", &target];
    let run = Started::new(place.fast(&[&short[..], &long].concat()));
    wait_until("the run measures", PATIENCE, || (server.calls("setex") > 100).then_some(()));
    run.signal(Signal::SIGINT);
    run.finish_within(PATIENCE).code(130);
    assert_untouched(&server);

    let resumed = ["--resume", "latest", "--target", &target, "--format", "json"];
    let before = server.calls("setex");
    let run = Started::new(place.run(&[&resumed[..], &[OWN]].concat()));
    let goes_on = || (server.calls("setex") > before + 100).then_some(());
    wait_until("the resumed run measures", PATIENCE, goes_on);
    let conditions = place.record().header()["conditions"].to_string();
    assert!(conditions.contains(OWN), "{conditions}");
    run.signal(Signal::SIGINT);
    run.finish_within(PATIENCE).code(130);

    let limit = field(&server, "used_memory") * 109 / 100;
    server.ask(&["CONFIG", "SET", "maxmemory", &limit.to_string()]);
    assert_contains(&refusal(Place::finish(place.run(&resumed)), "redis"), &["has no room"]);
    assert_untouched(&server);
}

#[test]
fn a_server_that_does_not_report_its_memory_is_refused() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (PortServer::redis(&["--rename-command", "INFO", ""]), Place::new());
    let few = ["--keys", "100"];
    let reason = refusal(Place::finish(bench(&place, &url(&server), &few)), "x");
    assert_contains(&reason, &["does not report how much memory is left", "INFO", OWN]);
    assert_eq!(server.ask(&["-n", "9", "DBSIZE"]), "0");
    Place::finish(bench(&place, &url(&server), &[&few[..], &[OWN]].concat())).measured();
    let server =
        PortServer::redis(&["--user", "default", "on", "nopass", "~*", "&*", "+@all", "-info"]);
    let shared = [&few[..], &["--allow-shared"]].concat();
    let reason = refusal(Place::finish(bench(&place, &url(&server), &shared)), "x");
    assert_contains(&reason, &["does not report how much memory is left"]);
}

#[test]
fn memcached_with_items_is_refused_even_when_shared() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let (server, place) = (PortServer::memcached(&["-m", "4"]), Place::new());
    let address = format!("memcached://127.0.0.1:{}", server.port);
    let items = |server: &PortServer| server.stat("curr_items");
    Place::finish(bench(&place, &address, &["--keys", "500"])).measured();
    assert_eq!(items(&server), 0, "an empty server can be used");
    server.say("set cart:17 0 0 3\r\nyes");
    for more in [&["--keys", "20000"][..], &["--keys", "20000", "--allow-shared"]] {
        let reason = refusal(Place::finish(bench(&place, &address, more)), "x");
        assert_contains(&reason, &["is not empty", OWN, "--allow-shared is not enough"]);
        assert_eq!((items(&server), server.stat("evictions")), (1, 0));
    }
    Place::finish(bench(&place, &address, &["--keys", "500", OWN])).measured();
    assert_eq!(items(&server), 1, "only the foreign item remains");
}

#[test]
fn memory_needs_of_cells_are_not_added() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (redis("allkeys-lru"), Place::new());
    let target = format!("redis={}", url(&server));
    let size = ["--set", "sessions=6000", "--set", "value_bytes=100"];
    let cells = ["--set", "profile=steady,page", "--set", "clients=1", "--target", &target];
    let summary = Place::finish(place.fast(&[&size[..], &cells].concat())).measured().json();
    let operations = ["read", "page.open"].map(|name| count(row(&summary, "redis", name), "ok"));
    assert!(operations.iter().all(|ok| *ok > 0), "{operations:?}");
    assert_untouched(&server);
}

#[test]
fn a_private_server_too_large_for_this_machine_is_refused() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let many = ["--set", "sessions=100000000", "--target", "redis"];
    let command = place.fast_at(&place.records(), &place.disk(), &many);
    let reason = refusal(Place::finish(command), "redis");
    let sum = ["this machine's memory has no room", "100000000 sessions", "90 % of the"];
    assert_contains(&reason, &[&sum[..], &["--set sessions=NUMBER"]].concat());
    place.assert_nothing_left();
}

/// The URL of a server whose memory is a fraction of what a run needs, and flags of that run.
fn small(server: &PortServer, scheme: &str) -> (String, [&'static str; 4]) {
    (format!("{scheme}://127.0.0.1:{}", server.port), ["--keys", "12000", "--value", "8KiB"])
}

#[test]
fn a_small_redis_is_filled_only_with_allow_fill() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = PortServer::redis(&["--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru"]);
    let (place, (url, many)) = (Place::new(), small(&server, "redis"));
    let reason = refusal(Place::finish(bench(&place, &url, &many)), "x");
    assert_contains(&reason, &["12000 keys", "maxmemory of 20 MiB", "--value", "--allow-fill"]);
    assert!(!reason.contains(OWN), "{reason}");
    let mut study = place.run(&["ramp", "--scale", "quick", "--format", "json"]);
    study.args(["--target", &format!("redis={url}"), "--set", "keys=1000000"]);
    assert_contains(&refusal(Place::finish(study), "redis"), &["1000000 keys", "--allow-fill"]);
    assert_eq!(server.calls("set"), 0, "nothing was written");

    let allowed = [&many[..], &["--allow-fill"]].concat();
    Place::finish(bench(&place, &url, &allowed));
    assert!(field(&server, "evicted_keys") > 0, "the server was filled");
    let shown = place.on_records(&["show", "--details"]).stdout;
    assert_contains(&shown, &["existing stores", "--allow-fill"]);

    // Keys of others in any database are not evicted.
    server.ask(&["-n", "5", "SET", "order:1", "foreign"]);
    let reason = refusal(Place::finish(bench(&place, &url, &allowed)), "x");
    assert_contains(&reason, &["12000 keys", "maxmemory of 20 MiB", OWN]);
    assert_eq!(server.ask(&["-n", "5", "DBSIZE"]), "1");
}

#[test]
fn a_redis_without_a_limit_is_not_filled_beyond_its_machine() {
    if !installed(&["redis-server", "redis-cli"]) {
        return;
    }
    let server = PortServer::redis(&[]);
    let (place, url) = (Place::new(), format!("redis://127.0.0.1:{}", server.port));
    // More than 90 % of the memory of this machine, but not more than all of it.
    let keys = (field(&server, "total_system_memory") / 100 * 95 / (64 << 10)).to_string();
    let many = ["--keys", &keys, "--value", "64KiB", "--allow-fill"];
    let reason = refusal(Place::finish(bench(&place, &url, &many)), "x");
    assert_contains(&reason, &["keys", "it has no maxmemory", "once it has a maxmemory"]);
    assert_eq!(server.calls("set"), 0, "nothing was written");
}

#[test]
fn a_small_memcached_is_filled_only_with_allow_fill() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let server = PortServer::memcached(&["-m", "8"]);
    let (place, (url, many)) = (Place::new(), small(&server, "memcached"));
    let reason = refusal(Place::finish(bench(&place, &url, &many)), "x");
    assert_contains(&reason, &["12000 keys", "memory limit (-m) of 8 MiB", "--allow-fill"]);
    assert_eq!(server.stat("cmd_set"), 0, "nothing was written");
    Place::finish(bench(&place, &url, &[&many[..], &["--allow-fill"]].concat()));
    assert!(server.stat("evictions") > 0, "the server was filled");
    assert_eq!(server.stat("curr_items"), 0);
    // Items of others are not evicted.
    server.say("set cart:17 0 0 3\r\nyes");
    let finished = Place::finish(bench(&place, &url, &[&many[..], &["--allow-fill"]].concat()));
    assert_contains(&refusal(finished, "x"), &["is not empty", OWN]);
}
