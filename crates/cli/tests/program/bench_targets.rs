//! `bench` on real servers: memcached, TLS, clusters, RESP3.

use serde_json::Value;
use std::fs;
use std::process::Command;

use super::common::{
    Certificates, Cluster, Defect, Fake, Finished, Place, PortServer, among, count, installed, row,
    target,
};

/// A short `bench` with these arguments; prints the summary as JSON.
fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("bench").args(arguments);
    command.args(["--duration", "200ms", "--warmup", "50ms", "--blocks", "2", "--format", "json"]);
    command.args(["--keys", "1500", "--clients", "4", "--verify", "1", "--pipeline", "4"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// Runs [`bench`] to the end in a new place.
fn ran(arguments: &[&str]) -> Finished {
    Place::finish(bench(&Place::new(), arguments))
}

/// Asserts that no operation of a target failed and that every value read was verified.
#[track_caller]
fn assert_good(summary: &Value, name: &str) {
    for operation in ["mixed", "mixed.get", "mixed.set"] {
        let row = row(summary, name, operation);
        assert!(count(row, "ok") > 50, "{row}");
        for bad in ["error", "wrong", "miss"] {
            assert_eq!(count(row, bad), 0, "{bad} of {row}");
        }
    }
    let get = row(summary, name, "mixed.get");
    assert_eq!(count(get, "verified"), count(get, "ok"));
}

/// Asserts that the target was not run for a reason that contains all of `parts`.
#[track_caller]
fn assert_not_run(finished: Finished, name: &str, parts: &[&str]) {
    let summary = finished.code(3).json();
    let reason = target(&summary, name)["not_run"].as_str().unwrap().to_string();
    for part in parts {
        assert!(reason.contains(part), "no `{part}` in {reason}");
    }
}

#[test]
fn a_server_of_another_protocol_is_reported() {
    if !installed(&["redis-server", "memcached", "setpriv"]) {
        return;
    }
    let (memcached, redis) = (PortServer::memcached(&[]), PortServer::redis(&[]));
    let url = format!("x=redis://127.0.0.1:{}/0", memcached.port);
    assert_not_run(ran(&[&url]), "x", &["byte 0x45", "is this memcached?", "memcached://"]);
    let url = format!("x=memcached://127.0.0.1:{}", redis.port);
    assert_not_run(ran(&[&url]), "x", &["`-ERR", "is this Redis?", "redis://"]);
}

#[test]
fn a_server_with_only_set_and_get_is_measured() {
    let fake = Fake::new(Defect::KnowsLittle);
    assert_not_run(
        ran(&[&fake.url()]),
        "redis",
        &["does not report whether it is empty", "--allow-shared"],
    );
    let owned = "--i-own-this-server";
    let expected = ["does not report how much memory is left", owned];
    assert_not_run(ran(&[&fake.url(), "--allow-shared"]), "redis", &expected);
    let summary = ran(&[&fake.url(), "--allow-shared", owned]).measured().json();
    assert_good(&summary, "redis");
    let product = row(&summary, "redis", "mixed")["product"].as_str().unwrap().to_string();
    assert!(product.contains("unknown version"), "{product}");
    // The server cannot list its keys, so none are removed.
    assert!(fake.keys() >= 1_500);
}

#[test]
fn a_fill_writes_only_data_that_the_operations_can_use() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let summary = ran(&["redis", "--op", "incr=1"]).measured().json();
    let incr = row(&summary, "redis", "incr");
    assert!(count(incr, "ok") > 50 && count(incr, "error") == 0, "{incr}");
    let hset = ["redis", "--command", "HSET __key__ field __data__"];
    let summary = ran(&hset).measured().json();
    let hset = row(&summary, "redis", "hset");
    assert!(count(hset, "ok") > 50 && count(hset, "error") == 0, "{hset}");
}

#[test]
fn an_unsafe_command_needs_a_private_server() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let fake = Fake::new(Defect::KnowsLittle);
    let expected = ["--command `FlushAll`", "not on the list of safe commands"];
    ran(&[&fake.url(), "--command", "FlushAll"]).usage_error(&expected);
    assert_eq!(fake.keys(), 0);
    ran(&["redis", "--command", "FLUSHALL"]).measured();
}

