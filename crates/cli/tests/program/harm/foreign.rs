//! Stores with foreign data: 100,000 keys each in Redis, memcached and MariaDB, and files.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::program::common::{MariadbServer, PortServer};

/// Foreign keys and rows in each store.
const KEYS: u64 = 100_000;
/// Foreign files in a short and in a long campaign.
const FILES: [u64; 2] = [2_000, 100_000];
/// Free memory of the tight Redis in addition to the foreign data.
const ROOM_BYTES: u64 = 4 << 20;
/// Keys per request to memcached.
const BATCH: u64 = 100;

/// A store that a command can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// Redis without a memory limit.
    Redis,
    /// Redis with little free memory, which evicts any key.
    TightRedis,
    Memcached,
    Mysql,
    Files,
    /// Servers that cachedyno starts.
    Private,
}

const ALL: [Store; 5] =
    [Store::Redis, Store::TightRedis, Store::Memcached, Store::Mysql, Store::Files];

pub(super) struct Foreign {
    pub(super) redis: PortServer,
    pub(super) tight: PortServer,
    pub(super) memcached: PortServer,
    pub(super) mysql: MariadbServer,
    directory: TempDir,
    files: u64,
    checksum: String,
}

impl Foreign {
    pub(super) fn new(is_long: bool) -> Self {
        let (redis, tight) = (PortServer::redis(&[]), PortServer::redis(&[]));
        for server in [&redis, &tight] {
            server.ask(&["EVAL", &script("redis.call('SET', key, value)"), "0"]);
        }
        let used = tight.ask(&["INFO", "memory"]);
        let used = used.lines().find_map(|l| l.trim().strip_prefix("used_memory:")).unwrap();
        let limit = used.parse::<u64>().unwrap() + ROOM_BYTES;
        tight.ask(&["CONFIG", "SET", "maxmemory", &limit.to_string()]);
        tight.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
        let memcached = PortServer::memcached(&["-m", "512"]);
        fill_memcached(memcached.port);
        let mysql = MariadbServer::new();
        mysql.ask("CREATE TABLE shop.customers (id INT PRIMARY KEY, name VARCHAR(40))");
        mysql.ask(&format!(
            "USE shop; INSERT INTO customers SELECT seq, CONCAT('customer ', seq) FROM seq_1_to_{KEYS}"
        ));
        mysql.ask("CREATE TABLE shop.cachedyno_00000000_1 (name TEXT)");
        let directory = tempfile::Builder::new().prefix("cdforeign").tempdir().unwrap();
        let files = FILES[usize::from(is_long)];
        for number in 0..files {
            fs::write(directory.path().join(file(number)), content(number)).unwrap();
        }
        let checksum = checksum(&mysql);
        Self { redis, tight, memcached, mysql, directory, files, checksum }
    }

    pub(super) fn directory(&self) -> PathBuf {
        self.directory.path().into()
    }

    /// Number of foreign keys, rows and files that are missing or changed, in all stores.
    pub(super) fn lost(&self) -> u64 {
        ALL.into_iter().map(|store| self.lost_in(store)).sum()
    }

    /// Like [`Self::lost`], for one store.
    pub(super) fn lost_in(&self, store: Store) -> u64 {
        match store {
            Store::Redis => lost_in_redis(&self.redis),
            Store::TightRedis => lost_in_redis(&self.tight),
            Store::Memcached => lost_in_memcached(self.memcached.port),
            Store::Mysql => u64::from(checksum(&self.mysql) != self.checksum),
            Store::Files => {
                let is_lost = |number: &u64| {
                    let text = fs::read_to_string(self.directory.path().join(file(*number)));
                    text.ok() != Some(content(*number))
                };
                (0..self.files).filter(is_lost).count() as u64
            }
            Store::Private => 0,
        }
    }

    /// Contents of a store other than the foreign data.
    pub(super) fn left_in(&self, store: Store) -> Vec<String> {
        match store {
            Store::Redis => left_in_redis(&self.redis),
            Store::TightRedis => left_in_redis(&self.tight),
            Store::Memcached => {
                let more = self.memcached.stat("curr_items").checked_sub(KEYS);
                more.filter(|more| *more > 0)
                    .map(|more| format!("{more} items"))
                    .into_iter()
                    .collect()
            }
            Store::Mysql => {
                let tables = self.mysql.ask("SHOW TABLES IN shop");
                let is_foreign = |name: &&str| ["customers", "cachedyno_00000000_1"].contains(name);
                tables.lines().filter(|name| !is_foreign(name)).map(Into::into).collect()
            }
            Store::Files => {
                let entries = fs::read_dir(self.directory.path()).unwrap();
                let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
                names.filter(|name| !name.starts_with("cart-")).collect()
            }
            Store::Private => Vec::new(),
        }
    }
}

/// A Lua script that runs `statement` for every foreign `key` and `value`, and returns `n`.
fn script(statement: &str) -> String {
    format!(
        "local n = 0 for i = 1, {KEYS} do local key = 'cart:' .. i local value = 'three eggs, ' .. \
         i {statement} end return n"
    )
}

fn lost_in_redis(server: &PortServer) -> u64 {
    // Each key is read only once, so that the check does not protect keys from eviction.
    let compare = script("if redis.call('GET', key) ~= value then n = n + 1 end");
    server.ask(&["EVAL", &compare, "0"]).parse().unwrap()
}

fn left_in_redis(server: &PortServer) -> Vec<String> {
    let keyspace = server.ask(&["INFO", "keyspace"]);
    let databases = keyspace.lines().filter(|line| line.starts_with("db"));
    let more = databases.filter(|line| {
        let keys = line.split(['=', ',']).nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap();
        !line.starts_with("db0:") || keys > KEYS
    });
    more.map(|line| line.trim().to_string()).collect()
}

fn fill_memcached(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut text = String::new();
    for number in 1..=KEYS {
        let value = format!("three eggs, {number}");
        let length = value.len();
        text.extend([&format!("set cart:{number} 0 0 {length} noreply\r\n"), &*value, "\r\n"]);
    }
    stream.write_all(text.as_bytes()).unwrap();
    stream.write_all(b"version\r\nquit\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
}

fn lost_in_memcached(port: u16) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    let mut intact = 0;
    for first in (1..=KEYS).step_by(BATCH as usize) {
        let keys: Vec<String> = (first..first + BATCH).map(|n| format!("cart:{n}")).collect();
        stream.write_all(format!("get {}\r\n", keys.join(" ")).as_bytes()).unwrap();
        let mut number = String::new();
        loop {
            let mut line = String::new();
            replies.read_line(&mut line).unwrap();
            match line.trim_end().strip_prefix("VALUE cart:") {
                Some(rest) => number = rest.split(' ').next().unwrap().into(),
                None if line.starts_with("END") => break,
                None => intact += u64::from(line.trim_end() == format!("three eggs, {number}")),
            }
        }
    }
    KEYS - intact
}

fn checksum(server: &MariadbServer) -> String {
    server.ask("CHECKSUM TABLE shop.customers, shop.cachedyno_00000000_1")
}

fn file(number: u64) -> String {
    format!("cart-{number}")
}

fn content(number: u64) -> String {
    format!("three eggs, {number}")
}
