//! Sessions in a PostgreSQL server that the test starts.

use std::path::Path;
use std::time::Duration;

use super::common::{
    Server, collects_expired, contention, installed, locked_open_times_out, options, page_store,
    patience, plain_store, postgres_program, timed, wait_until,
};
use cachedyno_drivers::{SessionOptions, admin, open_page_store, open_session_store};
use model::{Connections, Endpoint, ErrorClass, Layout};
use nix::sys::signal::Signal;
use workloads::store::Found;

fn plain(server: &Server, base: &SessionOptions) {
    let endpoint = server.postgres_endpoint("postgres", None);
    for (connections, table) in
        [(Connections::Persistent, "kept"), (Connections::As2019, "as_2019")]
    {
        let options = SessionOptions { connections, table: table.into(), ..base.clone() };
        let mut admin = admin(&endpoint, options.timeout).unwrap();
        admin.prepare(Layout::Plain, table, 1_500).unwrap();
        admin.verify(Layout::Plain, &options, "p_verify").unwrap();
        assert_eq!(server.postgres_sql(&format!("SELECT COUNT(*) FROM {table}")), "0");
        let mut store = open_session_store(&endpoint, &options).unwrap();
        plain_store(store.as_mut());
        assert_eq!(store.replace("missing", b"x").unwrap(), Found::No);
        let e = store.create("1_0", b"again").unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Reply, false), "{e}");
        assert!(e.message.contains("23505"), "{e}");
        let row = format!("SELECT value, created FROM {table} WHERE name = '1_0'");
        assert_eq!(server.postgres_sql(&row), "longer again|");
        admin.clean(Layout::Plain, "", &mut patience()).unwrap();
        assert!(!server.postgres_sql("SELECT tablename FROM pg_tables").contains(table));
    }
}

fn statements_of_2019(server: &Server, base: &SessionOptions) {
    let endpoint = server.postgres_endpoint("postgres", None);
    let connections = Connections::As2019;
    let options = SessionOptions { connections, table: "script".into(), ..base.clone() };
    let mut admin = admin(&endpoint, options.timeout).unwrap();
    admin.prepare(Layout::Plain, "script", 1_500).unwrap();
    let mut store = open_session_store(&endpoint, &options).unwrap();
    let log = server.logged(|| {
        store.create("1_0", b"it's").unwrap();
        store.read("1_0", &mut Vec::new()).unwrap();
        store.replace("1_0", b"w").unwrap();
    });
    let expected = "LOG:  statement: INSERT INTO script VALUES ('1_0', 'it''s', NULL)\n\
                    LOG:  statement: SELECT * FROM script WHERE name='1_0'\n\
                    LOG:  statement: UPDATE script SET value='w' WHERE name='1_0'\n";
    assert_eq!(log, expected);
    admin.clean(Layout::Plain, "", &mut patience()).unwrap();
}

fn pages(server: &Server, base: &SessionOptions) {
    let endpoint = server.postgres_endpoint("postgres", None);
    let options = SessionOptions { timeout: Duration::from_secs(2), ..base.clone() };
    let mut admin = admin(&endpoint, options.timeout).unwrap();
    admin.prepare(Layout::Page, "sessions", 1_500).unwrap();
    admin.verify(Layout::Page, &options, "p_verify").unwrap();
    let mut first = open_page_store(&endpoint, &options).unwrap();
    let mut second = open_page_store(&endpoint, &options).unwrap();
    page_store(first.as_mut());
    // A missing row is locked by inserting it, an existing one by reading it.
    contention(first.as_mut(), second.as_mut(), "both");
    contention(second.as_mut(), first.as_mut(), "both");

    let mut value = Vec::new();
    locked_open_times_out(first.as_mut(), second.as_mut());
    // Of two clients that wait for the same row, one first waits for the other's turn.
    let mut third = open_page_store(&endpoint, &options).unwrap();
    first.open("held", &mut value).unwrap();
    std::thread::scope(|scope| {
        for waiting in [&mut second, &mut third] {
            scope.spawn(|| {
                let e = waiting.open("held", &mut Vec::new()).unwrap_err();
                assert_eq!((e.class, e.fatal), (ErrorClass::Lock, false), "{e}");
            });
        }
    });
    first.close(b"x").unwrap();
    drop((first, second));
    server.postgres_sql("UPDATE sessions SET sess_lifetime = 1000 WHERE sess_id = 'abc'");
    let mut third = open_page_store(&endpoint, &options).unwrap();
    assert_eq!(third.open("abc", &mut value).unwrap().found, Found::No);
    drop(third);
    expired(&endpoint, &options);
    admin.clean(Layout::Page, "", &mut patience()).unwrap();
}

fn expired(endpoint: &Endpoint, options: &SessionOptions) {
    let mut first = open_page_store(endpoint, options).unwrap();
    let mut second = open_page_store(endpoint, options).unwrap();
    // What other checks left behind.
    first.collect().unwrap();
    collects_expired(first.as_mut(), Some(second.as_mut()));
}

