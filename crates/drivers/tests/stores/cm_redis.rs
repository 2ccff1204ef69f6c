//! The layout of `Cm_Cache_Backend_Redis`. The expected commands are those that the module sent as
//! of September 2019 and as of February 2026 on PHP 8.2 with the extension redis 5.3 for the same
//! operations.

use std::collections::BTreeSet;
use std::time::Duration;

use super::caches::{Model, Monitor, agrees, assert_commands, list};
use super::common::{Server, installed};
use cachedyno_drivers::redis::cm::{CmOptions, CmRedis, Compression, Removal};
use model::ErrorClass;
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::Found;

use CleanMode::{All, MatchingAnyTag, MatchingTag, NotMatchingTag, Old};

fn open(server: &Server, options: CmOptions) -> CmRedis {
    CmRedis::open(&server.redis_endpoint(None), options, Duration::from_secs(5)).unwrap()
}

/// Operations of every kind whose commands do not depend on the order of a set.
fn operations(cache: &mut CmRedis) {
    let mut value = Vec::new();
    cache.save(Record::new("a", b"va", &list("T1 T2"), Some(7_200))).unwrap();
    cache.save(Record::new("b", b"vb", &[], None)).unwrap();
    assert_eq!(cache.load("a", &mut value).unwrap(), Found::Yes);
    assert_eq!(value, b"va");
    assert_eq!(cache.load("missing", &mut value).unwrap(), Found::No);
    assert!(value.is_empty());
    cache.save(Record::new("a", b"va2", &list("T2 T4 T4"), Some(9_999_999))).unwrap();
    assert_eq!(cache.remove("b").unwrap(), Found::Yes);
    cache.clean(MatchingTag, &list("T2 T4")).unwrap();
    cache.clean(MatchingTag, &list("T9")).unwrap();
    cache.save(Record::new("d", b"vd", &list("T5"), Some(100))).unwrap();
    cache.clean(MatchingAnyTag, &list("T5 T6")).unwrap();
    cache.clean(MatchingAnyTag, &list("T7")).unwrap();
    cache.clean(NotMatchingTag, &[]).unwrap();
    cache.clean(All, &[]).unwrap();
}

fn recorded_commands(options: CmOptions, operations: fn(&mut CmRedis)) -> (Vec<String>, Effort) {
    let server = Server::redis(&[]);
    let mut cache = open(&server, options);
    let mut monitor = Monitor::new(&server);
    operations(&mut cache);
    (monitor.commands(), cache.effort())
}

#[test]
fn commands_match_2019() {
    if !installed("redis-server") {
        return;
    }
    let (commands, effort) = recorded_commands(CmOptions::as_2019(), operations);
    assert_commands(
        &commands,
        "HGET zc:k:a t
        HMSET zc:k:a d va t T1,T2 m <time> i 0
        EXPIRE zc:k:a 7200
        SADD zc:tags T1 T2
        SADD zc:ti:T1 a
        SADD zc:ti:T2 a
        HGET zc:k:b t
        HMSET zc:k:b d vb t \"\" m <time> i 1
        HGET zc:k:a d
        HGET zc:k:missing d
        HGET zc:k:a t
        HMSET zc:k:a d va2 t T2,T4 m <time> i 0
        EXPIRE zc:k:a 2592000
        SADD zc:tags T2 T4
        SADD zc:ti:T2 a
        SADD zc:ti:T4 a
        SREM zc:ti:T1 a
        HGET zc:k:b t
        DEL zc:k:b
        SREM zc:ti: b
        SINTER zc:ti:T2 zc:ti:T4
        DEL zc:k:a
        SINTER zc:ti:T9
        HGET zc:k:d t
        HMSET zc:k:d d vd t T5 m <time> i 0
        EXPIRE zc:k:d 100
        SADD zc:tags T5
        SADD zc:ti:T5 d
        SUNION zc:ti:T5 zc:ti:T6
        DEL zc:k:d
        DEL zc:ti:T5 zc:ti:T6
        SREM zc:tags T5 T6
        SUNION zc:ti:T7
        DEL zc:ti:T7
        SREM zc:tags T7
        FLUSHDB",
    );
    // 4 saves and 1 removal of two round trips, 2 loads, cleans of 2, 1, 2, 2, 0 and 1.
    assert_eq!(effort, Effort { round_trips: 20, commands: commands.len() as u64, files: 0 });
}

