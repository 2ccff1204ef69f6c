//! The layout of Laravel's tagged cache. The expected commands are those that Laravel sent as of
//! August 2026 (13) on PHP 8.2 with the extension redis 5.3 for the same operations.

use std::collections::BTreeMap;

use super::caches::{Model, Monitor, assert_commands, draw, list, open_cache};
use super::common::{Server, installed};
use model::{Backend, ErrorClass};
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::Found;

fn operations(cache: &mut dyn TaggedCache) {
    let mut value = Vec::new();
    cache.save(Record::new("a", b"va", &list("T1 T2"), Some(7_200))).unwrap();
    cache.save(Record::new("b", b"vb", &[], None)).unwrap();
    cache.save(Record::new("n", b"17.5", &[], Some(60))).unwrap();
    cache.save(Record::new("i", b"vi", &list("T2"), None)).unwrap();
    assert_eq!(cache.load("a", &mut value).unwrap(), Found::Yes);
    assert_eq!(value, b"va");
    assert_eq!(cache.load("missing", &mut value).unwrap(), Found::No);
    cache.save(Record::new("a", b"va2", &list("T2 T4"), Some(9_999_999))).unwrap();
    assert_eq!(cache.load("n", &mut value).unwrap(), Found::Yes);
    assert_eq!(value, b"17.5");
    assert_eq!(cache.remove("b").unwrap(), Found::Yes);
    assert_eq!(cache.remove("b").unwrap(), Found::No);
    cache.save(Record::new("d", b"vd", &list("T5"), Some(100))).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &list("T5 T6")).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &list("T6")).unwrap();
    cache.save(Record::new("e", b"ve", &list("T5"), Some(0))).unwrap();
    cache.clean(CleanMode::All, &[]).unwrap();
    cache.save(Record::new("f", b"", &list("T5"), Some(100))).unwrap();
    cache.clean(CleanMode::Old, &[]).unwrap();
}

#[test]
fn commands_match_laravel() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut cache = open_cache(Backend::LaravelRedis, server.redis_endpoint(None));
    let mut monitor = Monitor::new(&server);
    operations(cache.as_mut());
    let recorded = monitor.commands();
    let one = "b27f2e0aa9044f8c8beee5dec76334a677698409";
    let two = "b5db193435d3b6834c06b2a33f03a1d2646c2d8b";
    let five = "c080d3bf5de0b777899c638244ba1fd032bce090";
    let only = "8f6e72527ed15d2b1c8db8bf91e810a2691735fd";
    let expected = format!(
        "ZADD P_tag:T1:entries <time> {one}:a
        ZADD P_tag:T2:entries <time> {one}:a
        SETEX P_{one}:a 7200 s:2:\\\"va\\\";
        SET P_b s:2:\\\"vb\\\";
        SETEX P_n 60 17.5
        ZADD P_tag:T2:entries -1 {only}:i
        SET P_{only}:i s:2:\\\"vi\\\";
        GET P_{one}:a
        GET P_missing
        ZADD P_tag:T2:entries <time> {two}:a
        ZADD P_tag:T4:entries <time> {two}:a
        SETEX P_{two}:a 9999999 s:3:\\\"va2\\\";
        GET P_n
        DEL P_b
        DEL P_b
        ZADD P_tag:T5:entries <time> {five}:d
        SETEX P_{five}:d 100 s:2:\\\"vd\\\";
        ZSCAN P_tag:T5:entries 0 COUNT 1000 MATCH *
        ZSCAN P_tag:T6:entries 0 COUNT 1000 MATCH *
        EVAL <script> 1 P_{five}:d P_ P_tag:T5:entries P_tag:T6:entries
        lua DEL P_{five}:d
        lua ZREM P_tag:T5:entries {five}:d
        lua ZREM P_tag:T6:entries {five}:d
        ZSCAN P_tag:T6:entries 0 COUNT 1000 MATCH *
        DEL P_{five}:e
        FLUSHDB
        ZADD P_tag:T5:entries <time> {five}:f
        SETEX P_{five}:f 100 s:0:\\\"\\\";
        SCAN 0 COUNT 1000 MATCH P_tag:*:entries
        ZREMRANGEBYSCORE P_tag:T5:entries 0 <time>"
    );
    assert_commands(&recorded, &expected.replace("P_", "cachedyno_cache_"));
    let commands = recorded.iter().filter(|line| !line.starts_with("lua ")).count() as u64;
    assert_eq!(cache.effort(), Effort { round_trips: commands, commands, files: 0 });
}

