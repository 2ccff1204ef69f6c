//! A bulk fill has the same result as saves: every key with its type, value and expiry.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::common::{Server, installed};
use cachedyno_drivers::redis::cm::{CmOptions, CmRedis};
use cachedyno_drivers::{CacheOptions, open_tagged_cache};
use model::{Backend, ErrorClass, Product};
use workloads::app_cache::{Record, TaggedCache};
use workloads::store::Found;

/// Dump of a database: each key with its type, its expiry in ms since 1970 or -1, and its sorted
/// content. Times in records are `<time>`.
const SNAPSHOT: &str = "
local lines = {}
local untimed = function(text)
  return (text:gsub('i:1%d%d%d%d%d%d%d%d%d%d?;', 'i:<time>;'))
end
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, content = redis.call('TYPE', key).ok, {}
  if kind == 'string' then content = {redis.sha1hex(redis.call('GET', key))} end
  if kind == 'set' then content = redis.call('SMEMBERS', key); table.sort(content) end
  if kind == 'zset' then
    local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
    for n = 1, #all, 2 do content[#content + 1] = all[n] .. '=' .. all[n + 1] end
    table.sort(content)
  end
  if kind == 'hash' then
    for _, field in ipairs({'d', 't', 'i'}) do
      local value = untimed(redis.call('HGET', key, field))
      content[#content + 1] = field .. ' ' .. redis.sha1hex(value)
    end
    content[#content + 1] = redis.call('HLEN', key) .. ' =' .. redis.call('HGET', key, 'm')
  end
  lines[#lines + 1] = {key, kind, redis.call('PEXPIRETIME', key), table.concat(content, ' ')}
end
table.sort(lines, function(a, b) return a[1] < b[1] end)
for n, line in ipairs(lines) do lines[n] = table.concat(line, ' ') end
return lines";

/// The servers of a backend.
struct Stores {
    servers: Vec<Server>,
    options: CacheOptions,
}

impl Stores {
    fn of(backend: Backend, more: &[&str]) -> Self {
        let start = |product: &Product| match product {
            Product::Redis => Server::redis(more),
            _ => Server::memcached(more),
        };
        let servers: Vec<Server> = backend.products().iter().map(start).collect();
        let endpoint = |(product, server): (&Product, &Server)| match product {
            Product::Redis => server.redis_endpoint(None),
            _ => server.memcached_endpoint(),
        };
        let endpoints = backend.products().iter().zip(&servers).map(endpoint).collect();
        let timeout = Duration::from_secs(20);
        Self {
            servers,
            options: CacheOptions {
                endpoints,
                directory: PathBuf::new(),
                timeout,
                cm_settings: std::collections::BTreeMap::new(),
                magento: model::Magento::One,
            },
        }
    }

    fn open(&self, backend: Backend) -> Box<dyn TaggedCache> {
        open_tagged_cache(backend, &self.options).unwrap()
    }

    fn redis(&self) -> &Server {
        self.servers.last().unwrap()
    }
}

struct Filled {
    id: String,
    value: Vec<u8>,
    tags: Vec<String>,
    lifetime_s: Option<u64>,
}

/// Records of all kinds: without tags, with a duplicate tag, without a lifetime, long enough for
/// compression, numbers, empty.
fn record(number: u64) -> Filled {
    let tags = (0..number % 7).map(|n| format!("T{}", (number * 31 + n * n) % 97));
    let value = match number % 50 {
        0 => number.to_string().into_bytes(),
        1 => Vec::new(),
        2 => b"long enough ".repeat(2_000),
        _ => format!("v{number} ").repeat((number % 90) as usize).into_bytes(),
    };
    let lifetime_s = (!number.is_multiple_of(5)).then_some(1_000 * (number % 40 + 1));
    Filled { id: format!("id_{number}"), value, tags: tags.collect(), lifetime_s }
}

/// Saves records in one store and fills another with them, each record at about the same time.
fn save_and_fill(saved: &mut dyn TaggedCache, filled: &mut dyn TaggedCache, records: u64) {
    for number in 0..records {
        let Filled { id, value, tags, lifetime_s } = record(number);
        saved.save(Record::new(&id, &value, &tags, lifetime_s)).unwrap();
        filled.fill(Record::new(&id, &value, &tags, lifetime_s)).unwrap();
    }
    filled.fill_end().unwrap();
    let (by_saves, by_fill) = (saved.effort().round_trips, filled.effort().round_trips);
    assert!(by_fill * 10 < by_saves, "{by_fill} round trips, {by_saves} by saves");
}

/// Splits a line into its text without times since 1970, and these times in ms.
fn split_times(line: &str) -> (String, Vec<f64>) {
    let mut times = Vec::new();
    let mut time = |word: &str| match word.len() {
        10 | 11 => word.parse().map(|s: f64| times.push(s * 1e3)).is_ok(),
        13 => word.parse().map(|ms: f64| times.push(ms)).is_ok(),
        _ => false,
    };
    let words = line.split([' ', '=', ':']).map(|word| if time(word) { "<time>" } else { word });
    (words.collect::<Vec<_>>().join(" "), times)
}

/// Checks that both snapshots are equal except for times, which differ by at most `most`.
fn same(saved: &str, filled: &str, most: Duration) {
    assert!(saved.lines().count() > 100, "{saved}");
    assert_eq!(saved.lines().count(), filled.lines().count());
    for (saved, filled) in saved.lines().zip(filled.lines()) {
        let ((words, times), (filled_words, filled_times)) =
            (split_times(saved), split_times(filled));
        assert_eq!(words, filled_words);
        let off = |(a, b): (&f64, &f64)| (a - b).abs() > most.as_secs_f64() * 1e3;
        assert!(!times.iter().zip(&filled_times).any(off), "{saved}\n{filled}");
    }
}

/// Converts the remaining seconds in a line of memcached, `t…` after the flags, to an expiry time
/// in seconds since 1970. The two stores are queried one after the other, so the remaining seconds
/// can differ by one.
fn until(line: &str) -> String {
    let left = |word: &str| word.strip_prefix('t').and_then(|left| left.parse::<u64>().ok());
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let of = |word: &str| left(word).map_or(word.to_string(), |left| (now + left).to_string());
    line.split(' ').map(of).collect::<Vec<_>>().join(" ")
}

/// The IDs' items in memcached: bytes, flags, and expiry or `t-1`.
fn held(server: &Server, ids: &[String]) -> Vec<String> {
    let mut socket = UnixStream::connect(&server.socket).unwrap();
    let asked: Vec<String> = ids.iter().map(|id| format!("mg {id} f t v\r\n")).collect();
    let asked = asked.concat() + "mn\r\n";
    let mut writer = socket.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(asked.as_bytes()).unwrap());
    let mut answer = Vec::new();
    while !answer.ends_with(b"MN\r\n") {
        let mut piece = [0; 4096];
        let read = socket.read(&mut piece).unwrap();
        answer.extend_from_slice(&piece[..read]);
    }
    writing.join().unwrap();
    let text = String::from_utf8(answer).unwrap();
    text.lines().map(|line| until(line).replace(';', " ")).collect()
}

fn fill_is_as_saves(backend: Backend, records: u64) {
    let (saved, filled) = (Stores::of(backend, &[]), Stores::of(backend, &[]));
    let started = Instant::now();
    let (mut by_saves, mut by_fill) = (saved.open(backend), filled.open(backend));
    save_and_fill(by_saves.as_mut(), by_fill.as_mut(), records);
    // A filled record is sent a little later than the saved one.
    let most = Duration::from_secs(1).max(started.elapsed());
    let snapshot = |stores: &Stores| stores.redis().redis_cli(&["EVAL", SNAPSHOT, "0"]);
    same(&snapshot(&saved), &snapshot(&filled), most);
    let scripts = |stores: &Stores| {
        let info = stores.redis().redis_cli(&["INFO", "memory"]);
        info.lines().find(|l| l.starts_with("number_of_cached_scripts:")).unwrap().to_string()
    };
    // The snapshot adds one.
    assert_eq!(scripts(&saved), scripts(&filled), "{backend:?}");
    if backend.products()[0] == Product::Memcached {
        let ids: Vec<String> = (0..records).map(|n| record(n).id).collect();
        let here = |stores: &Stores| held(&stores.servers[0], &ids).join("\n");
        // Both expiry times are accurate to a second.
        same(&here(&saved), &here(&filled), most + Duration::from_secs(2));
    }
    let mut value = Vec::new();
    for number in 0..records {
        let record = record(number);
        let found = by_fill.load(&record.id, &mut value).unwrap();
        let found = found == Found::Yes;
        assert!(found && value == record.value, "{backend:?}: {}", record.id);
    }
}

#[test]
fn filled_records_equal_saved_ones() {
    if !installed("redis-server") || !installed("memcached") {
        return;
    }
    for backend in Backend::ALL.into_iter().filter(|backend| backend.fills_fast()) {
        // One backend gets more records than fit into a batch.
        fill_is_as_saves(backend, if backend == Backend::CmRedis { 9_000 } else { 700 });
    }
}

#[test]
fn the_set_of_all_ids_is_filled_too() {
    if !installed("redis-server") {
        return;
    }
    let (saved, filled) = (Server::redis(&[]), Server::redis(&[]));
    let open = |server: &Server| {
        let options = CmOptions { not_matching_tags: true, ..CmOptions::as_2019() };
        CmRedis::open(&server.redis_endpoint(None), options, Duration::from_secs(20)).unwrap()
    };
    let started = Instant::now();
    save_and_fill(&mut open(&saved), &mut open(&filled), 300);
    let snapshot = |server: &Server| server.redis_cli(&["EVAL", SNAPSHOT, "0"]);
    assert_eq!(filled.redis_cli(&["SCARD", "zc:ids"]), "300");
    same(&snapshot(&saved), &snapshot(&filled), Duration::from_secs(1).max(started.elapsed()));
}

#[test]
fn other_backends_save_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let options = CacheOptions {
        endpoints: Vec::new(),
        directory: directory.path().into(),
        timeout: Duration::from_secs(5),
        cm_settings: std::collections::BTreeMap::new(),
        magento: model::Magento::One,
    };
    for backend in [Backend::ZendFile, Backend::CmFile, Backend::SymfonyFile] {
        let mut cache = open_tagged_cache(backend, &options).unwrap();
        cache.fill(Record::new("a", b"va", &["T1".into()], None)).unwrap();
        let mut value = Vec::new();
        let mut other = open_tagged_cache(backend, &options).unwrap();
        assert_eq!(other.load("a", &mut value).unwrap(), Found::Yes, "{backend:?}");
        cache.fill_end().unwrap();
    }
}

/// The error that ends an endless fill.
fn fault(cache: &mut dyn TaggedCache) -> workloads::store::StoreError {
    for number in 0..1_000_000 {
        let Filled { id, value, tags, lifetime_s } = record(number);
        if let Err(e) = cache.fill(Record::new(&id, &value, &tags, lifetime_s)) {
            return e;
        }
    }
    cache.fill_end().unwrap_err()
}

#[test]
fn a_fault_ends_a_fill() {
    if !installed("redis-server") || !installed("memcached") {
        return;
    }
    let full = ["--maxmemory", "4mb", "--maxmemory-policy", "noeviction"];
    for backend in Backend::ALL.into_iter().filter(|b| b.products() == [Product::Redis]) {
        let stores = Stores::of(backend, &full);
        let e = fault(stores.open(backend).as_mut());
        assert_eq!(e.class, ErrorClass::Full, "{backend:?}: {e}");
    }
    for lost in 0..2 {
        let backend = Backend::SimpleTwoLevels;
        let mut stores = Stores::of(backend, &[]);
        let mut cache = stores.open(backend);
        save_half(cache.as_mut());
        stores.servers[lost].end();
        let e = fault(cache.as_mut());
        assert_eq!((e.class, e.fatal), (ErrorClass::Closed, true), "{lost}: {e}");
    }
}

/// Fills some records, the last of which are still in flight.
fn save_half(cache: &mut dyn TaggedCache) {
    for number in 0..1_000 {
        let Filled { id, value, tags, lifetime_s } = record(number);
        cache.fill(Record::new(&id, &value, &tags, lifetime_s)).unwrap();
    }
}
