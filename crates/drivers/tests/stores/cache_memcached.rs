//! Application caches on memcached: in front of files, and alone.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::common::{Server, installed, kept, tagged_cache, tags, text};
use cachedyno_drivers::{CacheOptions, open_tagged_cache};
use model::{Backend, Endpoint, ErrorClass};
use tempfile::TempDir;
use workloads::app_cache::{CleanMode, Record, TaggedCache};
use workloads::store::Found;

fn options(server: &Server, directory: &Path) -> CacheOptions {
    let files = Endpoint::Files { directory: directory.into() };
    CacheOptions {
        endpoints: vec![server.memcached_endpoint(), files],
        directory: directory.into(),
        timeout: Duration::from_secs(5),
        cm_settings: std::collections::BTreeMap::new(),
        magento: model::Magento::One,
    }
}

fn two_levels(more: &[&str]) -> Option<(Server, TempDir, Box<dyn TaggedCache>)> {
    if !installed("memcached") {
        return None;
    }
    let (server, directory) = (Server::memcached(more), tempfile::tempdir().unwrap());
    let options = options(&server, directory.path());
    let cache = open_tagged_cache(Backend::TwoLevelsFile, &options).unwrap();
    Some((server, directory, cache))
}

fn symfony(server: &Server) -> Box<dyn TaggedCache> {
    let options = options(server, Path::new(""));
    open_tagged_cache(Backend::SymfonyMemcached, &options).unwrap()
}

/// The server's reply to a request of the text protocol.
fn ask(server: &Server, request: &str) -> String {
    let mut stream = UnixStream::connect(&server.socket).unwrap();
    write!(stream, "{request}\r\nquit\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn two_levels_keep_and_clean() {
    let Some((_server, _directory, mut cache)) = two_levels(&[]) else { return };
    tagged_cache(cache.as_mut());
    cache.clean(CleanMode::All, &[]).unwrap();
    // A record that has expired in the slow level is still in the fast one, which has no lifetime
    // for it.
    cache.save(Record::new("OLD", b"old", &[], Some(1))).unwrap();
    thread::sleep(Duration::from_millis(2100));
    cache.clean(CleanMode::Old, &[]).unwrap();
    assert_eq!(kept(cache.as_mut(), &["OLD"]), ["OLD"]);
}

#[test]
fn each_level_is_used() {
    let Some((server, _directory, mut cache)) = two_levels(&[]) else { return };
    cache.save(Record::new("A", b"hello", &tags(&["T1"]), Some(7200))).unwrap();
    let stored = ask(&server, "get A");
    let array = "a:4:{s:4:\"data\";s:5:\"hello\";s:8:\"lifetime\";i:7200;s:6:\"expire\";i:1";
    assert!(stored.starts_with("VALUE A 4 "), "{stored}");
    assert!(stored.contains(&format!("\r\na:3:{{i:0;s:96:\"{array}")), "{stored}");
    assert!(stored.contains("s:8:\"priority\";i:8;}\";i:1;i:1") && stored.contains(";i:2;N;}"));
    assert!(ask(&server, "mg A t").starts_with("HD t-1"));

    // One request if the fast level has the record; otherwise it is copied with its lifetime.
    let before = cache.effort();
    assert_eq!(kept(cache.as_mut(), &["A"]), ["A"]);
    let after = cache.effort();
    assert_eq!((after.commands - before.commands, after.files), (1, before.files));
    ask(&server, "delete A");
    assert_eq!(kept(cache.as_mut(), &["A"]), ["A"]);
    assert_eq!(cache.effort().commands - after.commands, 2);
    assert!(ask(&server, "get A").contains(";i:2;i:7200;}"));
    assert!(ask(&server, "mg A t").starts_with("HD t7"));

    // Foreign content is removed, and the record is read from the slow level.
    ask(&server, "set A 0 0 5\r\nother");
    assert_eq!(kept(cache.as_mut(), &["A"]), ["A"]);
    assert!(ask(&server, "get A").contains("hello"));
    ask(&server, "set A 5 0 5\r\nother");
    let e = cache.load("A", &mut Vec::new()).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::NotOurs, false), "{e}");
}

#[test]
fn values_that_memcached_rejects_stay_in_the_slow_level() {
    let Some((server, _directory, mut cache)) = two_levels(&[]) else { return };
    let large = vec![b'x'; 2 << 20];
    let e = cache.save(Record::new("A", &large, &[], None)).unwrap_err();
    assert!(!e.fatal && e.message.contains("too large") && e.message.contains("1 MiB"), "{e}");
    let mut value = Vec::new();
    assert_eq!(cache.load("A", &mut value).unwrap(), Found::Yes);
    assert!(value == large);
    let long = "i".repeat(230) + &"d".repeat(9) + "longer-than-250";
    assert!(cache.save(Record::new(&long, b"x", &[], None)).is_err());
    drop((server, cache));

    let Some((mut server, directory, mut cache)) = two_levels(&[]) else { return };
    cache.save(Record::new("A", b"a", &tags(&["T1"]), None)).unwrap();
    server.end();
    let e = cache.save(Record::new("B", b"b", &tags(&["T1"]), None)).unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Closed, true), "{e}");
    let below = options(&server, directory.path());
    let mut below = open_tagged_cache(Backend::ZendFile, &below).unwrap();
    assert_eq!(kept(below.as_mut(), &["A", "B"]), ["A", "B"]);
}

