//! Sessions in a Redis server that the test starts.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use super::common::{
    Server, contention, installed, options, page_store, patience, plain_store, timed, wait_until,
};
use cachedyno_drivers::{admin, open_page_store, open_session_store};
use model::{Endpoint, ErrorClass, Layout, NetAddress, RedisOptions, Secret};
use nix::sys::signal::Signal;
use std::path::Path;
use workloads::store::{Closed, Collects, Found, StoreError};

#[test]
fn plain_keys_keep_what_is_written() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let options = options(Path::new(""));
    let endpoint = server.redis_endpoint(None);
    let mut store = open_session_store(&endpoint, &options).unwrap();
    plain_store(store.as_mut());
    assert_eq!(server.redis_cli(&["GET", "1_0"]), "longer again");
    let ttl: u64 = server.redis_cli(&["TTL", "1_0"]).parse().unwrap();
    assert!((295..=300).contains(&ttl));
    assert_eq!(store.replace("new", b"1").unwrap(), Found::Yes);
    let big = vec![0xa5; 3 << 20];
    let mut value = Vec::new();
    store.create("big", &big).unwrap();
    assert_eq!(store.read("big", &mut value).unwrap(), Found::Yes);
    assert!(value == big);
    server.redis_cli(&["LPUSH", "list", "x"]);
    let e = store.read("list", &mut value).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Reply, false));
    assert!(e.message.contains("WRONGTYPE"));
    server.redis_cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let e = store.create("more", b"x").unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Full, false));
    assert_eq!(store.read("1_0", &mut value).unwrap(), Found::Yes);
}

#[test]
fn pages_keep_and_lock() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let (endpoint, options) = (server.redis_endpoint(None), options(Path::new("")));
    let mut first = open_page_store(&endpoint, &options).unwrap();
    let mut second = open_page_store(&endpoint, &options).unwrap();
    page_store(first.as_mut());
    assert_eq!(server.redis_cli(&["KEYS", "*"]), "PHPREDIS_SESSION:abc");
    // The script was unknown once, so its hash is correct.
    let stats = server.redis_cli(&["INFO", "commandstats"]);
    assert!(stats.contains("cmdstat_eval:calls=1,"), "{stats}");
    assert!(stats.contains("cmdstat_evalsha:calls=4,"), "{stats}");
    contention(first.as_mut(), second.as_mut(), "both");

    let mut value = Vec::new();
    let lock = "PHPREDIS_SESSION:abc_LOCK";
    first.open("abc", &mut value).unwrap();
    let left: u64 = server.redis_cli(&["PTTL", lock]).parse().unwrap();
    assert!(left > 25_000 && left <= 30_000);
    server.redis_cli(&["DEL", lock]);
    assert_eq!(first.close(b"unprotected").unwrap(), Closed::LockLost);
    first.open("abc", &mut value).unwrap();
    assert_eq!(value, b"end");
    server.redis_cli(&["SET", lock, "somebody"]);
    assert_eq!(first.close(b"unprotected").unwrap(), Closed::LockLost);
    assert_eq!(server.redis_cli(&["GET", lock]), "somebody");

    let (result, took) = timed(|| first.open("abc", &mut value));
    let e = result.unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Lock, false));
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(6), "{took:?}");
    server.redis_cli(&["DEL", lock]);
    server.redis_cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    first.open("abc", &mut value).unwrap();
    server.redis_cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(first.close(b"no room").unwrap_err().class, ErrorClass::Full);
    assert_eq!(server.redis_cli(&["EXISTS", lock]), "0");
}

#[test]
fn a_server_expires_pages_by_itself() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let (endpoint, options) = (server.redis_endpoint(None), options(Path::new("")));
    let mut store = open_page_store(&endpoint, &options).unwrap();
    assert_eq!(store.collects(), Collects::Never);
    for (id, left_s) in [("a", 0), ("b", 1), ("c", 100)] {
        store.open(id, &mut Vec::new()).unwrap();
        store.set_lifetime(left_s);
        store.close(b"value").unwrap();
    }
    assert_eq!(store.collect().unwrap().deleted, 0);
    let is_last = || server.redis_cli(&["KEYS", "*"]) == "PHPREDIS_SESSION:c";
    wait_until("only one session is left", is_last);
    // `KEYS` omits keys that have expired; the server removes them a moment later.
    let has_removed = || server.redis_cli(&["INFO", "stats"]).contains("expired_keys:2");
    wait_until("the server has removed the others", has_removed);
}

