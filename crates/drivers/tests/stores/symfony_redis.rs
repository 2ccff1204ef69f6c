//! The layout of Symfony's `RedisTagAwareAdapter`. The expected commands are those that the adapter
//! sent as of October 2024 (7.1) on PHP 8.2 with the extension redis 5.3 and `serialize` for the
//! same operations.

use super::caches::{Model, Monitor, agrees, assert_commands, list, open_cache};
use super::common::{Server, installed};
use model::{Backend, ErrorClass};
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::Found;

fn operations(cache: &mut dyn TaggedCache) {
    let mut value = Vec::new();
    cache.save(Record::new("a", b"va", &list("T1 T2"), Some(7_200))).unwrap();
    cache.save(Record::new("b", b"vb", &[], None)).unwrap();
    assert_eq!(cache.load("a", &mut value).unwrap(), Found::Yes);
    assert_eq!(value, b"va");
    assert_eq!(cache.load("missing", &mut value).unwrap(), Found::No);
    cache.save(Record::new("a", b"va2", &list("T2 T4 T4 17"), Some(9_999_999))).unwrap();
    assert_eq!(cache.remove("b").unwrap(), Found::Yes);
    assert_eq!(cache.remove("a").unwrap(), Found::Yes);
    cache.save(Record::new("d", b"vd", &list("T5"), Some(100))).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &list("T5 T6")).unwrap();
    cache.save(Record::new("e", b"ve", &list("T5"), Some(0))).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &[]).unwrap();
    cache.save(Record::new("f", b"", &[], Some(100))).unwrap();
    cache.clean(CleanMode::All, &[]).unwrap();
}

#[test]
fn commands_match_symfony() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut cache = open_cache(Backend::SymfonyRedis, server.redis_endpoint(None));
    let mut monitor = Monitor::new(&server);
    operations(cache.as_mut());
    let recorded = monitor.commands();
    let head = r"\x9d\x00\x00\x00\x00\x00\x00\x00\x00_\x00\x00";
    let set = r"cachedyno:\x01tags\x01";
    let expected = format!(
        "MGET cachedyno:a
        INFO Memory
        SETEX cachedyno:a 7200 {head} a:2:{{i:0;s:2:\\\"T1\\\";i:1;s:2:\\\"T2\\\";}}s:2:\\\"va\\\";
        SADD {set}T1 cachedyno:a
        SADD {set}T2 cachedyno:a
        MGET cachedyno:b
        SETEX cachedyno:b 8640000 {head}\\x00s:2:\\\"vb\\\";
        MGET cachedyno:a
        MGET cachedyno:missing
        MGET cachedyno:a
        SETEX cachedyno:a 9999999 \
        {head})a:3:{{i:0;s:2:\\\"T2\\\";i:1;s:2:\\\"T4\\\";i:2;i:17;}}s:3:\\\"va2\\\";
        SADD {set}T4 cachedyno:a
        SADD {set}17 cachedyno:a
        SREM {set}T1 cachedyno:a
        EVAL <script> 1 cachedyno:b
        lua GET cachedyno:b
        lua UNLINK cachedyno:b
        EVAL <script> 1 cachedyno:a
        lua GET cachedyno:a
        lua UNLINK cachedyno:a
        SREM {set}T2 cachedyno:a
        SREM {set}T4 cachedyno:a
        SREM {set}17 cachedyno:a
        MGET cachedyno:d
        SETEX cachedyno:d 100 {head}\\x13a:1:{{i:0;s:2:\\\"T5\\\";}}s:2:\\\"vd\\\";
        SADD {set}T5 cachedyno:d
        EVAL <script> 1 {set}T5 \"\"
        lua SSCAN {set}T5 0 COUNT 5000
        lua DEL cachedyno:d
        lua SREM {set}T5 cachedyno:d
        lua SUNIONSTORE {{{set}T5}}{set}T5 {set}T5
        lua DEL {set}T5
        lua SSCAN {{{set}T5}}{set}T5 0 COUNT 5000
        EVAL <script> 1 {set}T6 \"\"
        lua SSCAN {set}T6 0 COUNT 5000
        lua SUNIONSTORE {{{set}T6}}{set}T6 {set}T6
        lua DEL {set}T6
        lua SSCAN {{{set}T6}}{set}T6 0 COUNT 5000
        MGET cachedyno:e
        UNLINK cachedyno:e
        MGET cachedyno:f
        SETEX cachedyno:f 100 {head}\\x00s:0:\\\"\\\";
        INFO Server
        SCAN 0 COUNT 1000 MATCH cachedyno:*
        UNLINK cachedyno:f"
    );
    assert_commands(&recorded, &expected);
    let commands = recorded.iter().filter(|line| !line.starts_with("lua ")).count() as u64;
    // 6 saves of two and one more for the first; 2 loads; removals of 1 and 2; cleans of 1 and 3.
    assert_eq!(cache.effort(), Effort { round_trips: 22, commands, files: 0 });
}

#[test]
fn records_match_the_layout() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut cache = open_cache(Backend::SymfonyRedis, server.redis_endpoint(None));
    agrees(cache.as_mut(), &mut Model::default(), &[CleanMode::MatchingAnyTag]);
    for n in 0..6_000 {
        cache.save(Record::new(&format!("id_{n}"), b"v", &list("ALL"), None)).unwrap();
    }
    cache.clean(CleanMode::MatchingAnyTag, &list("ALL")).unwrap();
    assert_eq!(cache.load("id_0", &mut Vec::new()).unwrap(), Found::No);
    server.redis_cli(&["SET", "theirs", "x"]);
    cache.clean(CleanMode::All, &[]).unwrap();
    assert_eq!(server.redis_cli(&["KEYS", "*"]), "theirs");
}

#[test]
fn invalid_names_and_modes_are_rejected_as_in_symfony() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&["--maxmemory-policy", "allkeys-lru"]);
    let mut cache = open_cache(Backend::SymfonyRedis, server.redis_endpoint(None));
    let mut value = Vec::new();
    let e = cache.save(Record::new("a", b"v", &[], None)).unwrap_err();
    assert!(e.message.contains("maxmemory-policy is `allkeys-lru`"), "{e}");
    server.redis_cli(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    cache.save(Record::new("a", b"v", &[], None)).unwrap();
    for mode in [CleanMode::Old, CleanMode::MatchingTag, CleanMode::NotMatchingTag] {
        let e = cache.clean(mode, &list("T")).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Other, false), "{e}");
    }
    assert!(cache.load("a:b", &mut value).is_err());
    assert!(cache.save(Record::new("a", b"v", &list("{T}"), None)).is_err());
    server.redis_cli(&["SET", "cachedyno:foreign", "x"]);
    let e = cache.load("foreign", &mut value).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Protocol, false), "{e}");
    // `MGET` treats a key of another type as missing.
    server.redis_cli(&["LPUSH", "cachedyno:list", "x"]);
    assert_eq!(cache.load("list", &mut value).unwrap(), Found::No);
    server.redis_cli(&["SET", "cachedyno:\u{1}tags\u{1}T", "x"]);
    let e = cache.save(Record::new("b", b"v", &list("T"), None)).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Reply, false), "{e}");
    let e = cache.clean(CleanMode::MatchingAnyTag, &list("U T U2")).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Reply, false), "{e}");
    assert_eq!(cache.load("a", &mut value).unwrap(), Found::Yes);
}
