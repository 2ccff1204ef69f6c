//! Servers that never finish a reply or a dialogue: the client gives up within its limits.

use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cachedyno_drivers::redis::Control;
use cachedyno_drivers::{CleanupDeadline, admin};
use model::{Backend, BackgroundWrite, Endpoint, ErrorClass, Layout, NetAddress};
use workloads::app_cache::{CleanMode, TaggedCache};
use workloads::store::StoreError;

use super::caches::open_cache;
use super::common::patience;

/// Timeout of a query; a working server answers at once.
const TIMEOUT: Duration = Duration::from_millis(300);
/// Much longer than several timeouts, much shorter than forever.
const SOON: Duration = Duration::from_secs(8);

/// A fake Redis that replies to each command with a function's output; false closes the connection.
/// Counts commands.
fn server(answer: impl Fn(&str, &mut TcpStream) -> bool + Send + Sync + 'static) -> Hostile {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (asked, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let count = asked.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (answer, asked) = (answer.clone(), asked.clone());
            thread::spawn(move || {
                let mut out = stream.try_clone().unwrap();
                let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
                // In `*2`, `$4`, `SCAN`, … the command is the third line.
                while let Some(first) = lines.next() {
                    let rest =
                        first.strip_prefix('*').map_or(0, |n| 2 * n.parse::<usize>().unwrap());
                    let words: Vec<String> = lines.by_ref().take(rest).collect();
                    let command = words.get(1).unwrap_or(&first).clone();
                    asked.fetch_add(1, Ordering::Relaxed);
                    if !answer(&command, &mut out) {
                        return;
                    }
                }
            });
        }
    });
    Hostile { port, asked: count }
}

