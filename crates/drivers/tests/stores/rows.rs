//! Rows of a database and caches in front of it, on servers that the tests start.

use std::thread;
use std::time::{Duration, Instant};

use super::common::{Server, installed, patience, postgres_program};
use cachedyno_drivers::{admin, open_row_cache, open_row_database};
use model::{Endpoint, ErrorClass, Layout};
use workloads::cache_aside::{Locked, RowCache, User, Users};
use workloads::store::{Found, StoreError};

const TIMEOUT: Duration = Duration::from_secs(5);

fn users(numbers: std::ops::Range<u64>) -> Vec<User> {
    let all = Users::new(9, 400);
    let user = |number| {
        let mut user = User::default();
        all.user_into(&mut user, number);
        user
    };
    numbers.map(user).collect()
}

/// Checks a database; `sql` sends a statement as another client.
fn database(endpoint: &Endpoint, sql: &dyn Fn(&str) -> String) {
    let mut admin = admin(endpoint, TIMEOUT).unwrap();
    // Both servers check a statement when it is prepared.
    let missing = open_row_database(endpoint, TIMEOUT).map(drop).unwrap_err();
    assert_eq!(missing.class, ErrorClass::Reply, "{missing:?}");
    admin.prepare_rows().unwrap();
    let again = admin.prepare_rows().unwrap_err();
    assert_eq!(again.class, ErrorClass::NotOurs, "an existing table is left unchanged");
    let mut rows = open_row_database(endpoint, TIMEOUT).unwrap();
    let written = users(0..300);
    rows.insert(&written[..299]).unwrap();
    rows.insert(&written[299..]).unwrap();
    assert_eq!(sql("SELECT COUNT(*) FROM users"), "300");
    let mut read = User { number: 1, columns: users(7..8)[0].columns.clone() };
    for user in &written {
        assert_eq!(rows.query(user.number, &mut read).unwrap(), Found::Yes);
        assert_eq!(&read, user);
    }
    assert_eq!(rows.query(300, &mut read).unwrap(), Found::No);
    let twice = rows.insert(&written[..1]).unwrap_err();
    assert_eq!((twice.class, twice.fatal), (ErrorClass::Reply, false), "{twice}");
    sql("UPDATE users SET city = 'elsewhere' WHERE id = 5");
    rows.query(5, &mut read).unwrap();
    assert_eq!(read.columns[3], "elsewhere");
    admin.clean(Layout::Plain, "", &mut patience()).unwrap();
    let gone = rows.query(5, &mut read).unwrap_err();
    assert_eq!(gone.class, ErrorClass::Reply, "{gone}");
}

#[test]
fn mariadb_keeps_rows() {
    if !installed("mariadbd") {
        return;
    }
    let server = Server::mariadb();
    let sql = |statement: &str| server.sql(&format!("USE shop; {statement}"));
    database(&server.mysql_endpoint("root", None), &sql);
}

#[test]
fn postgres_keeps_rows() {
    if !installed(&postgres_program("postgres")) {
        return;
    }
    let server = Server::postgres();
    database(&server.postgres_endpoint("postgres", None), &|sql| server.postgres_sql(sql));
}

fn open(endpoint: &Endpoint, ttl_s: u64) -> Box<dyn RowCache> {
    open_row_cache(endpoint, ttl_s, TIMEOUT).unwrap()
}

/// Waits until a value has expired.
fn wait_for_expiry(cache: &mut dyn RowCache, key: &str) {
    let (started, mut value) = (Instant::now(), Vec::new());
    while cache.get(key, &mut value).unwrap() == Found::Yes {
        assert!(started.elapsed() < Duration::from_secs(30), "`{key}` does not expire");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(value.is_empty());
}

/// What a client does after a miss; true if it made the query.
fn read_under_lock(cache: &mut dyn RowCache, key: &str) -> Result<bool, StoreError> {
    let mut value = Vec::new();
    if cache.get(key, &mut value)? == Found::Yes {
        return Ok(false);
    }
    match cache.lock(key, &mut value)? {
        Locked::Cached(wait) => {
            assert_eq!(value, b"row");
            assert!(wait.attempts >= 1);
            Ok(false)
        }
        Locked::Ours(_) => {
            thread::sleep(Duration::from_millis(30));
            cache.set(key, b"row")?;
            assert!(cache.unlock(key)?);
            Ok(true)
        }
    }
}

fn cache(endpoint: &Endpoint) {
    let (mut one, mut other) = (open(endpoint, 300), open(endpoint, 300));
    let mut value = b"left over".to_vec();
    assert_eq!(one.get("user:1", &mut value).unwrap(), Found::No);
    assert!(value.is_empty());
    one.set("user:1", b"row").unwrap();
    assert_eq!(other.get("user:1", &mut value).unwrap(), Found::Yes);
    assert_eq!(value, b"row");
    let mut brief = open(endpoint, 1);
    brief.set("user:2", b"short").unwrap();
    wait_for_expiry(brief.as_mut(), "user:2");

    // Only its owner releases a lock, and the next client gets it then.
    assert!(matches!(one.lock("user:3", &mut value).unwrap(), Locked::Ours(w) if w.waited_ns == 0));
    assert!(!other.unlock("user:3").unwrap());
    assert!(one.unlock("user:3").unwrap());
    assert!(!one.unlock("user:3").unwrap());
    assert!(matches!(other.lock("user:3", &mut value).unwrap(), Locked::Ours(_)));
    let mut impatient = open_row_cache(endpoint, 300, Duration::from_millis(50)).unwrap();
    let late = impatient.lock("user:3", &mut value).unwrap_err();
    assert_eq!((late.class, late.fatal), (ErrorClass::Lock, false), "{late}");
    assert!(other.unlock("user:3").unwrap());

    // One of many clients queries after each expiry.
    for key in ["user:4", "user:5"] {
        let queries = thread::scope(|scope| {
            let client = || {
                let mut cache = open(endpoint, 300);
                scope.spawn(move || read_under_lock(cache.as_mut(), key).unwrap())
            };
            let all: Vec<_> = (0..8).map(|_| client()).collect();
            all.into_iter().map(|client| u32::from(client.join().unwrap())).sum::<u32>()
        });
        assert_eq!(queries, 1, "queries of `{key}`");
    }
}

/// A dead cache is an error that ends the client, not a miss.
fn dies(mut cache: Box<dyn RowCache>, mut server: Server) {
    server.end();
    let dead = cache.get("user:1", &mut Vec::new()).unwrap_err();
    assert_eq!((dead.class, dead.fatal), (ErrorClass::Closed, true), "{dead}");
}

#[test]
fn redis_caches_rows() {
    if !installed("redis-server") {
        return;
    }
    let server = Server::redis(&[]);
    let endpoint = server.redis_endpoint(None);
    cache(&endpoint);
    assert_eq!(server.redis_cli(&["TTL", "user:9"]), "-2");
    open(&endpoint, 60).set("user:9", b"row").unwrap();
    assert_eq!(server.redis_cli(&["GET", "user:9"]), "row");
    let ttl: i64 = server.redis_cli(&["TTL", "user:9"]).parse().unwrap();
    assert!((1..=60).contains(&ttl), "{ttl}");
    dies(open(&endpoint, 60), server);
}

#[test]
fn memcached_caches_rows() {
    if !installed("memcached") {
        return;
    }
    let server = Server::memcached(&[]);
    let endpoint = server.memcached_endpoint();
    cache(&endpoint);
    dies(open(&endpoint, 60), server);
}
