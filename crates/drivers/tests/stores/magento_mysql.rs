//! Magento's cache in tables. The expected statements are those that
//! `Varien_Cache_Backend_Database` sent through Zend's adapter and PDO of PHP 8.2 for the same
//! operations, except for white space.

use std::time::Duration;

use super::caches::{list, open_cache};
use super::common::{Server, installed, patience};
use super::mysql::log_of;
use cachedyno_drivers::admin;
use model::{Backend, ErrorClass, Layout};
use workloads::app_cache::{CleanMode, Effort, Record, TaggedCache};
use workloads::store::Found;

fn operations(cache: &mut dyn TaggedCache) {
    let mut value = Vec::new();
    cache.save(Record::new("a", b"v'a", &list("T1 T2"), Some(7_200))).unwrap();
    cache.save(Record::new("b", b"vb", &[], None)).unwrap();
    assert_eq!(cache.load("a", &mut value).unwrap(), Found::Yes);
    assert_eq!(value, b"v'a");
    assert_eq!(cache.load("missing", &mut value).unwrap(), Found::No);
    cache.save(Record::new("a", b"va2", &list("T2 T4"), Some(9_999_999))).unwrap();
    assert_eq!(cache.remove("b").unwrap(), Found::Yes);
    assert_eq!(cache.remove("b").unwrap(), Found::No);
    cache.save(Record::new("d", b"vd", &list("T5"), Some(100))).unwrap();
    cache.clean(CleanMode::MatchingTag, &list("T5 T6")).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &list("T5 T6")).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &list("T7")).unwrap();
    cache.clean(CleanMode::NotMatchingTag, &list("T1 T2 T4")).unwrap();
    cache.clean(CleanMode::Old, &[]).unwrap();
    cache.clean(CleanMode::All, &[]).unwrap();
}

fn statements(server: &Server) {
    let mut cache = open_cache(Backend::MagentoMysql, server.mysql_endpoint("root", None));
    let log = log_of(server, || operations(cache.as_mut()));
    let insert = "INSERT INTO core_cache (`id`, `data`, `create_time`, `update_time`, \
                  `expire_time`) VALUES";
    let update = "ON DUPLICATE KEY UPDATE `data`=VALUES(`data`), \
                  `expire_time`=VALUES(`expire_time`)";
    let select = "SELECT `core_cache`.`data` FROM `core_cache` WHERE (id=";
    let tags = "SELECT `core_cache_tag`.`tag` FROM `core_cache_tag` WHERE (cache_id=";
    let ids = "SELECT `core_cache_tag`.`cache_id` FROM `core_cache_tag` WHERE (tag ";
    let expected = [
        format!(r"{insert} ('a', 'v\\'a', '<time>', '<time>', '<time>') {update}"),
        format!("{tags}'a') AND (tag IN('T1', 'T2'))"),
        "INSERT IGNORE INTO core_cache_tag (tag, cache_id) VALUES ('T1', 'a'),('T2', 'a')".into(),
        format!("{insert} ('b', 'vb', '<time>', '<time>', '0') {update}"),
        format!("{select}'a') AND (expire_time=0 OR expire_time><time>)"),
        format!("{select}'missing') AND (expire_time=0 OR expire_time><time>)"),
        format!("{insert} ('a', 'va2', '<time>', '<time>', '<time>') {update}"),
        format!("{tags}'a') AND (tag IN('T2', 'T4'))"),
        "INSERT IGNORE INTO core_cache_tag (tag, cache_id) VALUES ('T4', 'a')".into(),
        "DELETE FROM `core_cache` WHERE (id = 'b')".into(),
        "DELETE FROM `core_cache_tag` WHERE (cache_id = 'b')".into(),
        "DELETE FROM `core_cache` WHERE (id = 'b')".into(),
        format!("{insert} ('d', 'vd', '<time>', '<time>', '<time>') {update}"),
        format!("{tags}'d') AND (tag IN('T5'))"),
        "INSERT IGNORE INTO core_cache_tag (tag, cache_id) VALUES ('T5', 'd')".into(),
        format!("{ids}IN ('T5', 'T6')) GROUP BY `cache_id` HAVING (COUNT(cache_id) = 2)"),
        format!("{ids}IN ('T5', 'T6'))"),
        "DELETE FROM `core_cache` WHERE (id IN ('d'))".into(),
        "DELETE FROM `core_cache_tag` WHERE (cache_id IN ('d'))".into(),
        format!("{ids}IN ('T7'))"),
        format!("{ids}NOT IN ('T1', 'T2', 'T4'))"),
        "SELECT `core_cache`.`id` FROM `core_cache` WHERE (expire_time > 0) AND \
         (expire_time <= <time>)"
            .into(),
        "TRUNCATE TABLE core_cache".into(),
        "TRUNCATE TABLE core_cache_tag".into(),
    ];
    for (logged, expected) in log.iter().zip(&expected) {
        assert_eq!(without_times(logged), format!("Query {expected}"));
    }
    let number = expected.len();
    assert_eq!(log.len(), number);
    let number = number as u64;
    assert_eq!(cache.effort(), Effort { round_trips: number, commands: number, files: 0 });
}