#[test]
fn private_servers_of_two_products_are_compared() {
    if !installed(&["redis-server", "memcached", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let sets = ["--set", "memcached.threads=1", "--set", "redis.save="];
    let arguments = [&["redis", "memcached"], &sets[..]].concat();
    let summary = Place::finish(bench(&place, &arguments)).measured().json();
    assert_good(&summary, "redis");
    assert_good(&summary, "memcached");
    let memcached = target(&summary, "memcached");
    assert!(memcached["product"].as_str().unwrap().starts_with("memcached 1."), "{memcached}");
    assert_eq!(memcached["settings"]["threads"], "1", "{memcached}");
    let cpu = &row(&summary, "memcached", "mixed")["metrics"]["server_cpu_ns_per_op"]["center"];
    assert!(cpu.as_f64().unwrap() > 0.0, "{cpu}");
    let compared = among(&summary["comparisons"], |c| {
        let pair = [&c["a"], &c["b"]].map(|name| name.as_str().unwrap_or_default().to_string());
        c["operation"] == "mixed" && pair.contains(&"redis".into()) && pair[0] != pair[1]
    });
    assert!(!compared.is_empty(), "{}", summary["comparisons"]);
    let shown = place.on_records(&["show", "--details"]).measured().stdout;
    assert!(shown.contains("durability of memcached: nothing is stored on disk"), "{shown}");
    place.assert_nothing_left();
}

#[test]
fn an_existing_memcached_keeps_foreign_data() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let server = PortServer::memcached(&[]);
    let text = format!("x=memcached://127.0.0.1:{}", server.port);
    assert_good(&ran(&[&text]).measured().json(), "x");
    assert_eq!(server.stat("curr_items"), 0, "keys are left");

    // Every trial starts with an empty store, even with key names of varying lengths.
    let arguments = [&*text, "--key-size", "40-60", "--ttl", "60s"];
    assert_good(&ran(&arguments).measured().json(), "x");
    assert_eq!(server.stat("curr_items"), 0, "keys are left");

    assert!(server.say("set key:000000000001 0 0 5\r\nother").contains("STORED"));
    assert_not_run(ran(&[&text]), "x", &["is not empty", "--allow-shared"]);
    assert_good(&ran(&[&text, "--i-own-this-server"]).measured().json(), "x");
    assert_eq!(server.stat("curr_items"), 1);
    assert!(server.say("get key:000000000001").contains("\r\nother\r\n"));
    assert_eq!(server.stat("cmd_flush"), 0);
}

#[test]
fn memcached_meta_commands_are_used_on_request() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    for (query, expected, unexpected) in [
        // `get` reads back the written values.
        ("?protocol=meta", [" mg ", " ms "], &[" set "][..]),
        ("", [" get ", " set "], &[" mg ", " ms "]),
    ] {
        // Logs every request.
        let server = PortServer::memcached(&["-vv"]);
        let url = format!("x=memcached://127.0.0.1:{}{query}", server.port);
        assert_good(&ran(&[&url, "--key-prefix", "load:"]).measured().json(), "x");
        let log = server.log();
        let of_load = || log.lines().filter(|line| line.contains("load:"));
        for word in expected {
            assert!(of_load().filter(|line| line.contains(word)).count() > 50, "no {word}");
        }
        assert!(!of_load().any(|line| unexpected.iter().any(|word| line.contains(word))));
        assert_eq!(server.stat("curr_items"), 0, "keys are left");
    }
}

#[test]
fn keys_are_spread_over_several_memcached_servers() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let servers = [PortServer::memcached(&[]), PortServer::memcached(&[])];
    let [one, two] = [servers[0].port, servers[1].port];
    let url = format!("pair=memcached://127.0.0.1:{one},127.0.0.1:{two}");
    let place = Place::new();
    let summary = Place::finish(bench(&place, &[&url])).measured().json();
    assert_good(&summary, "pair");
    let shown = &target(&summary, "pair")["place"];
    let expected = format!("127.0.0.1:{one} and 127.0.0.1:{two}");
    assert_eq!(shown.as_str(), Some(&*expected));
    for server in &servers {
        assert!(server.stat("get_hits") > 50, "a server received too few requests");
        assert_eq!(server.stat("curr_items"), 0, "keys are left");
    }
    // Data on one server makes the target non-empty.
    assert!(servers[1].say("set a 0 0 1\r\nx").contains("STORED"));
    assert_not_run(ran(&[&url]), "pair", &["is not empty"]);
}

#[test]
fn memcached_accounts_are_used_and_never_recorded() {
    if !installed(&["memcached", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let accounts = place.write("accounts", "ann:let-me-in-73\n").display().to_string();
    let server = PortServer::memcached(&["-Y", &accounts]);
    let url = |login: &str| format!("x=memcached://{login}127.0.0.1:{}", server.port);
    let finished = Place::finish(bench(&place, &[&url("ann:let-me-in-73@")])).measured();
    assert_good(&finished.json(), "x");
    assert!(!(finished.stdout + &finished.stderr).contains("let-me-in-73"));
    for entry in fs::read_dir(&place.all_records()[0]).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("let-me-in-73"), "in the record");
    }
    assert_not_run(
        ran(&[&url("ann:wrong@")]),
        "x",
        &["denied", "rejected the user or the password"],
    );
    assert_not_run(ran(&[&url("")]), "x", &["denied"]);
    let alone = ran(&[&url("ann@")]).code(2).stderr;
    assert!(alone.contains("a user but no password"), "{alone}");
    let open = PortServer::memcached(&[]);
    let login = format!("x=memcached://ann:let-me-in-73@127.0.0.1:{}", open.port);
    assert_not_run(ran(&[&login]), "x", &["does not require a user and password"]);
    assert_eq!(open.stat("curr_items"), 0, "the login was stored as a value");
}