#[test]
fn a_full_fast_level_is_bypassed() {
    let Some((server, directory, mut cache)) = two_levels(&["-m", "2", "-I", "512k"]) else {
        return;
    };
    let value = vec![b'x'; 100_000];
    for i in 0..40 {
        cache.save(Record::new(&format!("A{i}"), &value, &[], None)).unwrap();
    }
    let stats = ask(&server, "stats");
    let number = |name: &str| {
        let line = stats.lines().find(|line| line.starts_with(&format!("STAT {name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    if number("bytes") / number("limit_maxbytes") <= 0.81 {
        eprintln!("skipped: memcached evicts before it is full");
        return;
    }
    // A new client checks at its first save.
    let options = options(&server, directory.path());
    let mut cache = open_tagged_cache(Backend::TwoLevelsFile, &options).unwrap();
    cache.save(Record::new("LAST", b"last", &[], None)).unwrap();
    assert_eq!(ask(&server, "get LAST"), "END\r\n");
    assert_eq!(cache.effort().commands, 3, "stats, delete and get");
}

/// PHP's extension and our client read each other's values.
#[test]
fn php_and_we_share_the_fast_level() {
    let Some((server, _directory, mut cache)) = two_levels(&[]) else { return };
    if !installed("php") {
        return;
    }
    let modules = Command::new("php").arg("-m").output().unwrap();
    if !text(&modules).lines().any(|line| line == "memcached") {
        eprintln!("skipped: PHP has no extension memcached");
        return;
    }
    let php = |script: &str| {
        let opening = format!(
            "$m = new Memcached; $m->addServer('{}', 0); {script}",
            server.socket.display()
        );
        let settings = ["-d", "memcached.serializer=php", "-r", &opening];
        text(&Command::new("php").args(settings).output().unwrap())
    };
    cache.save(Record::new("A", b"hello", &[], Some(7200))).unwrap();
    let read = "$a = $m->get('A'); $b = unserialize($a[0]); \
                echo $b['data'], ' ', $b['lifetime'], ' ', $b['priority'], ' ', gettype($a[2]);";
    assert_eq!(php(read), "hello 7200 8 NULL");
    php("$m->set('P', [serialize(['data' => \"by\\0PHP\", 'lifetime' => null, 'expire' => 1, \
         'priority' => 8]), time(), null], 0);");
    let mut value = Vec::new();
    assert_eq!(cache.load("P", &mut value).unwrap(), Found::Yes);
    assert_eq!(value, b"by\0PHP");
}

#[test]
fn all_clean_modes_reach_both_levels() {
    let Some((_server, _directory, mut cache)) = two_levels(&[]) else { return };
    cache.save(Record::new("A", b"a", &tags(&["T1", "T2"]), None)).unwrap();
    cache.save(Record::new("B", b"b", &tags(&["T2"]), None)).unwrap();
    cache.save(Record::new("C", b"c", &tags(&["T3"]), None)).unwrap();
    cache.clean(CleanMode::MatchingTag, &tags(&["T1", "T2"])).unwrap();
    assert_eq!(kept(cache.as_mut(), &["A", "B", "C"]), ["B", "C"]);
    cache.clean(CleanMode::NotMatchingTag, &tags(&["T2"])).unwrap();
    assert_eq!(kept(cache.as_mut(), &["A", "B", "C"]), ["B"]);
    // Each record of a tag costs one deletion in the fast level.
    cache.save(Record::new("D", b"d", &tags(&["T2"]), None)).unwrap();
    let before = cache.effort().commands;
    cache.clean(CleanMode::MatchingAnyTag, &tags(&["T2", "T9"])).unwrap();
    assert_eq!(cache.effort().commands - before, 2);
}

#[test]
fn symfony_keeps_and_cleans() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&[]);
    let mut cache = symfony(&server);
    tagged_cache(cache.as_mut());
    for mode in [CleanMode::Old, CleanMode::MatchingTag, CleanMode::NotMatchingTag] {
        let e = cache.clean(mode, &tags(&["T1"])).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Other, false));
    }
    // Another client sees the first one's invalidation immediately or after 0.15 s.
    let mut other = symfony(&server);
    cache.save(Record::new("A", b"a", &tags(&["T1"]), Some(7200))).unwrap();
    assert_eq!(kept(other.as_mut(), &["A"]), ["A"]);
    cache.clean(CleanMode::MatchingAnyTag, &tags(&["T1"])).unwrap();
    assert_eq!(kept(cache.as_mut(), &["A"]), [""; 0]);
    assert_eq!(kept(other.as_mut(), &["A"]), ["A"], "its versions are cached for 0.15 s");
    thread::sleep(Duration::from_millis(200));
    assert_eq!(kept(other.as_mut(), &["A"]), [""; 0]);
}

#[test]
fn symfony_hashes_long_ids_and_rejects_invalid_ones() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&[]);
    let mut cache = symfony(&server);
    let long = "x".repeat(600);
    cache.save(Record::new(&long, b"long", &[], Some(1))).unwrap();
    assert_eq!(kept(cache.as_mut(), &[&long]), [&long]);
    thread::sleep(Duration::from_millis(2100));
    assert_eq!(kept(cache.as_mut(), &[&long]), [""; 0]);
    assert!(cache.save(Record::new("a:b", b"", &[], None)).is_err());
    assert!(cache.save(Record::new("a", b"", &tags(&["T/1"]), None)).is_err());
    let e = cache.save(Record::new("a", &vec![0; 2 << 20], &[], None)).unwrap_err();
    assert!(!e.fatal && e.message.contains("1 MiB"), "{e}");
    cache.save(Record::new("b c\n", b"blank", &tags(&["T 1"]), None)).unwrap();
    assert_eq!(kept(cache.as_mut(), &["a", "b c\n"]), ["b c\n"]);
}
