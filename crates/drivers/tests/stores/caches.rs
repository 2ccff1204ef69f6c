//! Helpers for tests of caches with tags: a server's monitor, and a model of the visible records.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::common::{Server, installed};
use cachedyno_drivers::{CacheOptions, open_tagged_cache};
use model::{Backend, Endpoint, ErrorClass, Product};
use workloads::app_cache::{CleanMode, Record, TaggedCache};
use workloads::store::Found;

pub(crate) fn list(tags: &str) -> Vec<String> {
    tags.split_whitespace().map(String::from).collect()
}

pub(crate) fn open_cache(backend: Backend, endpoint: Endpoint) -> Box<dyn TaggedCache> {
    open_tagged_cache(backend, &options(vec![endpoint])).unwrap()
}

fn options(endpoints: Vec<Endpoint>) -> CacheOptions {
    CacheOptions {
        endpoints,
        directory: PathBuf::new(),
        timeout: Duration::from_secs(5),
        cm_settings: std::collections::BTreeMap::new(),
        magento: model::Magento::One,
    }
}

pub(crate) fn assert_commands(recorded: &[String], expected: &str) {
    let expected: Vec<_> = expected.lines().map(str::trim).collect();
    for (at, (recorded, expected)) in recorded.iter().zip(&expected).enumerate() {
        assert_eq!(recorded, expected, "command {at}");
    }
    assert_eq!(recorded.len(), expected.len());
}

/// All commands that a Redis server receives, as shown by `redis-cli MONITOR`.
pub(crate) struct Monitor<'a> {
    server: &'a Server,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl<'a> Monitor<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(&server.socket).arg("MONITOR").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        assert_eq!(first, "OK\n");
        Self { server, child, lines }
    }

    /// The commands since the last call, one per line; `lua` precedes those of scripts. `<time>`
    /// replaces seconds since 1970, `<sha>` and `<script>` those of a script.
    pub(crate) fn commands(&mut self) -> Vec<String> {
        self.server.redis_cli(&["ECHO", "until here"]);
        let mut commands = Vec::new();
        loop {
            let mut line = String::new();
            self.lines.read_line(&mut line).unwrap();
            let (head, words) = line.trim_end().split_once("] ").unwrap();
            if words == "\"ECHO\" \"until here\"" {
                return commands;
            }
            let lua = if head.ends_with("lua") { "lua " } else { "" };
            commands.push(format!("{lua}{}", shown(words)));
        }
    }
}

impl Drop for Monitor<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shown(words: &str) -> String {
    let words = words.strip_prefix('"').and_then(|words| words.strip_suffix('"'));
    let words = words.unwrap_or_default().split("\" \"");
    let word = |word: &str| match word {
        "" => "\"\"".to_string(),
        _ if word.len() == 10 && word.starts_with(['1', '2']) => "<time>".into(),
        _ if word.len() == 40 && word.bytes().all(|b| b.is_ascii_hexdigit()) => "<sha>".into(),
        _ if word.contains("redis.call") => "<script>".into(),
        _ => word.into(),
    };
    words.map(word).collect::<Vec<_>>().join(" ")
}

/// Records with their tags, and the IDs in each tag's set, including those of removed records: a
/// record that is saved again is still found by its previous tags.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) records: BTreeMap<String, (Vec<u8>, Vec<String>)>,
    pub(crate) sets: BTreeMap<String, BTreeSet<String>>,
}

impl Model {
    pub(crate) fn save(&mut self, id: &str, value: &[u8], tags: &[String]) {
        let old = self.records.insert(id.into(), (value.into(), tags.into()));
        for tag in old.map(|(_, tags)| tags).unwrap_or_default() {
            self.sets.entry(tag).or_default().remove(id);
        }
        for tag in tags {
            self.sets.entry(tag.clone()).or_default().insert(id.into());
        }
    }

    pub(crate) fn remove(&mut self, id: &str) -> Found {
        let Some((_, tags)) = self.records.remove(id) else { return Found::No };
        for tag in tags {
            self.sets.entry(tag).or_default().remove(id);
        }
        Found::Yes
    }