#[test]
fn errors_have_the_right_class() {
    if !installed("redis-server") {
        return;
    }
    let mut server = Server::redis(&["--requirepass", "hush"]);
    let mut options = options(Path::new(""));
    options.timeout = Duration::from_millis(300);
    for password in [None, Some("wrong-secret")] {
        let endpoint = server.redis_endpoint(password);
        for e in [
            open_session_store(&endpoint, &options).err().unwrap(),
            admin(&endpoint, options.timeout).err().unwrap(),
        ] {
            assert_eq!(e.class, ErrorClass::Denied, "{e}");
            assert!(!e.message.contains("wrong-secret"));
        }
    }
    let endpoint = server.redis_endpoint(Some("hush"));
    let mut store = open_session_store(&endpoint, &options).unwrap();
    let mut other = open_session_store(&endpoint, &options).unwrap();
    let mut admin = admin(&endpoint, options.timeout).unwrap();
    let configuration = admin.facts().unwrap().configuration;
    assert!(configuration.iter().any(|(name, _)| name == "maxmemory"));
    assert!(!format!("{configuration:?}").contains("hush"));
    server.redis_cli(&["-a", "hush", "--no-auth-warning", "CONFIG", "SET", "maxclients", "1"]);
    let refused = open_session_store(&endpoint, &options).err().unwrap();
    assert_eq!(refused.class, ErrorClass::Refused, "{refused}");

    server.freeze();
    let limit = Duration::from_secs(2);
    let (result, took) = timed(|| store.create("a", b"x"));
    let e = result.unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Timeout, true));
    assert!(took >= options.timeout && took < limit, "{took:?}");
    let (result, took) = timed(|| open_session_store(&endpoint, &options));
    assert_eq!(result.err().unwrap().class, ErrorClass::Timeout);
    assert!(took < limit, "{took:?}");
    server.signal(Signal::SIGCONT);

    server.end();
    let e = other.create("a", b"x").unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Closed, true));
    let e = open_session_store(&endpoint, &options).err().unwrap();
    assert_eq!(e.class, ErrorClass::Refused, "{e}");
    let gone = Endpoint::Redis {
        address: NetAddress::Tcp("127.0.0.1".into(), rig::free_port(0).unwrap()),
        user: None,
        password: None,
        database: 0,
        options: RedisOptions::default(),
    };
    assert_eq!(open_session_store(&gone, &options).err().unwrap().class, ErrorClass::Refused);
}

#[test]
fn tcp_users_and_databases_work() {
    if !installed("redis-server") {
        return;
    }
    let port = rig::free_port(0).unwrap();
    let user = ["--user", "shop", "on", "allkeys", "allcommands", ">hush"];
    let text = port.to_string();
    let mut args = vec!["--bind", "127.0.0.1", "--port", text.as_str()];
    args.extend(user);
    let server = Server::redis(&args);
    let endpoint = Endpoint::Redis {
        address: NetAddress::Tcp("127.0.0.1".into(), port),
        user: Some("shop".into()),
        password: Some(Secret::new("hush")),
        database: 3,
        options: RedisOptions::default(),
    };
    let mut store = open_session_store(&endpoint, &options(Path::new(""))).unwrap();
    plain_store(store.as_mut());
    assert_eq!(server.redis_cli(&["-n", "3", "DBSIZE"]), "2");
    assert_eq!(server.redis_cli(&["DBSIZE"]), "0");
}

