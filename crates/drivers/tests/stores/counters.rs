//! Statistics that servers report while they are in use.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::common::{Server, installed, options, patience, postgres_program};
use cachedyno_drivers::{admin, open_page_store, open_session_store};
use model::{
    BackgroundWrite, Connections, Endpoint, ErrorClass, Layout, NetAddress, StoreCounters,
};
use nix::mount::{MsFlags, mount, umount};
use nix::sys::signal::Signal;

const TIMEOUT: Duration = Duration::from_secs(5);

fn statistics(endpoint: &Endpoint) -> StoreCounters {
    admin(endpoint, TIMEOUT).unwrap().counters().unwrap().unwrap()
}

/// The increase of each counter.
fn grown(
    before: &StoreCounters,
    after: &StoreCounters,
    of: fn(&StoreCounters) -> Option<u64>,
) -> u64 {
    of(after).unwrap() - of(before).unwrap()
}

#[test]
fn a_save_that_fails_after_its_start_is_told() {
    if !installed("redis-server") {
        return;
    }
    let small = tempfile::tempdir().unwrap();
    let size = Some("size=256k");
    if let Err(e) = mount(Some("tmpfs"), small.path(), Some("tmpfs"), MsFlags::empty(), size) {
        eprintln!("skipped: cannot mount a small file system: {e}");
        return;
    }
    let directory = small.path().to_str().unwrap();
    let server = Server::redis(&["--rdbcompression", "no", "--dir", directory]);
    let endpoint = server.redis_endpoint(None);
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    let mut save = || {
        admin.write(BackgroundWrite::Save).unwrap();
        while admin.counters().unwrap().unwrap().saving != Some(0) {
            thread::sleep(Duration::from_millis(5));
        }
        admin.write_failure(BackgroundWrite::Save).unwrap()
    };
    let whole = save();
    let mut store = open_session_store(&endpoint, &options(Path::new(""))).unwrap();
    store.create("a", &vec![7; 600_000]).unwrap();
    let failed = save();
    drop((store, server));
    umount(small.path()).unwrap();
    assert_eq!(whole, None);
    let failure = failed.unwrap();
    assert_eq!(failure.class, ErrorClass::Full);
    assert!(failure.message.contains("the save of unix socket"), "{failure}");
    assert!(failure.message.contains("began and failed: its disk was full"), "{failure}");
}

#[test]
fn redis_counts_operations() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&["--maxmemory", "100mb"]);
    let endpoint = server.redis_endpoint(None);
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    let mut store = open_session_store(&endpoint, &options(Path::new(""))).unwrap();
    let before = admin.counters().unwrap().unwrap();
    let mut value = Vec::new();
    for n in 0..20 {
        store.create(&format!("s{n}"), &[7; 1000]).unwrap();
    }
    for n in 0..25 {
        store.read(&format!("s{n}"), &mut value).unwrap();
    }
    let after = admin.counters().unwrap().unwrap();
    let grown = |of| grown(&before, &after, of);
    // Each sample counts as a command, too.
    assert_eq!(grown(|c| c.commands), 46, "{before:?} {after:?}");
    assert_eq!((grown(|c| c.hits), grown(|c| c.misses)), (20, 5));
    assert_eq!((grown(|c| c.keys), after.keys), (20, Some(20)));
    assert!(grown(|c| c.used_bytes) >= 20_000, "{after:?}");
    assert!(grown(|c| c.received_bytes) >= 20_000 && grown(|c| c.sent_bytes) >= 20_000);
    assert_eq!(after.connections, Some(2));
    assert_eq!(after.limit_bytes, Some(100 << 20));
    assert!(after.fragmentation.is_some_and(|f| f > 0.1), "{after:?}");
    assert_eq!((after.refused, after.evicted, after.expired), (Some(0), Some(0), Some(0)));
    // Redis deletes a key whose time is over when `PEXPIRE` runs without counting it as expired,
    // so the time is longer than any pause of the server.
    server.redis_cli(&["PEXPIRE", "s0", "500"]);
    server.redis_cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"]);
    thread::sleep(Duration::from_millis(550));
    assert_eq!(server.redis_cli(&["EXISTS", "s0"]), "0");
    server.redis_cli(&["CONFIG", "SET", "maxmemory", "1"]);
    server.redis_cli(&["PING"]);
    let full = admin.counters().unwrap().unwrap();
    assert_eq!(full.expired, Some(1), "{full:?}");
    assert!(full.evicted > Some(0), "{full:?}");
}