#[test]
fn commands_match_today() {
    if !installed("redis-server") {
        return;
    }
    let (commands, effort) = recorded_commands(CmOptions::today(), operations);
    let save = "zc:k: d t m i zc:tags zc:ti: zc:ids";
    let expected = format!(
        "EVALSHA <sha> 2 T1 T2 {save} a va T1,T2 <time> 0 7200 0
        EVAL <script> 2 T1 T2 {save} a va T1,T2 <time> 0 7200 0
        lua HGET zc:k:a t
        lua HMSET zc:k:a d va t T1,T2 m <time> i 0
        lua EXPIRE zc:k:a 7200
        lua SADD zc:tags T1 T2
        lua SADD zc:ti:T1 a
        lua SADD zc:ti:T2 a
        EVALSHA <sha> 0 {save} b vb \"\" <time> 1 \"\" 0
        lua HGET zc:k:b t
        lua HMSET zc:k:b d vb t \"\" m <time> i 1
        HGET zc:k:a d
        HGET zc:k:missing d
        EVALSHA <sha> 2 T2 T4 {save} a va2 T2,T4 <time> 0 2592000 0
        lua HGET zc:k:a t
        lua HMSET zc:k:a d va2 t T2,T4 m <time> i 0
        lua EXPIRE zc:k:a 2592000
        lua SADD zc:tags T2 T4
        lua SADD zc:ti:T2 a
        lua SADD zc:ti:T4 a
        SREM zc:ti:T1 a
        HGET zc:k:b t
        UNLINK zc:k:b
        SREM zc:ti: b
        SINTER zc:ti:T2 zc:ti:T4
        UNLINK zc:k:a
        SINTER zc:ti:T9
        EVALSHA <sha> 1 T5 {save} d vd T5 <time> 0 100 0
        lua HGET zc:k:d t
        lua HMSET zc:k:d d vd t T5 m <time> i 0
        lua EXPIRE zc:k:d 100
        lua SADD zc:tags T5
        lua SADD zc:ti:T5 d
        EVALSHA <sha> 2 T5 T6 zc:ti: zc:k: zc:tags zc:ids 0 5000
        EVAL <script> 2 T5 T6 zc:ti: zc:k: zc:tags zc:ids 0 5000
        lua SUNION zc:ti:T5 zc:ti:T6
        lua UNLINK zc:k:d
        lua UNLINK zc:ti:T5 zc:ti:T6
        lua SREM zc:tags T5 T6
        EVALSHA <sha> 1 T7 zc:ti: zc:k: zc:tags zc:ids 0 5000
        lua SUNION zc:ti:T7
        lua UNLINK zc:ti:T7
        lua SREM zc:tags T7
        FLUSHDB"
    );
    assert_commands(&commands, &expected);
    let commands = commands.iter().filter(|line| !line.starts_with("lua ")).count() as u64;
    assert_eq!(effort.commands, commands);
}

fn transaction(cache: &mut CmRedis) {
    cache.save(Record::new("a", b"va", &list("T1 T2"), Some(7_200))).unwrap();
    cache.save(Record::new("c", b"vc", &[], None)).unwrap();
    assert_eq!(cache.remove("c").unwrap(), Found::Yes);
    assert_eq!(cache.remove("c").unwrap(), Found::No);
    cache.save(Record::new("d", b"vd", &list("T5"), Some(100))).unwrap();
    cache.clean(NotMatchingTag, &list("T5")).unwrap();
    cache.clean(MatchingAnyTag, &list("T5")).unwrap();
}

