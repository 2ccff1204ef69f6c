//! Commands that can access foreign data, with settings that make them short.

use super::foreign::{Foreign, Store};

/// A command to run.
pub(super) struct HarmCase {
    pub(super) name: &'static str,
    pub(super) store: Store,
    /// Expected exit codes if it is not interrupted.
    pub(super) codes: &'static [i32],
    /// True if it writes a record.
    pub(super) keeps_record: bool,
    pub(super) arguments: fn(&Foreign) -> Vec<String>,
}

/// VALID, or disturbed by other processes.
const MEASURED: &[i32] = &[0, 4];
/// The store cannot be used.
const REFUSED: &[i32] = &[3];

const fn case(
    name: &'static str,
    store: Store,
    codes: &'static [i32],
    arguments: fn(&Foreign) -> Vec<String>,
) -> HarmCase {
    HarmCase { name, store, codes, keeps_record: true, arguments }
}

pub(super) const CASES: [HarmCase; 18] = [
    case("sessions on Redis", Store::Redis, MEASURED, |f| {
        sessions(&[&target(&redis(f, 0)), "--allow-shared", "--set", "profile=steady,page"])
    }),
    case("sessions on MySQL", Store::Mysql, MEASURED, |f| {
        sessions(&[
            &format!("--target=my={}", f.mysql.url()),
            "--allow-shared",
            "--set",
            "profile=steady,page",
        ])
    }),
    case("sessions in a directory", Store::Files, MEASURED, |f| {
        sessions(&[&target(&files(f)), "--set", "profile=steady,page"])
    }),
    case("bench of Redis", Store::Redis, MEASURED, |f| {
        bench(&redis(f, 0), &["--allow-shared", "--op", "get=1,set=1,insert=1,rmw=1"])
    }),
    case("bench of a Redis that evicts", Store::TightRedis, REFUSED, |f| {
        bench(&redis_at(f.tight.port, 9), &["--keys", "20000", "--value", "1KiB"])
    }),
    case("bench of memcached", Store::Memcached, MEASURED, |f| {
        bench(&memcached(f), &["--i-own-this-server", "--op", "get=1,set=1,insert=1"])
    }),
    case("bench of a memcached with items", Store::Memcached, REFUSED, |f| {
        bench(&memcached(f), &["--allow-shared"])
    }),
    case("sessions on private servers", Store::Private, MEASURED, |_| {
        sessions(&["--target=redis", "--target=mysql", "--target=files"])
    }),
    case("a Redis that evicts, within its free memory", Store::TightRedis, MEASURED, |f| {
        bench(&redis_at(f.tight.port, 9), &["--keys", "500", "--value", "100", "--clients", "4"])
    }),
    case("application cache in an empty database", Store::Redis, MEASURED, |f| {
        cache(&[&format!("--target=cm-redis={}", redis(f, 9))])
    }),
    case("application cache in a directory", Store::Files, MEASURED, |f| {
        cache(&[&format!("--target=zend-file={}", files(f))])
    }),
    case("ramp of Redis and memcached", Store::Redis, MEASURED, |f| {
        let targets = [format!("--target=x={}", redis(f, 0)), "--target=memcached".into()];
        let short = ["rates=2000,4000", "stage_ms=700", "blocks_min=1", "blocks_max=1"];
        let short = short.map(|set| ["--set", set]).concat();
        let short = [&short[..], &["--allow-shared"]].concat();
        words(&[&["run", "ramp", "--scale", "quick"], &short[..], &refs(&targets)].concat())
    }),
    case("find-max of Redis", Store::Redis, MEASURED, |f| {
        let short = ["--slo", "p99<100ms", "--probe", "500ms", "--rounds", "2", "--keys", "20000"];
        let target = format!("x={}", redis(f, 0));
        words(&[&["find-max", &target, "--allow-shared"], &short[..]].concat())
    }),
    case("bench with commands of the user", Store::Redis, MEASURED, |f| {
        let commands = ["--command", "SET __key__ __data__", "--command", "HINCRBY __key__:h f 1"];
        bench(&redis(f, 0), &[&["--allow-shared"], &commands[..]].concat())
    }),
    case("bench with a command that names a foreign key", Store::Redis, &[2, 3], |f| {
        bench(&redis(f, 0), &["--allow-shared", "--command", "DEL cart:17"])
    }),
    case("bench with a script", Store::Redis, &[2, 3], |f| {
        let flush = "EVAL \"return redis.call('FLUSHALL')\" 0";
        bench(&redis(f, 0), &["--allow-shared", "--command", flush])
    }),
    case("application cache under a memory limit", Store::Private, &[0, 1, 3, 4], |_| {
        cache(&["--target=zend-file", "--target=cm-redis", "--set", "memory_limit=64MiB"])
    }),
    case("resume of the last run", Store::Redis, &[0, 2, 3, 4], |f| {
        words(&["run", "--resume", "latest", &target(&redis(f, 0)), "--allow-shared"])
    }),
];

fn redis(foreign: &Foreign, database: u32) -> String {
    redis_at(foreign.redis.port, database)
}

fn redis_at(port: u16, database: u32) -> String {
    format!("redis://127.0.0.1:{port}/{database}")
}

fn memcached(foreign: &Foreign) -> String {
    format!("memcached://127.0.0.1:{}", foreign.memcached.port)
}

fn files(foreign: &Foreign) -> String {
    format!("file://{}", foreign.directory().display())
}

fn target(url: &str) -> String {
    format!("--target=x={url}")
}

fn sessions(more: &[&str]) -> Vec<String> {
    let short = ["--set", "measure_ms=250", "--set", "warmup_ms=50", "--set", "sessions=2000"];
    study("sessions", &[&short[..], more].concat())
}

fn cache(more: &[&str]) -> Vec<String> {
    let small = ["--set", "keys=2000", "--set", "tags=100", "--set", "ops=2000"];
    let short = ["--set", "measure_ms=250", "--set", "warmup_ms=50"];
    study("app-cache", &[&small[..], &short[..], more].concat())
}

fn study(name: &str, more: &[&str]) -> Vec<String> {
    let blocks = ["--set", "blocks_min=1", "--set", "blocks_max=1"];
    words(&[&["run", name, "--scale", "quick", "--disk", "disk"], &blocks[..], more].concat())
}

fn bench(url: &str, more: &[&str]) -> Vec<String> {
    let target = format!("x={url}");
    let short = ["--duration", "1s", "--warmup", "100ms"];
    let keys: &[&str] =
        if more.contains(&"--keys") { &[] } else { &["--keys", "20000", "--clients", "8"] };
    words(&[&["bench", &target], &short[..], keys, more].concat())
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
