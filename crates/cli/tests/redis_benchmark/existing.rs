//! Existing keys are reported before the tests change them.

use super::cluster::Cluster;
use super::common::{Program, Ran, Server, form, tools};

/// The single line about existing keys.
#[track_caller]
fn line(ran: &Ran) -> &str {
    let is_it = |line: &&str| line.contains(" holds ") || line.contains("whether it holds");
    let lines: Vec<&str> = ran.stderr.lines().filter(is_it).collect();
    assert_eq!(lines.len(), 1, "{ran:#?}");
    assert_eq!(ran.stderr.find("per request"), ran.stderr.find("\nper request").map(|at| at + 1));
    assert!(ran.stderr.find(lines[0]) < ran.stderr.find("per request"), "{ran:#?}");
    lines[0]
}

#[track_caller]
fn line_contains(ran: &Ran, parts: &[&str]) {
    let line = line(ran);
    for part in parts {
        assert!(line.contains(part), "no `{part}` in {line}");
    }
}

#[test]
fn a_list_emptied_by_lpop_is_reported_and_standard_output_is_unchanged() {
    if !tools() {
        return;
    }
    let server = Server::new();
    for style in [&["-q"][..], &["--csv"], &[]] {
        server.ask(&["FLUSHALL"]);
        server.ask(&["RPUSH", "mylist", "a", "b", "c"]);
        server.ask(&["SET", "order:1", "eggs"]);
        let arguments = [&["-n", "100", "-t", "lpop,set"], style].concat();
        let ran = server.ours(&arguments).code(0);
        line_contains(
            &ran,
            &[
                "warning: ",
                "already holds 2 keys (database 0: 2)",
                "`mylist` (LPOP removes elements)",
            ],
        );
        assert!(!line(&ran).contains("order:1") && !line(&ran).contains("key:"), "{ran:?}");
        assert_eq!(server.ask(&["EXISTS", "mylist"]), "0");
        // In the second run `SET` overwrites the keys of the first.
        let again = server.ours(&arguments).code(0);
        line_contains(&again, &["`key:__rand_int__` (SET overwrites)"]);
        assert!(!line(&again).contains("mylist"), "{again:?}");
        let original = server.run(Program::Original, &arguments).code(0);
        assert_eq!(form(&again.stdout), form(&original.stdout));
    }
}

#[test]
fn keys_are_counted_in_all_databases_and_named_in_the_selected_one() {
    if !tools() {
        return;
    }
    let server = Server::with(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    server.ask(&["-n", "3", "SADD", "myset", "a"]);
    server.ask(&["-n", "1", "MSET", "a", "1", "b", "2"]);
    let ran = server.ours(&["-n", "50", "-q", "-t", "sadd,spop"]).code(0);
    line_contains(
        &ran,
        &["3 keys (database 1: 2, database 3: 1)", "no key that the tests change was found"],
    );
    line_contains(&ran, &["maxmemory 50", "allkeys-lru, keys of any database can be evicted"]);
    let ran = server.ours(&["-n", "50", "-q", "-t", "sadd,spop", "--dbnum", "3"]).code(0);
    line_contains(&ran, &["`myset` (SADD adds elements, SPOP removes elements)"]);
    // Replies use memory as well.
    let ran = server.ours(&["-n", "50", "-q", "lrange", "biglist", "0", "-1"]).code(0);
    line_contains(&ran, &["the tests change none of them", "keys of any database can be evicted"]);
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let ran = server.ours(&["-n", "50", "-q", "-t", "sadd"]).code(0);
    assert!(!line(&ran).contains("maxmemory"), "{ran:?}");
    let ran = server.ours(&["-n", "1000", "-q", "-t", "set", "-d", "100000"]).code(0);
    line_contains(&ran, &["noeviction, writes of all clients can fail"]);
}

#[test]
fn random_names_are_checked_by_sample() {
    if !tools() {
        return;
    }
    let server = Server::new();
    server.ask(&["MSET", "key:000000000007", "a", "key:000000000999", "b", "key:1", "c"]);
    let ran = server.ours(&["-n", "10", "-q", "-t", "set", "-r", "1000"]).code(0);
    line_contains(&ran, &["`key:000000000007` and 1 more (SET overwrites)"]);
    assert!(!line(&ran).contains("possible names"), "{ran:?}");
    server.ask(&["FLUSHALL"]);
    server.ask(&["SET", "counter:000000654321", "1"]);
    let ran = server.ours(&["-n", "10", "-q", "-t", "incr", "-r", "1000000"]).code(0);
    line_contains(
        &ran,
        &["`counter:000000654321` (INCR", "1000 of 1000000 possible names were checked"],
    );
    server.ask(&["FLUSHALL"]);
    server.ask(&["SET", "counter:000000654321", "1"]);
    let ran = server.ours(&["-n", "10", "-q", "-t", "incr", "-r", "1000"]).code(0);
    line_contains(&ran, &["no key that the tests change was found"]);
}

#[test]
fn keys_of_custom_commands_are_reported() {
    if !tools() {
        return;
    }
    let server = Server::new();
    server.ask(&["MSET", "cart:1", "a", "cart:2", "b"]);
    let ran = server.ours(&["-n", "1", "-q", "GET", "cart:1"]).code(0);
    line_contains(&ran, &["the tests change none of them"]);
    let ran = server.ours(&["-n", "1", "-q", "rename", "cart:1", "cart:3"]).code(0);
    line_contains(&ran, &["`cart:1` (RENAME changes)"]);
    let ran = server.ours(&["-n", "1", "-q", "DEL", "cart:3", "cart:9"]).code(0);
    line_contains(&ran, &["change `cart:3` (DEL removes)"]);
    assert!(!line(&ran).contains("cart:9"), "{ran:?}");
    let ran = server.ours(&["-n", "1", "-q", "FLUSHALL"]).code(0);
    line_contains(&ran, &["1 key ", "`FLUSHALL` can change any of them"]);
}

#[test]
fn missing_permissions_are_reported() {
    if !tools() {
        return;
    }
    let server = Server::new();
    server.ask(&["RPUSH", "mylist", "a"]);
    let rules =
        ["ACL", "SETUSER", "poor", "on", ">p", "~*", "+@all", "-info", "-dbsize", "-exists"];
    server.ask(&rules);
    let login = ["--user", "poor", "-a", "p", "-n", "10", "-q", "-t", "lpop"];
    let ran = server.ours(&login).code(0);
    line_contains(
        &ran,
        &[
            "does not report whether it holds keys (NOPERM",
            "change `mylist` (LPOP removes elements) if they exist",
        ],
    );
    line_contains(&ran, &["which is unknown (NOPERM", "unknown whether it evicts keys"]);
}

#[test]
fn all_servers_of_a_cluster_are_checked() {
    if !tools() {
        return;
    }
    let cluster = Cluster::with(0, &[]);
    let arguments = ["--cluster", "-n", "300", "-q", "-t", "lpush,set", "-r", "50"];
    let ran = cluster.first().ours(&arguments).code(0);
    ran.without_stderr(" holds ");
    let ran = cluster.first().ours(&arguments).code(0);
    line_contains(
        &ran,
        &["`mylist:{", "and 2 more (LPUSH adds elements)", "`key:{", "(SET overwrites)"],
    );
}