#[test]
fn without_the_extension_a_pipeline_is_a_transaction() {
    if !installed("redis-server") {
        return;
    }
    let options = CmOptions { transaction: true, not_matching_tags: true, ..CmOptions::as_2019() };
    let (commands, effort) = recorded_commands(options, transaction);
    assert_commands(
        &commands,
        "HGET zc:k:a t
        MULTI
        HMSET zc:k:a d va t T1,T2 m <time> i 0
        EXPIRE zc:k:a 7200
        SADD zc:tags T1 T2
        SADD zc:ti:T1 a
        SADD zc:ti:T2 a
        SADD zc:ids a
        EXEC
        HGET zc:k:c t
        MULTI
        HMSET zc:k:c d vc t \"\" m <time> i 1
        SADD zc:ids c
        EXEC
        HGET zc:k:c t
        MULTI
        DEL zc:k:c
        SREM zc:ids c
        SREM zc:ti: c
        EXEC
        HGET zc:k:c t
        MULTI
        DEL zc:k:c
        SREM zc:ids c
        SREM zc:ti: c
        EXEC
        HGET zc:k:d t
        MULTI
        HMSET zc:k:d d vd t T5 m <time> i 0
        EXPIRE zc:k:d 100
        SADD zc:tags T5
        SADD zc:ti:T5 d
        SADD zc:ids d
        EXEC
        SDIFF zc:ids zc:ti:T5
        MULTI
        DEL zc:k:a
        SREM zc:ids a
        EXEC
        SUNION zc:ti:T5
        MULTI
        DEL zc:k:d
        SREM zc:ids d
        DEL zc:ti:T5
        SREM zc:tags T5
        EXEC",
    );
    assert_eq!(effort, Effort { round_trips: 14, commands: commands.len() as u64, files: 0 });
}

/// A clean leaves IDs in other sets until they are collected.
fn garbage(cache: &mut CmRedis) {
    cache.save(Record::new("a", b"va", &list("T1"), None)).unwrap();
    cache.clean(Old, &[]).unwrap();
    cache.clean(MatchingTag, &list("T1")).unwrap();
    assert_eq!(cache.ids(CleanMode::MatchingAnyTag, &list("T1")).unwrap(), ["a"]);
    cache.clean(Old, &[]).unwrap();
}

#[test]
fn garbage_is_collected_as_in_2019() {
    if !installed("redis-server") {
        return;
    }
    let options = CmOptions { not_matching_tags: true, ..CmOptions::as_2019() };
    let (commands, _) = recorded_commands(options, garbage);
    assert_commands(
        &commands[5..],
        "SMEMBERS zc:tags
        SMEMBERS zc:ti:T1
        EXISTS zc:k:a
        SINTER zc:ti:T1
        DEL zc:k:a
        SREM zc:ids a
        SUNION zc:ti:T1
        SMEMBERS zc:tags
        SMEMBERS zc:ti:T1
        EXISTS zc:k:a
        DEL zc:ti:T1
        SREM zc:tags T1",
    );
}

#[test]
fn garbage_is_collected_as_today() {
    if !installed("redis-server") {
        return;
    }
    let options = CmOptions { not_matching_tags: true, ..CmOptions::today() };
    let (commands, _) = recorded_commands(options, garbage);
    assert_commands(
        &commands[7..],
        "SCRIPT EXISTS <sha>
        SCRIPT LOAD <script>
        SMEMBERS zc:tags
        SSCAN zc:ti:T1 0 COUNT 500
        EXISTS zc:k:a
        SINTER zc:ti:T1
        UNLINK zc:k:a
        SREM zc:ids a
        SUNION zc:ti:T1
        SCRIPT EXISTS <sha>
        SMEMBERS zc:tags
        SSCAN zc:ti:T1 0 COUNT 500
        EXISTS zc:k:a
        EVAL <script> 3 zc:k:a zc:ti:T1 zc:ids a 1
        lua EXISTS zc:k:a
        lua SREM zc:ti:T1 a
        lua SREM zc:ids a
        UNLINK zc:ti:T1
        SREM zc:tags T1",
    );
}

fn members(server: &Server, key: &str) -> BTreeSet<String> {
    let reply = server.redis_cli(&["SMEMBERS", key]);
    reply.split_whitespace().map(String::from).collect()
}

#[test]
fn both_versions_match_the_layout() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    for (mut options, transaction) in
        [(CmOptions::as_2019(), false), (CmOptions::as_2019(), true), (CmOptions::today(), false)]
    {
        options = CmOptions { transaction, records_at_once: 3, ..options };
        let mut cache = open(&server, options);
        let mut model = Model::default();
        agrees(&mut cache, &mut model, &[MatchingTag, MatchingAnyTag, MatchingAnyTag, Old]);
        for (tag, ids) in &model.sets {
            assert_eq!(members(&server, &format!("zc:ti:{tag}")), *ids, "{tag}");
        }
        cache.clean(All, &[]).unwrap();
        assert_eq!(server.redis_cli(&["DBSIZE"]), "0");
    }
}