#[test]
fn tls_is_verified_unless_disabled() {
    if !installed(&["redis-server", "openssl", "setpriv"]) {
        return;
    }
    let certificates = Certificates::new(&[
        ("here", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ("elsewhere", "subjectAltName=DNS:elsewhere.example"),
        ("client", "extendedKeyUsage=clientAuth"),
    ]);
    let ca = certificates.path("ca.pem");
    let server = certificates.redis("here", &["--tls-auth-clients", "no", "--requirepass", "pw"]);
    let url = format!("x=rediss://:pw@localhost:{}/1", server.port);
    assert_good(&ran(&[&url, "--cacert", &ca]).measured().json(), "x");
    assert_not_run(ran(&[&url]), "x", &["not issued by a trusted authority", "--cacert"]);

    let place = Place::new();
    let finished = Place::finish(bench(&place, &[&url, "--tls-insecure"])).measured();
    assert_good(&finished.json(), "x");
    let facts = &finished.json()["conditions"]["facts"];
    let found = among(facts, |fact| fact["name"] == "TLS of x");
    assert!(found[0]["warning"].as_str().unwrap().contains("identity is unknown"), "{facts}");
    let header = fs::read_to_string(place.all_records()[0].join("header.json")).unwrap();
    assert!(header.contains("TLS without verification") && header.contains("--tls-insecure"));
    let shown = place.on_records(&["show", "--details"]).measured().stdout;
    assert!(shown.contains("! TLS of x: not verified"), "{shown}");

    let elsewhere = certificates.redis("elsewhere", &["--tls-auth-clients", "yes"]);
    let url = format!("x=rediss://localhost:{}", elsewhere.port);
    let [cert, key] = ["client.pem", "client.key"].map(|name| certificates.path(name));
    let files = ["--cacert", &ca, "--cert", &cert, "--key", &key];
    let with = |more: &[&str]| ran(&[&[&*url], &files[..], more].concat());
    assert_not_run(with(&[]), "x", &["certificate is for another name", "--sni"]);
    assert_good(&with(&["--sni", "elsewhere.example"]).measured().json(), "x");
}

#[test]
fn memcached_is_measured_over_tls() {
    if !installed(&["memcached", "openssl", "setpriv"]) {
        return;
    }
    let certificates = Certificates::new(&[("here", "subjectAltName=DNS:localhost")]);
    let [ca, cert, key] = ["ca.pem", "here.pem", "here.key"].map(|name| certificates.path(name));
    let files = format!("ssl_chain_cert={cert},ssl_key={key}");
    let server = PortServer::memcached(&["-Z", "-o", &files]);
    let url = format!("x=memcacheds://localhost:{}", server.port);
    assert_good(&ran(&[&url, "--cacert", &ca]).measured().json(), "x");
    assert_not_run(ran(&[&url]), "x", &["not issued by a trusted authority"]);
    let plain = url.replace("memcacheds", "memcached");
    assert_not_run(ran(&[&plain]), "x", &["requires TLS on this port", "memcacheds://"]);
}

#[test]
fn a_cluster_is_measured_on_every_server_and_left_unchanged() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let cluster = Cluster::new();
    let port = cluster.0[1].port;
    let url = format!("c=redis+cluster://127.0.0.1:{port}");
    let summary = ran(&[&url]).measured().json();
    assert_good(&summary, "c");
    assert!(target(&summary, "c")["place"].as_str().unwrap().contains(", cluster"));
    for server in &cluster.0 {
        assert!(server.calls("get") > 50, "a server received too few requests");
        let refused = server.ask(&["INFO", "errorstats"]);
        assert!(!refused.contains("MOVED"), "sent to the wrong server: {refused}");
    }
    assert_eq!(cluster.sizes(), [0, 0, 0], "keys are left");

    // `foo` has slot 12182, which is the last server's.
    cluster.0[2].ask(&["SET", "foo", "other"]);
    assert_not_run(ran(&[&url]), "c", &["is not empty"]);
    let query = format!("c=redis://127.0.0.1:{port}?cluster=true&protocol=3");
    assert_good(&ran(&[&query, "--allow-shared"]).measured().json(), "c");
    assert_eq!(cluster.sizes(), [0, 0, 1]);
    assert_eq!(cluster.0[2].ask(&["GET", "foo"]), "other");
}