#[test]
fn only_keys_of_the_run_are_removed() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let (endpoint, options) = (server.redis_endpoint(None), options(Path::new("")));
    let mut admin = admin(&endpoint, options.timeout).unwrap();
    let facts = admin.facts().unwrap();
    assert!(
        facts.empty == Some(true) && facts.version.starts_with("Redis 7."),
        "{}",
        facts.version
    );
    for layout in [Layout::Plain, Layout::Page] {
        admin.prepare(layout, "unused", 1_500).unwrap();
        admin.verify(layout, &options, "a*[b]_verify").unwrap();
    }
    assert!(admin.facts().unwrap().empty == Some(true));

    let mut store = open_session_store(&endpoint, &options).unwrap();
    let mut page = open_page_store(&endpoint, &options).unwrap();
    let foreign = ["axb_1", "a*b_1", "aXX[b]_1", "PHPREDIS_SESSION:other", "x"];
    for key in foreign {
        store.create(key, b"stays").unwrap();
    }
    for i in 0..2_500 {
        store.create(&format!("a*[b]_{i}"), b"goes").unwrap();
    }
    page.open("a*[b]_p", &mut Vec::new()).unwrap();
    page.close(b"goes").unwrap();
    page.open("a*[b]_p", &mut Vec::new()).unwrap();
    assert!(admin.facts().unwrap().empty == Some(false));
    assert_eq!(
        admin.clean(Layout::Plain, "", &mut patience()).unwrap_err().class,
        ErrorClass::NotOurs
    );
    admin.clean(Layout::Plain, "a*[b]_", &mut patience()).unwrap();
    assert_eq!(server.redis_cli(&["DBSIZE"]), "7");
    admin.clean(Layout::Page, "a*[b]_", &mut patience()).unwrap();
    let mut left: Vec<String> =
        server.redis_cli(&["KEYS", "*"]).lines().map(String::from).collect();
    left.sort();
    let mut expected = foreign;
    expected.sort_unstable();
    assert_eq!(left, expected);
}

/// A fake server that answers the greeting, and the next request with `pieces` and pauses.
fn scripted(pieces: Vec<Vec<u8>>, pause: Duration) -> StoreError {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).unwrap() > 0);
        stream.write_all(b"+PONG\r\n").unwrap();
        assert!(stream.read(&mut request).unwrap() > 0);
        for piece in pieces {
            if stream.write_all(&piece).is_err() {
                return;
            }
            thread::sleep(pause);
        }
    });
    let endpoint = Endpoint::Redis {
        address: NetAddress::Unix(path),
        user: None,
        password: None,
        database: 0,
        options: RedisOptions::default(),
    };
    let mut options = options(Path::new(""));
    options.timeout = Duration::from_millis(200);
    let mut store = open_session_store(&endpoint, &options).unwrap();
    let mut value = Vec::new();
    let e = match store.read("a", &mut value) {
        Err(e) => e,
        Ok(found) => {
            assert_eq!((found, value.as_slice()), (Found::Yes, &b"value"[..]));
            store.read("b", &mut value).unwrap_err()
        }
    };
    drop(store);
    server.join().unwrap();
    e
}

#[test]
fn hostile_servers_cost_neither_time_nor_memory() {
    let now = Duration::ZERO;
    let one = |reply: &[u8]| vec![reply.to_vec()];
    let class = |pieces, pause| {
        let e = scripted(pieces, pause);
        assert!(e.fatal, "{e}");
        e.class
    };
    assert_eq!(class(one(b"$9999999999\r\n"), now), ErrorClass::Protocol);
    assert_eq!(class(one(b"$-7\r\n"), now), ErrorClass::Protocol);
    assert_eq!(class(one(&vec![b'+'; 200_000]), now), ErrorClass::Protocol);
    assert_eq!(class(one(b"*2\r\n"), now), ErrorClass::Protocol);
    assert_eq!(class(one(b"+OK\r\n"), now), ErrorClass::Protocol);
    assert_eq!(class(one(b"$5\r\nvalue\r\n+x\r\n"), now), ErrorClass::Protocol);
    assert_eq!(class(one(b"$50\r\nva"), now), ErrorClass::Closed);
    let drops = b"$5000\r\n".iter().chain(&[b'x'; 100]).map(|b| vec![*b]).collect();
    let (class, took) = timed(|| class(drops, Duration::from_millis(20)));
    assert_eq!(class, ErrorClass::Timeout);
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn a_reply_in_pieces_is_assembled() {
    let pieces = b"$5\r\nvalue\r\n".iter().map(|b| vec![*b]).collect();
    let e = scripted(pieces, Duration::from_millis(1));
    assert_eq!(e.class, ErrorClass::Closed);
}