struct Hostile {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Hostile {
    fn endpoint(&self) -> Endpoint {
        Endpoint::redis(NetAddress::Tcp("127.0.0.1".into(), self.port))
    }
}

fn say(out: &mut TcpStream, text: &str) -> bool {
    out.write_all(text.as_bytes()).is_ok()
}

/// Writes endlessly, with a pause after each piece.
fn drip(out: &mut TcpStream, piece: &[u8], pause: Duration) -> bool {
    while out.write_all(piece).is_ok() {
        thread::sleep(pause);
    }
    false
}

#[test]
fn an_endless_scan_ends_at_the_page_limit() {
    let server = server(|command, out| match command {
        "PING" => say(out, "+PONG\r\n"),
        "DBSIZE" => say(out, ":10\r\n"),
        "SCAN" => say(out, "*2\r\n$1\r\n7\r\n*0\r\n"),
        _ => say(out, "+OK\r\n"),
    });
    let mut admin = admin(&server.endpoint(), TIMEOUT).unwrap();
    let failure = admin.clean(Layout::Plain, "run-1-", &mut patience()).unwrap_err();
    assert_eq!(failure.class, ErrorClass::Protocol, "{failure}");
    assert!(failure.message.contains("`SCAN` does not finish"), "{failure}");
    assert!(server.asked.load(Ordering::Relaxed) < 20_000);
}

#[test]
fn cache_layouts_give_up_on_endless_scans() {
    type Ask = fn(&mut dyn TaggedCache) -> Result<(), StoreError>;
    let stale: Ask = |cache| cache.stale_members().map(drop);
    let old: Ask = |cache| cache.clean(CleanMode::Old, &[]);
    let all: Ask = |cache| cache.clean(CleanMode::All, &[]);
    let of_tag: Ask = |cache| cache.clean(CleanMode::MatchingAnyTag, &["t".into()]);
    // Tests the scan of a set, and the scan for sets.
    for (backend, ask, endless) in [
        (Backend::CmRedisLua, stale, "SSCAN"),
        (Backend::CmRedisLua, stale, "SCAN"),
        (Backend::CmRedisLua, old, "SSCAN"),
        (Backend::LaravelRedis, stale, "ZSCAN"),
        (Backend::LaravelRedis, old, "SCAN"),
        (Backend::LaravelRedis, of_tag, "ZSCAN"),
        (Backend::SymfonyRedis, all, "SCAN"),
    ] {
        let server = server(move |command, out| match command {
            "PING" => say(out, "+PONG\r\n"),
            "SCAN" | "SSCAN" | "ZSCAN" => {
                let cursor = u8::from(command == endless);
                let names = if command == "ZSCAN" { "*0\r\n" } else { "*1\r\n$1\r\na\r\n" };
                say(out, &format!("*2\r\n$1\r\n{cursor}\r\n{names}"))
            }
            "SMEMBERS" => say(out, "*1\r\n$1\r\nt\r\n"),
            "SCRIPT" => say(out, "*1\r\n:1\r\n"),
            "INFO" => say(out, "$1\r\nx\r\n"),
            "EXISTS" | "UNLINK" | "ZREMRANGEBYSCORE" => say(out, ":1\r\n"),
            _ => say(out, "+OK\r\n"),
        });
        let e = ask(&mut *open_cache(backend, server.endpoint())).unwrap_err();
        assert_eq!(e.class, ErrorClass::Protocol, "{backend:?}: {e}");
        assert!(e.message.contains(&format!("`{endless}` does not finish")), "{backend:?}: {e}");
        assert!(server.asked.load(Ordering::Relaxed) < 100_000);
    }
}

#[test]
fn cleaning_ends_soon_after_an_interruption() {
    // A database of unknown size.
    let server = server(|command, out| match command {
        "PING" => say(out, "+PONG\r\n"),
        "DBSIZE" => say(out, ":9000000000000000000\r\n"),
        _ => say(out, "*2\r\n$1\r\n7\r\n*0\r\n"),
    });
    let stop = Arc::new(AtomicBool::new(false));
    let user = stop.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        user.store(true, Ordering::Relaxed);
    });
    let mut admin = admin(&server.endpoint(), TIMEOUT).unwrap();
    let began = Instant::now();
    let patience = &mut CleanupDeadline::new(&stop);
    let failure = admin.clean(Layout::Plain, "run-1-", patience).unwrap_err();
    assert!(failure.message.contains("cleaning was interrupted"), "{failure}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_cluster_of_slow_servers_has_one_deadline() {
    for late in ["PING", "INFO"] {
        let nodes: Vec<Hostile> = (0..32)
            .map(|_| {
                server(move |command, out| {
                    if command == late {
                        thread::sleep(TIMEOUT * 2 / 3);
                    }
                    match command {
                        "PING" => say(out, "+PONG\r\n"),
                        "INFO" => say(out, "$1\r\nx\r\n"),
                        "CONFIG" => say(out, "*0\r\n"),
                        _ => say(out, ":0\r\n"),
                    }
                })
            })
            .collect();
        let mut slots = format!("*{}\r\n", nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            let (first, port) = (at * 512, node.port);
            let range = format!("*3\r\n:{first}\r\n:{}\r\n", first + 511);
            slots = slots + &range + &format!("*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n");
        }
        let first = server(move |command, out| match command {
            "CLUSTER" => say(out, &slots),
            _ => say(out, "+PONG\r\n"),
        });
        let url = format!("redis+cluster://127.0.0.1:{}", first.port);
        let began = Instant::now();
        let facts = admin(&Endpoint::parse(&url).unwrap(), TIMEOUT).and_then(|mut a| a.facts());
        let failure = facts.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Timeout, "{failure}");
        assert!(failure.message.contains("servers of the cluster"), "{failure}");
        assert!(began.elapsed() < TIMEOUT * 10, "{:?}", began.elapsed());
    }
}