#[test]
fn redis_counts_refused_connections() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&["--maxclients", "2"]);
    let endpoint = server.redis_endpoint(None);
    let mut asking = admin(&endpoint, TIMEOUT).unwrap();
    let _other = admin(&endpoint, TIMEOUT).unwrap();
    assert!(admin(&endpoint, TIMEOUT).is_err());
    let counters = asking.counters().unwrap().unwrap();
    assert_eq!((counters.refused, counters.connections), (Some(1), Some(2)));
}

/// Servers before version 7 accept one section of `INFO` per request.
#[test]
fn an_older_redis_is_queried_by_section() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    server.redis_cli(&["SET", "a", "1"]);
    let direct = statistics(&server.redis_endpoint(None));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = server.socket.clone();
    let proxy = thread::spawn(move || older(&listener, &socket));
    let endpoint = Endpoint::redis(NetAddress::Tcp("127.0.0.1".into(), port));
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    let first = admin.counters().unwrap().unwrap();
    let second = admin.counters().unwrap().unwrap();
    drop(admin);
    assert_eq!((first.keys, first.limit_bytes), (Some(1), None));
    assert_eq!(first.connections, direct.connections);
    assert!(second.commands > first.commands && first.used_bytes.is_some(), "{first:?}");
    // The rejected form was tried once.
    assert_eq!(proxy.join().unwrap(), 1);
}

/// A proxy that forwards commands until the client disconnects but rejects `INFO` with several
/// sections, like versions before 7; returns the number of rejections.
fn older(listener: &TcpListener, socket: &Path) -> u32 {
    let (client, _) = listener.accept().unwrap();
    let mut server = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let mut answers = BufReader::new(server.try_clone().unwrap());
    let mut requests = BufReader::new(client.try_clone().unwrap());
    let mut client = client;
    let mut refused = 0;
    loop {
        let mut head = String::new();
        if requests.read_line(&mut head).unwrap() == 0 {
            return refused;
        }
        let words: usize = head.trim_start_matches('*').trim().parse().unwrap();
        let mut request = head;
        for _ in 0..2 * words {
            requests.read_line(&mut request).unwrap();
        }
        if request.contains("INFO") && words > 2 {
            refused += 1;
            client.write_all(b"-ERR syntax error\r\n").unwrap();
            continue;
        }
        server.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        if let Some(bytes) = answer.strip_prefix('$') {
            let mut block = vec![0; bytes.trim().parse::<usize>().unwrap() + 2];
            std::io::Read::read_exact(&mut answers, &mut block).unwrap();
            answer += std::str::from_utf8(&block).unwrap();
        }
        client.write_all(answer.as_bytes()).unwrap();
    }
}

#[test]
fn a_redis_that_denies_info_reports_nothing() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    server.redis_cli(&["ACL", "SETUSER", "default", "-info"]);
    let mut admin = admin(&server.redis_endpoint(None), TIMEOUT).unwrap();
    assert_eq!(admin.counters(), Ok(None));
}

#[test]
fn a_stopped_server_times_out() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut admin = admin(&server.redis_endpoint(None), Duration::from_millis(200)).unwrap();
    server.freeze();
    let failure = admin.counters().unwrap_err();
    server.signal(Signal::SIGCONT);
    assert_eq!(failure.class, model::ErrorClass::Timeout);
}