/// Sets that need more than one scan page and more than one batch.
#[test]
fn large_tags_are_cleaned_and_collected() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    for options in [CmOptions::as_2019(), CmOptions::today()] {
        let mut cache = open(&server, options);
        for n in 0..1_500 {
            let own = format!("ALL ONE_{}", n % 600);
            cache.save(Record::new(&format!("id_{n}"), b"v", &list(&own), None)).unwrap();
        }
        let ones: Vec<String> = (0..600).map(|n| format!("ONE_{n}")).collect();
        assert_eq!(cache.ids(CleanMode::MatchingAnyTag, &ones).unwrap().len(), 1_500);
        cache.clean(MatchingAnyTag, &ones[..550]).unwrap();
        assert_eq!(server.redis_cli(&["SCARD", "zc:ti:ALL"]), "1500");
        cache.clean(Old, &[]).unwrap();
        let left: BTreeSet<String> =
            (0..1_500).filter(|n| n % 600 >= 550).map(|n| format!("id_{n}")).collect();
        assert_eq!(members(&server, "zc:ti:ALL"), left);
        assert_eq!(members(&server, "zc:tags").len(), 51);
        let found = cache.ids(CleanMode::MatchingTag, &list("ALL ONE_599")).unwrap();
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>().len(), 2);
        cache.clean(MatchingAnyTag, &list("ALL")).unwrap();
        assert_eq!(server.redis_cli(&["KEYS", "zc:k:*"]), "");
        cache.clean(All, &[]).unwrap();
    }
}

#[test]
fn long_values_are_compressed() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut value = Vec::new();
    let long = b"long ".repeat(5_000);
    let libraries = [
        (Compression::Snappy, "sn"),
        (Compression::Lz4, "l4"),
        (Compression::Lzf, "lz"),
        (Compression::Zstd, "zs"),
    ];
    for (library, letters) in libraries {
        let compression = Some(library);
        let mut cache = open(&server, CmOptions { compression, ..CmOptions::today() });
        cache.save(Record::new(letters, &long, &[], None)).unwrap();
        let length = server.redis_cli(&["HSTRLEN", &format!("zc:k:{letters}"), "d"]);
        assert!(length.parse::<usize>().unwrap() < 5_000, "{letters}: {length}");
    }
    let mut cache = open(&server, CmOptions::as_2019());
    for (_, id) in libraries {
        assert_eq!(cache.load(id, &mut value).unwrap(), Found::Yes);
        assert!(value == long);
    }
    for (id, bytes, packed) in [("short", 20_479, false), ("long", 20_480, true)] {
        cache.save(Record::new(id, &long[..bytes], &list("T"), None)).unwrap();
        let length: usize =
            server.redis_cli(&["HSTRLEN", &format!("zc:k:{id}"), "d"]).parse().unwrap();
        assert_eq!(length < bytes, packed, "{id}: {length}");
        assert_eq!(cache.load(id, &mut value).unwrap(), Found::Yes);
        assert!(value == long[..bytes]);
    }
    // Enough tags to be compressed, and to be recognized when they are dropped.
    let tags: Vec<String> = (0..4_000).map(|n| format!("TAG_{n}")).collect();
    cache.save(Record::new("long", b"x", &tags, None)).unwrap();
    cache.save(Record::new("long", b"x", &tags[..10], None)).unwrap();
    assert_eq!(cache.ids(CleanMode::MatchingAnyTag, &tags[10..]).unwrap(), [""; 0]);
}