#[test]
fn a_dripping_reply_times_out() {
    // Each byte arrives long before the read times out.
    let pause = TIMEOUT / 10;
    for piece in [&b"$100000\r\n"[..], b"x"] {
        let server = server(move |command, out| match command {
            "PING" => say(out, "+PONG\r\n"),
            _ => say(out, "$100000\r\n") && drip(out, piece, pause),
        });
        let began = Instant::now();
        let facts = admin(&server.endpoint(), TIMEOUT).and_then(|mut admin| admin.facts());
        let failure = facts.unwrap_err();
        assert_eq!(failure.class, ErrorClass::Timeout, "{failure}");
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
}

#[test]
fn a_reply_of_many_long_strings_is_rejected() {
    let mebibyte = Arc::new([b"$1048576\r\n", &vec![b'x'; 1 << 20][..], b"\r\n"].concat());
    let server =
        server(move |_, out| say(out, "*1000000\r\n") && drip(out, &mebibyte, Duration::ZERO));
    let mut control = Control::connect(&server.endpoint(), None, Duration::from_secs(20)).unwrap();
    let failure = control.ask(&[b"SUNION", b"a"]).unwrap_err();
    assert_eq!(failure.class, ErrorClass::Protocol, "{failure}");
}

#[test]
fn the_longest_value_is_accepted() {
    let longest = Arc::new([b"$67108864\r\n", &vec![b'x'; 64 << 20][..], b"\r\n"].concat());
    let server = server(move |_, out| out.write_all(&longest).is_ok());
    let mut control = Control::connect(&server.endpoint(), None, Duration::from_secs(20)).unwrap();
    assert!(control.ask(&[b"GET", b"a"]).is_ok());
}

#[test]
fn a_memcached_listing_without_line_ends_times_out() {
    let server = server(|command, out| match command {
        "version" => say(out, "VERSION 1\r\n"),
        _ => drip(out, b"k", TIMEOUT / 10),
    });
    let endpoint = Endpoint::parse(&format!("memcached://127.0.0.1:{}", server.port)).unwrap();
    let began = Instant::now();
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    let failure = admin.sweep(Layout::Plain, "run-1-", &mut patience()).unwrap_err();
    assert_eq!(failure.class, ErrorClass::Timeout, "{failure}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn endless_memcached_lines_are_rejected() {
    let server = server(|_, out| drip(out, b"STAT a b\r\n", TIMEOUT / 10));
    let endpoint = Endpoint::parse(&format!("memcached://127.0.0.1:{}", server.port)).unwrap();
    let began = Instant::now();
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    assert!(admin.facts().is_err());
    assert!(admin.counters().is_err());
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

/// A fake memcached whose crawler is busy at first and only knows queues, and whose listings miss
/// keys.
#[test]
fn keys_missing_from_a_memcached_listing_are_removed_too() {
    let (lists, removed) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let count = removed.clone();
    let server = server(move |command, out| {
        if command.starts_with("delete run-1-") {
            count.fetch_add(1, Ordering::Relaxed);
            return say(out, "DELETED\r\n");
        }
        if command == "stats" {
            return say(out, "STAT curr_items 4\r\nEND\r\n");
        }
        if command != "lru_crawler metadump all" {
            return say(out, "BADCLASS invalid class id\r\n");
        }
        match lists.fetch_add(1, Ordering::Relaxed) {
            0 => say(out, "BUSY currently processing crawler request\r\n"),
            1 => say(out, "key=run-1-a exp=-1\nkey=other exp=-1\nEND\r\n"),
            2 => say(out, "key=run-1-b exp=-1\nkey=run-1-c exp=-1\nEND\r\n"),
            _ => say(out, "key=other exp=-1\nEND\r\n"),
        }
    });
    let endpoint = Endpoint::parse(&format!("memcached://127.0.0.1:{}", server.port)).unwrap();
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    admin.sweep(Layout::Plain, "run-1-", &mut patience()).unwrap();
    assert_eq!(removed.load(Ordering::Relaxed), 3);
}

#[test]
fn reappearing_memcached_keys_are_an_error() {
    let server = server(|command, out| match command.split(' ').next() {
        Some("delete") => say(out, "DELETED\r\n"),
        Some("stats") => say(out, "STAT curr_items 1\r\nEND\r\n"),
        _ => say(out, "key=run-1-a exp=-1\nEND\r\n"),
    });
    let endpoint = Endpoint::parse(&format!("memcached://127.0.0.1:{}", server.port)).unwrap();
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    let failure = admin.sweep(Layout::Plain, "run-1-", &mut patience()).unwrap_err();
    assert!(failure.message.contains("still listed"), "{failure}");
}

#[test]
fn an_endless_memcached_listing_is_an_error() {
    let server = server(|command, out| {
        match command {
            "version" => return say(out, "VERSION 1\r\n"),
            "stats" => return say(out, "STAT curr_items 1\r\nEND\r\n"),
            _ => {}
        }
        let many = "key=other exp=-1\n".repeat(10_000);
        while say(out, &many) {}
        false
    });
    let endpoint = Endpoint::parse(&format!("memcached://127.0.0.1:{}", server.port)).unwrap();
    let mut admin = admin(&endpoint, TIMEOUT).unwrap();
    let failure = admin.sweep(Layout::Plain, "run-1-", &mut patience()).unwrap_err();
    assert!(failure.message.contains("endlessly"), "{failure}");
}

#[test]
fn a_server_that_cannot_fork_for_a_save_names_the_setting() {
    let server = server(|command, out| match command {
        "PING" => say(out, "+PONG\r\n"),
        "BGSAVE" => say(out, "-ERR\r\n"),
        _ => say(out, "+OK\r\n"),
    });
    let mut admin = admin(&server.endpoint(), TIMEOUT).unwrap();
    let failure = admin.write(BackgroundWrite::Save).unwrap_err();
    assert_eq!(failure.class, ErrorClass::Full, "{failure}");
    assert!(failure.message.contains("expected `sysctl vm.overcommit_memory=1`"), "{failure}");
}