#[test]
fn a_cluster_can_migrate_slots_during_a_run() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let cluster = Cluster::new();
    let [from, to] = [&cluster.0[0], &cluster.0[1]];
    let (from_id, to_id) = (from.ask(&["CLUSTER", "MYID"]), to.ask(&["CLUSTER", "MYID"]));
    // Slot 0 is migrating and empty, so requests for it are redirected with ASK.
    to.ask(&["CLUSTER", "SETSLOT", "0", "IMPORTING", &from_id]);
    from.ask(&["CLUSTER", "SETSLOT", "0", "MIGRATING", &to_id]);
    let url = format!("c=redis+cluster://127.0.0.1:{}", from.port);
    // The hash tag puts all keys into slot 0.
    let arguments = [&*url, "--key-prefix", "{06S}:"];
    assert_eq!(from.ask(&["CLUSTER", "KEYSLOT", "{06S}"]), "0");
    assert_good(&ran(&arguments).measured().json(), "c");
    assert!(to.calls("asking") > 100 && to.calls("get") > 50);
    assert_eq!(cluster.sizes(), [0, 0, 0], "keys are left");
}

#[test]
fn a_single_cluster_node_is_reported() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let cluster = Cluster::new();
    let server = PortServer::redis(&[]);
    let url = format!("x=redis+cluster://127.0.0.1:{}", server.port);
    assert_not_run(
        ran(&[&url]),
        "x",
        &["does not report a usable cluster", "cluster support disabled"],
    );
    for server in &cluster.0 {
        let url = format!("x=redis://127.0.0.1:{}", server.port);
        assert_not_run(ran(&[&url]), "x", &["expected redis+cluster://HOST:PORT"]);
    }
    assert_eq!(cluster.sizes(), [0, 0, 0], "keys are left");
}

#[test]
fn resp3_is_used_on_request() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = PortServer::redis(&[]);
    let url = format!("x=redis://127.0.0.1:{}/2", server.port);
    assert_good(&ran(&[&url]).measured().json(), "x");
    assert_eq!(server.calls("hello"), 0);
    let summary = ran(&[&format!("{url}?protocol=3")]).measured().json();
    assert_good(&summary, "x");
    assert!(target(&summary, "x")["place"].as_str().unwrap().ends_with("database 2, RESP3"));
    // Two blocks with four clients each.
    assert!(server.calls("hello") >= 8);
}

#[test]
fn unsuitable_options_are_refused_before_anything_starts() {
    let place = Place::new();
    for (arguments, parts) in [
        (&["mysql"][..], &["`mysql` is not a key-value server", "`memcached`"][..]),
        (&["memcached", "--op", "lpush=1"], &["--op", "`lpush`", "touch"]),
        (&["memcached", "--ttl", "2592001s"], &["--op", "2592001"]),
        (&["memcached", "--key-size", "300"], &["300", "250"]),
        (&["memcached", "--set", "port=1"], &["--set", "`port`", "docs/FORMAT.md"]),
        (&["memcached", "--set", "redis.save="], &["--set `redis.save=`", "has no effect"]),
        (
            &["redis", "memcached", "--set", "save="],
            &["ambiguous with several products", "redis.save"],
        ),
        (&["redis", "--set", "masterauth=x"], &["--set", "`masterauth`", "docs/FORMAT.md"]),
        (&["x=memcached://h/1"], &["`/1`", "no databases"]),
        (&["x=memcached://h:1,h:1"], &["duplicate: `h:1`"]),
        (&["x=redis://h?protocol=9"], &["`9`", "2 or 3"]),
        (&["x=redis+cluster://h/4"], &["`4`", "a cluster has no other"]),
        (&["x=redis://h?tls=1"], &["`tls`, which is unknown"]),
        (&["redis", "--cacert", "/no/such"], &["--cacert has no effect", "rediss://"]),
    ] {
        let mut command = place.command();
        command.arg("bench").args(arguments).args(["--keys", "500"]);
        Place::finish(command).usage_error(parts);
    }
    for target in ["x=memcached://127.0.0.1", "memcached", "x=redis+cluster://127.0.0.1"] {
        let finished = Place::finish(place.run(&["sessions", "--target", target]));
        finished.usage_error(&["target `", "`bench`"]);
    }
    assert_eq!(place.all_records().len(), 0);
    place.assert_nothing_left();
}

#[test]
fn a_server_without_tls_is_reported() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let server = PortServer::redis(&[]);
    let url = format!("x=rediss://127.0.0.1:{}", server.port);
    let arguments = [&*url, "--tls-insecure", "--timeout", "1s"];
    assert_not_run(ran(&arguments), "x", &["does not use TLS on this port", "redis://"]);
}

#[test]
fn unreadable_tls_files_are_named() {
    let arguments = ["x=rediss://127.0.0.1:1", "--cacert", "/no/such"];
    assert_not_run(ran(&arguments), "x", &["`/no/such` is not a file of authorities"]);
}