/// A record in Laravel is identified by its ID and its tags together.
#[test]
fn records_match_the_layout() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut cache = open_cache(Backend::LaravelRedis, server.redis_endpoint(None));
    let (mut model, mut known, mut state) = (Model::default(), BTreeMap::new(), 1);
    let mut value = Vec::new();
    for step in 0..600_u32 {
        let id = format!("id_{}", draw(&mut state, 10));
        let number = draw(&mut state, 3);
        let tags: Vec<_> =
            (0..number).map(|n| format!("T{}", n + 2 * draw(&mut state, 3))).collect();
        match draw(&mut state, 8) {
            0..5 => {
                let text = step.to_string().repeat(5);
                let name = format!("{}:{id}", tags.join(" "));
                let lifetime_s = (step % 3 > 0).then_some(7_200);
                cache.save(Record::new(&id, text.as_bytes(), &tags, lifetime_s)).unwrap();
                model.save(&name, text.as_bytes(), &tags);
                known.insert(id, name);
            }
            5 => {
                let there = known.get(&id).map_or(Found::No, |name| model.remove(name));
                assert_eq!(cache.remove(&id).unwrap(), there, "{step}");
            }
            6 => cache.clean(CleanMode::Old, &[]).unwrap(),
            _ => {
                cache.clean(CleanMode::MatchingAnyTag, &tags).unwrap();
                if !tags.is_empty() {
                    model.clean(CleanMode::MatchingAnyTag, &tags);
                }
            }
        }
        for (id, name) in &known {
            let found = cache.load(id, &mut value).unwrap();
            let record = model.records.get(name);
            assert_eq!(found == Found::Yes, record.is_some(), "{step}: {id}");
            assert!(value == *record.map_or(&Vec::new(), |(value, _)| value), "{step}: {id}");
        }
    }
}

#[test]
fn large_tags_foreign_values_and_unsupported_modes() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let mut cache = open_cache(Backend::LaravelRedis, server.redis_endpoint(None));
    let mut other = open_cache(Backend::LaravelRedis, server.redis_endpoint(None));
    let mut value = Vec::new();
    for n in 0..2_500 {
        cache.save(Record::new(&format!("id_{n}"), b"v", &list("ALL"), Some(100))).unwrap();
    }
    assert_eq!(other.load("id_7", &mut value).unwrap(), Found::No);
    other.learn("id_7", &list("ALL"));
    assert_eq!(other.load("id_7", &mut value).unwrap(), Found::Yes);
    other.clean(CleanMode::MatchingAnyTag, &list("ALL")).unwrap();
    assert_eq!(server.redis_cli(&["DBSIZE"]), "0");
    for mode in [CleanMode::MatchingTag, CleanMode::NotMatchingTag] {
        let e = cache.clean(mode, &list("T")).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Other, false), "{e}");
    }
    server.redis_cli(&["SET", "cachedyno_cache_foreign", "x"]);
    let e = cache.load("foreign", &mut value).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Protocol, false), "{e}");
    server.redis_cli(&["LPUSH", "cachedyno_cache_list", "x"]);
    let e = cache.load("list", &mut value).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Reply, false), "{e}");
    // Pruning tags removes expired entries.
    cache.save(Record::new("a", b"v", &list("T"), Some(1))).unwrap();
    server.redis_cli(&["ZADD", "cachedyno_cache_tag:T:entries", "5", "gone:a"]);
    cache.clean(CleanMode::Old, &[]).unwrap();
    assert_eq!(server.redis_cli(&["ZCARD", "cachedyno_cache_tag:T:entries"]), "1");
}