#[test]
fn memcached_counts_operations() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&["-m", "64"]);
    let mut admin = admin(&server.memcached_endpoint(), TIMEOUT).unwrap();
    let before = admin.counters().unwrap().unwrap();
    for n in 0..5 {
        admin.probe(&format!("probe{n}")).unwrap();
    }
    let after = admin.counters().unwrap().unwrap();
    let grown = |of| grown(&before, &after, of);
    // Each probe stores, reads and removes a key.
    assert_eq!(grown(|c| c.commands), 15, "{before:?} {after:?}");
    assert_eq!((grown(|c| c.hits), grown(|c| c.misses), after.keys), (5, 0, Some(0)));
    assert!(grown(|c| c.received_bytes) > 100 && grown(|c| c.sent_bytes) > 100, "{after:?}");
    assert_eq!(after.limit_bytes, Some(64 << 20));
    assert_eq!(after.evicted, Some(0));
    assert!(after.connections >= Some(1), "{after:?}");
    assert_eq!(after.fragmentation, None);
}

#[test]
fn mariadb_counts_operations() {
    if !installed("mariadbd") {
        return;
    }
    let server = Server::mariadb();
    let endpoint = server.mysql_endpoint("root", None);
    let mut options = options(Path::new(""));
    options.connections = Connections::Persistent;
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    admin.prepare(Layout::Plain, &options.table, 1000).unwrap();
    let mut store = open_session_store(&endpoint, &options).unwrap();
    let before = admin.counters().unwrap().unwrap();
    for n in 0..10 {
        store.create(&format!("s{n}"), &[b'x'; 1000]).unwrap();
    }
    let after = admin.counters().unwrap().unwrap();
    let grown = |of| grown(&before, &after, of);
    // A prepared statement counts on each execution; so does the sample.
    assert_eq!(grown(|c| c.commands), 11, "{before:?} {after:?}");
    assert!(grown(|c| c.received_bytes) > 10_000, "{before:?} {after:?}");
    assert!(after.used_bytes > Some(0), "{after:?}");
    // Some pages of its 32 MiB contain no data.
    let limit_bytes = after.limit_bytes.unwrap();
    assert!((31 << 20..=32 << 20).contains(&limit_bytes), "{limit_bytes}");
    assert_eq!((after.connections, after.refused), (Some(2), Some(0)));
    assert_eq!((after.keys, after.hits), (None, None));
}

/// Inserts a megabyte and returns by how much the table grew, bytes.
fn table_growth(endpoint: &Endpoint) -> u64 {
    let mut options = options(Path::new(""));
    options.table = "sized".into();
    let mut admin = admin(endpoint, TIMEOUT).unwrap();
    admin.prepare(Layout::Page, &options.table, 1_500).unwrap();
    let mut store = open_page_store(endpoint, &options).unwrap();
    let empty_bytes = admin.table_bytes(&options.table).unwrap().unwrap();
    // The value does not compress.
    let mut value = vec![0; 1_500];
    for n in 0..700_u32 {
        store.open(&format!("s{n}"), &mut Vec::new()).unwrap();
        for (at, byte) in value.iter_mut().enumerate() {
            *byte = (at as u32).wrapping_mul(2_654_435_761_u32.wrapping_add(n)).to_be_bytes()[0];
        }
        store.close(&value).unwrap();
    }
    assert!(admin.table_bytes("a-b").is_err(), "no plain identifier");
    let grown = admin.table_bytes(&options.table).unwrap().unwrap() - empty_bytes;
    admin.clean(Layout::Page, "", &mut patience()).unwrap();
    grown
}

#[test]
fn tables_grow_by_what_is_written() {
    if installed("mariadbd") {
        let server = Server::mariadb();
        let grown = table_growth(&server.mysql_endpoint("root", None));
        assert!((1_050_000..16 << 20).contains(&grown), "{grown}");
    }
    if !postgres_program("postgres").is_empty() {
        let server = Server::postgres();
        let grown = table_growth(&server.postgres_endpoint("postgres", None));
        assert!((1_050_000..4 << 20).contains(&grown), "{grown}");
    }
}