    pub(crate) fn clean(&mut self, mode: CleanMode, tags: &[String]) {
        let of = |tag: &String| self.sets.get(tag).cloned().unwrap_or_default();
        let mut sets = tags.iter().map(of);
        let first = sets.next().unwrap_or_default();
        let ids = match mode {
            CleanMode::All => {
                *self = Self::default();
                return;
            }
            CleanMode::Old => {
                let there = &self.records;
                self.sets.values_mut().for_each(|set| set.retain(|id| there.contains_key(id)));
                return;
            }
            CleanMode::MatchingTag => sets.fold(first, |all, set| &all & &set),
            CleanMode::MatchingAnyTag | CleanMode::NotMatchingTag => {
                sets.fold(first, |all, set| &all | &set)
            }
        };
        if mode == CleanMode::MatchingAnyTag {
            for tag in tags {
                self.sets.remove(tag);
            }
        }
        self.records.retain(|id, _| ids.contains(id) == (mode == CleanMode::NotMatchingTag));
    }
}

/// `KEYS` patterns of all keys that a backend creates on Redis.
fn key_patterns(backend: Backend) -> &'static [&'static str] {
    match backend {
        Backend::SymfonyRedis => &["cachedyno:*"],
        Backend::LaravelRedis => &["cachedyno_cache_*"],
        _ => &["zc:k:*", "zc:ti:*", "zc:tags", "zc:ids"],
    }
}

#[test]
fn patterns_match_all_keys_and_clusters_are_rejected() {
    if !installed("redis-server") {
        return;
    }
    let mut server = Server::redis(&[]);
    for backend in Backend::ALL {
        if backend.products() != [Product::Redis] {
            continue;
        }
        let mut cache = open_cache(backend, server.redis_endpoint(None));
        cache.save(Record::new("a", b"v", &list("T1 T2"), None)).unwrap();
        cache.save(Record::new("b", b"v", &[], Some(100))).unwrap();
        let patterns = key_patterns(backend);
        let named = patterns.iter().map(|p| server.redis_cli(&["KEYS", p]).lines().count());
        let all = server.redis_cli(&["DBSIZE"]).parse::<usize>().unwrap();
        assert_eq!(named.sum::<usize>(), all, "{backend:?}");
        cache.clean(CleanMode::All, &[]).unwrap();
        assert_eq!(server.redis_cli(&["DBSIZE"]), "0");
        let mut endpoint = server.redis_endpoint(None);
        let Endpoint::Redis { options: redis, .. } = &mut endpoint else { unreachable!() };
        redis.is_cluster = true;
        let e = open_tagged_cache(backend, &options(vec![endpoint])).err().unwrap();
        assert!(e.message.contains("expected one server"), "{e}");
        let e = open_tagged_cache(backend, &options(Vec::new())).err().unwrap();
        assert_eq!(e.class, ErrorClass::Other, "{e}");
    }
    server.end();
    let gone = options(vec![server.redis_endpoint(None)]);
    let e = open_tagged_cache(Backend::CmRedisLua, &gone).err().unwrap();
    assert_eq!(e.class, ErrorClass::Refused, "{e}");
}

/// A number below `below`, the same in every run of a test.
pub(crate) fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// Runs random operations on a cache and its model and checks that the same records are visible.
pub(crate) fn agrees(cache: &mut dyn TaggedCache, model: &mut Model, cleans: &[CleanMode]) {
    let mut state = 1;
    let mut seen = Vec::new();
    for step in 0..400 {
        let id = format!("id_{}", draw(&mut state, 12));
        let number = draw(&mut state, 4);
        let mut tags: Vec<_> = (0..number).map(|_| format!("T{}", draw(&mut state, 6))).collect();
        tags.sort();
        tags.dedup();
        match draw(&mut state, 8) {
            0..4 => {
                let value = vec![b'a' + (step % 26) as u8; draw(&mut state, 2_000) as usize];
                let lifetime_s = (step % 3 > 0).then_some(7_200);
                cache.save(Record::new(&id, &value, &tags, lifetime_s)).unwrap();
                model.save(&id, &value, &tags);
            }
            4 => {
                // Some backends do not report that a record was missing.
                let (reported, there) = (cache.remove(&id).unwrap(), model.remove(&id));
                assert!(reported == Found::Yes || there == Found::No, "{step}: {id}");
            }
            5 => {}
            _ if tags.is_empty() => {}
            _ => {
                let mode = cleans[draw(&mut state, cleans.len() as u64) as usize];
                let tags = if mode == CleanMode::Old { &[] } else { tags.as_slice() };
                cache.clean(mode, tags).unwrap();
                model.clean(mode, tags);
            }
        }
        for id in (0..12).map(|n| format!("id_{n}")) {
            let found = cache.load(&id, &mut seen).unwrap();
            let record = model.records.get(&id);
            assert_eq!(found == Found::Yes, record.is_some(), "{step}: {id}");
            assert!(seen == *record.map_or(&Vec::new(), |(value, _)| value), "{step}: {id}");
        }
    }
}
