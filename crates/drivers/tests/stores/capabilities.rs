//! What the program says that stores can do ([`model::capability`]), checked on real servers.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::common::{Server, installed, wait_until};
use model::{Product, Property};

/// The fact about a product, and whether it has the property.
fn fact(product: Product, property: Property) -> (&'static str, Option<bool>) {
    let own = product.capabilities().iter().find(|c| c.property == property).unwrap();
    (own.text, own.has)
}

/// The first line of a memcached server's reply.
fn ask(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(request).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().into()
}

/// A setting of a memcached server.
fn setting(socket: &Path, name: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"stats settings\r\nquit\r\n").unwrap();
    let lines: Vec<String> = BufReader::new(stream).lines().map(Result::unwrap).collect();
    let own = lines.iter().find_map(|l| l.strip_prefix(&format!("STAT {name} "))).unwrap();
    own.into()
}

#[test]
fn redis_has_types_replication_and_a_cluster() {
    if !installed("redis-server") {
        return;
    }
    let primary = Server::redis(&[]);
    let made = [
        (&["HSET", "h", "a", "1"][..], "hash"),
        (&["RPUSH", "l", "a"][..], "list"),
        (&["SADD", "s", "a"][..], "set"),
        (&["ZADD", "z", "1", "a"][..], "zset"),
        (&["XADD", "x", "*", "a", "1"][..], "stream"),
    ];
    for (command, kind) in made {
        primary.redis_cli(command);
        assert_eq!(primary.redis_cli(&["TYPE", command[1]]), kind);
    }
    let (text, has) = fact(Product::Redis, Property::Types);
    assert!(has == Some(true) && text.contains("hashes, lists, sets, sorted sets, streams"));
    assert_eq!(fact(Product::Redis, Property::Replication).1, Some(true));
    let port = rig::free_port(0).unwrap();
    primary.redis_cli(&["CONFIG", "SET", "port", &port.to_string()]);
    let replica = Server::redis(&["--replicaof", &format!("127.0.0.1 {port}")]);
    wait_until("the replica has the data", || replica.redis_cli(&["EXISTS", "h"]) == "1");
    let member = Server::redis(&["--cluster-enabled", "yes"]);
    assert!(member.redis_cli(&["CLUSTER", "INFO"]).contains("cluster_slots_assigned:0"));
    assert!(fact(Product::Redis, Property::Growth).0.contains("slots"));
}

#[test]
fn redis_has_these_limits_threads_and_snapshots() {
    if !installed("redis-server") {
        return;
    }
    let mut server = Server::redis(&[]);
    let config = |name: &str| {
        let reply = server.redis_cli(&["CONFIG", "GET", name]);
        reply.lines().nth(1).unwrap_or_default().to_string()
    };
    assert_eq!(config("proto-max-bulk-len"), (512 << 20).to_string());
    assert!(fact(Product::Redis, Property::LargestValue).0.starts_with("512 MiB"));
    assert_eq!(config("io-threads"), "1");
    assert!(fact(Product::Redis, Property::Threads).0.contains("io-threads, 1 by default"));
    assert_eq!(fact(Product::Redis, Property::Persistence).1, Some(true));
    server.redis_cli(&["SET", "kept", "1"]);
    server.redis_cli(&["SAVE"]);
    let saved = std::fs::read(server.directory.path().join("dump.rdb")).unwrap();
    server.end();
    let next = tempfile::tempdir().unwrap();
    std::fs::write(next.path().join("dump.rdb"), saved).unwrap();
    let again = Server::redis(&["--dir", next.path().to_str().unwrap()]);
    assert_eq!(again.redis_cli(&["GET", "kept"]), "1");
}

#[test]
fn memcached_has_bytes_in_memory_only() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&[]);
    for command in ["lpush l a\r\n", "hset h a 1\r\n", "replicaof 127.0.0.1 11211\r\n"] {
        assert_eq!(ask(&server.socket, command.as_bytes()), "ERROR", "{command}");
    }
    assert_eq!(ask(&server.socket, b"set n 0 0 1\r\n7\r\n"), "STORED");
    assert_eq!(ask(&server.socket, b"incr n 1\r\n"), "8");
    for property in [Property::Types, Property::Persistence, Property::Replication] {
        assert_eq!(fact(Product::Memcached, property).1, Some(false), "{property}");
    }
    assert_eq!(setting(&server.socket, "num_threads"), "4");
    assert!(fact(Product::Memcached, Property::Threads).0.starts_with("4 workers"));
    assert_eq!(setting(&server.socket, "item_size_max"), (1 << 20).to_string());
    let set = |bytes: usize| {
        let mut request = format!("set large 0 0 {bytes}\r\n").into_bytes();
        request.resize(request.len() + bytes, b'x');
        request.extend_from_slice(b"\r\n");
        ask(&server.socket, &request)
    };
    assert_eq!(set((1 << 20) - 1_000), "STORED");
    assert_eq!(set(1 << 20), "SERVER_ERROR object too large for cache");
    assert!(fact(Product::Memcached, Property::LargestValue).0.starts_with("1 MiB with its key"));
    let larger = Server::memcached(&["-I", "1024m", "-m", "2048"]);
    assert_eq!(setting(&larger.socket, "item_size_max"), (1_u64 << 30).to_string());
}

#[test]
fn mariadb_has_these_limits_and_threads() {
    if !installed("mariadbd") {
        return;
    }
    let server = Server::mariadb();
    assert_eq!(server.sql("SELECT @@max_allowed_packet"), (16 << 20).to_string());
    assert!(fact(Product::Mysql, Property::LargestValue).0.contains("16 MiB per statement"));
    assert_eq!(server.sql("SELECT @@thread_handling"), "one-thread-per-connection");
    assert_eq!(fact(Product::Mysql, Property::Threads).0, "one per connection");
    assert_eq!(server.sql("SELECT @@rpl_semi_sync_master_enabled"), "0");
    assert_eq!(fact(Product::Mysql, Property::Replication).1, Some(true));
}

#[test]
fn postgres_serves_each_connection_by_a_process() {
    if super::common::postgres_program("postgres").is_empty() {
        eprintln!("skipped: PostgreSQL is not installed");
        return;
    }
    let server = Server::postgres();
    let [one, two] =
        [(), ()].map(|()| server.postgres_sql("SELECT pg_backend_pid()").parse::<u32>().unwrap());
    assert_ne!(one, two);
    assert_eq!(fact(Product::Postgres, Property::Threads).0, "one process per connection");
    let wal: u64 = server.postgres_sql("SELECT count(*) FROM pg_ls_waldir()").parse().unwrap();
    assert!(wal > 0 && fact(Product::Postgres, Property::Persistence).1 == Some(true));
    assert_ne!(server.postgres_sql("SHOW max_wal_senders"), "0");
    assert_eq!(fact(Product::Postgres, Property::Replication).1, Some(true));
}

/// SQLite's own defaults, by its shell.
#[test]
fn sqlite_has_this_limit() {
    if !installed("sqlite3") {
        return;
    }
    let output = std::process::Command::new("sqlite3")
        .args([":memory:", ".limit length", "SELECT length(zeroblob(1000000001))"])
        .output()
        .unwrap();
    let (shown, refused) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("1000000000"), "{shown}");
    assert!(refused.contains("too big"), "{refused}");
    assert_eq!(fact(Product::Sqlite, Property::LargestValue).0, "1,000,000,000 bytes");
}