#[test]
fn errors_are_reported_and_keep_the_connection() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut value = Vec::new();
    for options in [
        CmOptions::as_2019(),
        CmOptions { transaction: true, removal: Removal::Unlink, ..CmOptions::as_2019() },
        CmOptions::today(),
    ] {
        let mut cache = open(&server, options);
        server.redis_cli(&["SET", "zc:k:foreign", "x"]);
        server.redis_cli(&["EVAL", r"redis.call('HSET', 'zc:k:bad', 'd', 'gz:\31\139xyz')", "0"]);
        server.redis_cli(&["SET", "zc:ti:theirs", "x"]);
        let mut wrong = vec![
            cache.load("foreign", &mut value).unwrap_err(),
            cache.save(Record::new("foreign", b"v", &list("T"), None)).unwrap_err(),
            cache.save(Record::new("good", b"v", &list("theirs"), None)).unwrap_err(),
            cache.remove("foreign").unwrap_err(),
            cache.clean(MatchingTag, &list("theirs")).unwrap_err(),
            cache.clean(MatchingAnyTag, &list("theirs")).unwrap_err(),
        ];
        assert!(wrong.iter().all(|e| e.class == ErrorClass::Reply && !e.fatal), "{wrong:?}");
        wrong.clear();
        let e = cache.load("bad", &mut value).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Protocol, false), "{e}");
        let e = cache.clean(NotMatchingTag, &list("T")).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Other, false), "{e}");
        server.redis_cli(&["CONFIG", "SET", "maxmemory", "1"]);
        let e = cache.save(Record::new("more", b"v", &list("T"), None)).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Full, false), "{e}");
        server.redis_cli(&["CONFIG", "SET", "maxmemory", "0"]);
        cache.save(Record::new("more", b"v", &list("T"), None)).unwrap();
        assert_eq!(cache.load("more", &mut value).unwrap(), Found::Yes);
        cache.clean(All, &[]).unwrap();
    }
    let none = CmOptions { records_at_once: 0, ..CmOptions::today() };
    assert!(CmRedis::open(&server.redis_endpoint(None), none, Duration::from_secs(1)).is_err());
}

#[test]
fn the_server_can_end_between_two_steps() {
    if !installed("redis-server") {
        return;
    }
    let mut server = Server::redis(&[]);
    let mut cache = open(&server, CmOptions::as_2019());
    cache.save(Record::new("a", b"v", &list("T"), None)).unwrap();
    server.end();
    let e = cache.save(Record::new("a", b"v", &list("T"), None)).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Closed, true), "{e}");
}

#[test]
fn settings_are_chosen_by_name() {
    let chosen = |pairs: &[(&str, &str)]| {
        let settings = pairs.iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect();
        CmOptions::as_2019().with(&settings)
    };
    assert_eq!(chosen(&[]).unwrap(), CmOptions::as_2019());
    let all = [
        ("removal", "unlink"),
        ("transaction", "on"),
        ("not_matching_tags", "on"),
        ("compression", "none"),
    ];
    let options = chosen(&all).unwrap();
    assert_eq!((options.removal, options.compression), (Removal::Unlink, None));
    assert!(options.transaction && options.not_matching_tags);
    // Every value allowed in a study is supported.
    for (name, values) in model::CM_SETTINGS {
        for value in values {
            chosen(&[(name, value)]).unwrap();
        }
    }
    let e = chosen(&[("removal", "flush")]).unwrap_err();
    assert!(e.message.contains("cm.removal=`flush` is unknown"), "{}", e.message);
}

#[test]
fn stale_members_are_counted() {
    if !installed("redis-server") {
        return;
    }
    for options in [CmOptions::as_2019(), CmOptions::today()] {
        let server = Server::redis(&[]);
        let mut cache = open(&server, options);
        assert_eq!(cache.stale_members().unwrap(), Some(0));
        for n in 0..700 {
            cache
                .save(Record::new(&format!("id_{n}"), b"v", &list("ALL EVEN_OR_ODD"), None))
                .unwrap();
        }
        cache.save(Record::new("other", b"v", &list("ALL OTHER"), None)).unwrap();
        assert_eq!(cache.stale_members().unwrap(), Some(0));
        // The IDs of one tag stay in the set of the other.
        cache.clean(MatchingAnyTag, &list("EVEN_OR_ODD")).unwrap();
        assert_eq!(cache.stale_members().unwrap(), Some(700));
        cache.clean(Old, &[]).unwrap();
        assert_eq!(cache.stale_members().unwrap(), Some(0));
    }
}