/// Numbers of ten digits are seconds since 1970.
fn without_times(statement: &str) -> String {
    let mut shown = String::new();
    let mut digits = String::new();
    for c in statement.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        shown.push_str(if digits.len() == 10 { "<time>" } else { &digits });
        digits.clear();
        shown.push(c);
    }
    shown.trim_end_matches('\0').into()
}

fn there(cache: &mut dyn TaggedCache, ids: &str) -> String {
    let mut value = Vec::new();
    let found = |id: &&str| cache.load(id, &mut value).unwrap() == Found::Yes;
    ids.split(' ').filter(found).collect::<Vec<_>>().join(" ")
}

fn quirks(server: &Server) {
    let mut cache = open_cache(Backend::MagentoMysql, server.mysql_endpoint("root", None));
    let cache = cache.as_mut();
    // A record keeps its old tags.
    cache.save(Record::new("a", b"1", &list("T1"), None)).unwrap();
    cache.save(Record::new("a", b"2", &list("T2"), None)).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &list("T1")).unwrap();
    assert_eq!(there(cache, "a"), "");
    // Not matching: any other tag suffices, and a record without tags stays.
    cache.save(Record::new("both", b"1", &list("T1 T2"), None)).unwrap();
    cache.save(Record::new("one", b"1", &list("T1"), None)).unwrap();
    cache.save(Record::new("none", b"1", &[], None)).unwrap();
    cache.clean(CleanMode::NotMatchingTag, &list("T1")).unwrap();
    assert_eq!(there(cache, "both one none"), "one none");
    cache.clean(CleanMode::All, &[]).unwrap();
    // Two batches, and a third that was found by its second tag and ends the clean.
    for n in 0..150 {
        cache
            .save(Record::new(&format!("id_{n:03}"), &[0xff, b'\'', 0], &list("T1 T2"), None))
            .unwrap();
    }
    let mut value = Vec::new();
    cache.load("id_000", &mut value).unwrap();
    assert_eq!(value, [0xff, b'\'', 0]);
    let before = cache.effort().commands;
    cache.clean(CleanMode::MatchingAnyTag, &list("T1 T2")).unwrap();
    assert_eq!(cache.effort().commands - before, 1 + 2 + 2 + 1);
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.core_cache"), "0");
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.core_cache_tag"), "0");
    // Old records are invisible and removed on request.
    cache.save(Record::new("old", b"1", &list("T1"), Some(100))).unwrap();
    cache.save(Record::new("young", b"1", &list("T1"), Some(100))).unwrap();
    server.sql("UPDATE shop.core_cache SET expire_time = 1000 WHERE id = 'old'");
    assert_eq!(there(cache, "old young"), "young");
    cache.clean(CleanMode::Old, &[]).unwrap();
    assert_eq!(server.sql("SELECT cache_id FROM shop.core_cache_tag"), "young");
    let e = cache.clean(CleanMode::MatchingAnyTag, &[]).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Reply, false), "{e}");
}

#[test]
fn magento_keeps_its_cache_in_tables() {
    if !installed("mariadbd") || !installed("mariadb-install-db") {
        return;
    }
    let server = Server::mariadb();
    let endpoint = server.mysql_endpoint("root", None);
    let mut admin = admin(&endpoint, Duration::from_secs(5)).unwrap();
    server.sql("CREATE TABLE shop.core_cache_tag (a INT)");
    let e = admin.prepare_cache(Backend::MagentoMysql).unwrap_err();
    assert_eq!(e.class, ErrorClass::NotOurs, "{e}");
    assert_eq!(server.sql("SHOW TABLES FROM shop"), "core_cache_tag");
    server.sql("DROP TABLE shop.core_cache_tag");
    admin.prepare_cache(Backend::CmRedis).unwrap();
    assert_eq!(server.sql("SHOW TABLES FROM shop"), "");
    admin.prepare_cache(Backend::MagentoMysql).unwrap();
    statements(&server);
    quirks(&server);
    admin.clean(Layout::Plain, "", &mut patience()).unwrap();
    assert_eq!(server.sql("SHOW TABLES FROM shop"), "");
}