fn ownership(server: &Server, base: &SessionOptions) {
    let endpoint = server.postgres_endpoint("postgres", None);
    let mut admin = admin(&endpoint, base.timeout).unwrap();
    let facts = admin.facts().unwrap();
    assert_eq!(facts.empty, Some(true));
    assert!(facts.version.starts_with("PostgreSQL 1"), "{}", facts.version);
    let has = |pair: (&str, &str)| {
        facts.configuration.iter().any(|(name, value)| (name.as_str(), value.as_str()) == pair)
    };
    assert!(has(("fsync", "off")) && has(("shared_buffers", "128MB")));
    assert!(admin.counters().unwrap().unwrap().connections > Some(0));
    server.postgres_sql("CREATE SCHEMA theirs");
    assert_eq!(admin.facts().unwrap().empty, Some(true));
    server.postgres_sql("CREATE TABLE theirs.a (a INT)");
    assert_eq!(admin.facts().unwrap().empty, Some(false));
    server.postgres_sql("DROP SCHEMA theirs CASCADE");
    server.postgres_sql("CREATE TABLE theirs (a INT); INSERT INTO theirs VALUES (1)");
    let e = admin.prepare(Layout::Plain, "theirs", 1_500).unwrap_err();
    assert_eq!(e.class, ErrorClass::NotOurs);
    assert!(admin.prepare(Layout::Plain, "a; DROP TABLE theirs", 1_500).is_err());
    // As after a killed run: tables with its prefix are dropped, foreign ones stay.
    server.postgres_sql("CREATE TABLE cachedyno_1_a (a INT)");
    server.postgres_sql("CREATE TABLE cachedynoX1_b (a INT)");
    admin.clean(Layout::Plain, "cachedyno_1_", &mut patience()).unwrap();
    let left = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
    assert_eq!(server.postgres_sql(left), "cachedynox1_b\ntheirs");
    assert_eq!(server.postgres_sql("SELECT a FROM theirs"), "1");
    server.postgres_sql("DROP TABLE cachedynox1_b, theirs");
}

/// Each password method, with a correct and a wrong password.
fn logins(server: &Server, base: &SessionOptions) {
    let rules = server.directory.path().join("data/pg_hba.conf");
    let kept = std::fs::read_to_string(&rules).unwrap();
    for (method, encryption) in
        [("scram-sha-256", "scram-sha-256"), ("md5", "md5"), ("password", "scram-sha-256")]
    {
        server.postgres_sql(&format!(
            "DROP ROLE IF EXISTS clerk; SET password_encryption = '{encryption}'; \
             CREATE ROLE clerk LOGIN PASSWORD 'hush'"
        ));
        std::fs::write(&rules, format!("local all clerk {method}\n{kept}")).unwrap();
        let loaded = || server.postgres_sql("SELECT pg_conf_load_time()");
        let before = loaded();
        server.postgres_sql("SELECT pg_reload_conf()");
        wait_until("the rules are loaded", || loaded() != before);
        admin(&server.postgres_endpoint("clerk", Some("hush")), base.timeout).unwrap();
        for password in [None, Some("wrong-secret")] {
            let e =
                admin(&server.postgres_endpoint("clerk", password), base.timeout).err().unwrap();
            assert_eq!(e.class, ErrorClass::Denied, "{method}: {e}");
            assert!(!e.message.contains("wrong-secret"), "{e}");
        }
    }
    // The correct password, but no permission to create tables.
    server.postgres_sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let clerk = server.postgres_endpoint("clerk", Some("hush"));
    let e = admin(&clerk, base.timeout).unwrap().prepare(Layout::Page, "t", 1_500).unwrap_err();
    assert_eq!(e.class, ErrorClass::Denied, "{e}");
    std::fs::write(&rules, kept).unwrap();
    server.postgres_sql("SELECT pg_reload_conf()");
}

fn ends(mut server: Server, base: &SessionOptions) {
    let endpoint = server.postgres_endpoint("postgres", None);
    let mut admin = admin(&endpoint, base.timeout).unwrap();
    admin.prepare(Layout::Plain, "ends", 1_500).unwrap();
    let short = SessionOptions {
        timeout: Duration::from_millis(300),
        table: "ends".into(),
        ..base.clone()
    };
    let mut store = open_session_store(&endpoint, &short).unwrap();
    let per_call = SessionOptions { connections: Connections::As2019, ..short.clone() };
    let mut third = open_session_store(&endpoint, &per_call).unwrap();
    // Each connection has its own process: existing ones continue, but new ones are rejected.
    server.freeze();
    let (result, took) = timed(|| third.create("b", b"x"));
    let e = result.unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Timeout, false), "{e}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    store.create("a", b"x").unwrap();
    server.signal(Signal::SIGCONT);
    assert_eq!(third.replace("missing", b"x").unwrap(), Found::No);
    let missing = Endpoint::parse("postgres://127.0.0.1:1/shop").unwrap();
    assert_eq!(open_session_store(&missing, &short).err().unwrap().class, ErrorClass::Refused);
    server.signal(Signal::SIGQUIT);
    wait_until("the server has ended", || !server.is_running());
    let e = store.create("c", b"x").unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Closed, true), "{e}");
    let e = third.create("c", b"x").unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Refused, true), "{e}");
    server.end();
}

/// One server for all tests, because it takes seconds to create.
#[test]
fn a_postgresql_server() {
    if postgres_program("postgres").is_empty() || !installed("psql") {
        eprintln!("skipped: postgres is not installed");
        return;
    }
    let server = Server::postgres();
    let options = options(Path::new(""));
    ownership(&server, &options);
    plain(&server, &options);
    statements_of_2019(&server, &options);
    pages(&server, &options);
    logins(&server, &options);
    ends(server, &options);
}
