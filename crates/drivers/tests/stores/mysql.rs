//! Sessions in a MariaDB server that the test starts.

use std::path::Path;
use std::time::Duration;

use super::common::{
    Server, collects_expired, contention, installed, locked_open_times_out, options, page_store,
    patience, plain_store, timed, wait_until,
};
use cachedyno_drivers::{SessionOptions, admin, open_page_store, open_session_store};
use model::{Connections, Database, Endpoint, ErrorClass, Layout, NetAddress};
use nix::sys::signal::Signal;
use workloads::store::Found;

/// The statements of the call, by connection.
pub(crate) fn log_of(server: &Server, call: impl FnOnce()) -> Vec<String> {
    server.sql(
        "SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1",
    );
    call();
    // The last packet of a connection is processed asynchronously. Each query makes a connection
    // itself, which can be in the log for a moment.
    let open = "SELECT COUNT(*) FROM mysql.general_log WHERE command_type = 'Connect' \
                AND thread_id <> CONNECTION_ID() AND thread_id NOT IN \
                (SELECT thread_id FROM mysql.general_log WHERE command_type = 'Quit')";
    wait_until("connections of the call have ended", || server.sql(open) == "0");
    server.sql("SET GLOBAL general_log = 0");
    let rows = server.sql(
        "SELECT CONCAT(command_type, ' ', argument) FROM mysql.general_log \
         WHERE thread_id IN (SELECT thread_id FROM mysql.general_log \
         WHERE command_type = 'Query' AND argument NOT LIKE '%general_log%') \
         ORDER BY thread_id, event_time",
    );
    rows.lines().map(|line| line.trim().to_string()).collect()
}

fn plain(server: &Server, base: &SessionOptions) {
    let endpoint = server.mysql_endpoint("root", None);
    for (connections, table) in
        [(Connections::Persistent, "kept"), (Connections::As2019, "as_2019")]
    {
        let mut options = SessionOptions { connections, table: table.into(), ..base.clone() };
        let mut admin = admin(&endpoint, options.timeout).unwrap();
        admin.prepare(Layout::Plain, table, 1_500).unwrap();
        admin.verify(Layout::Plain, &options, "p_verify").unwrap();
        assert_eq!(server.sql(&format!("SELECT COUNT(*) FROM shop.{table}")), "0");
        let mut store = open_session_store(&endpoint, &options).unwrap();
        plain_store(store.as_mut());
        assert_eq!(store.replace("missing", b"x").unwrap(), Found::No);
        let e = store.create("1_0", b"again").unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Reply, false), "{e}");
        let row = format!("SELECT value, created FROM shop.{table} WHERE name = '1_0'");
        assert_eq!(server.sql(&row), "longer again\tNULL");
        full(server, &endpoint, &mut options);
        admin.clean(Layout::Plain, "", &mut patience()).unwrap();
        assert!(server.sql("SHOW TABLES FROM shop").lines().all(|t| t == "small" || t == "theirs"));
    }
}

/// A MEMORY table quickly reaches its limit.
fn full(server: &Server, endpoint: &Endpoint, options: &mut SessionOptions) {
    server.sql(
        "SET max_heap_table_size = 16384; CREATE OR REPLACE TABLE shop.small (name VARCHAR(128) \
         PRIMARY KEY, value VARCHAR(2000), created TIMESTAMP NULL) ENGINE = MEMORY",
    );
    let table = std::mem::replace(&mut options.table, "small".into());
    let mut store = open_session_store(endpoint, options).unwrap();
    let e = (0..10_000).find_map(|i| store.create(&i.to_string(), b"x").err()).unwrap();
    assert_eq!((e.class, e.fatal), (ErrorClass::Full, false), "{e}");
    options.table = table;
}

fn statements_of_2019(server: &Server, base: &SessionOptions) {
    let endpoint = server.mysql_endpoint("root", None);
    let connections = Connections::As2019;
    let options = SessionOptions { connections, table: "script".into(), ..base.clone() };
    let mut admin = admin(&endpoint, options.timeout).unwrap();
    admin.prepare(Layout::Plain, "script", 1_500).unwrap();
    let mut store = open_session_store(&endpoint, &options).unwrap();
    let log = log_of(server, || {
        store.create("1_0", b"v").unwrap();
        store.read("1_0", &mut Vec::new()).unwrap();
        store.replace("1_0", b"w").unwrap();
    });
    let connect = "Connect root@localhost on shop using Socket";
    let expected = [
        connect,
        "Query INSERT INTO script VALUES ('1_0', 'v', NULL)",
        "Quit",
        connect,
        "Query SELECT * FROM script WHERE name='1_0'",
        "Quit",
        connect,
        "Query UPDATE script SET value='w' WHERE name='1_0'",
        "Quit",
    ];
    assert_eq!(log, expected);
    admin.clean(Layout::Plain, "", &mut patience()).unwrap();
}

fn pages(server: &Server, base: &SessionOptions) {
    let endpoint = server.mysql_endpoint("root", None);
    let options = SessionOptions { timeout: Duration::from_secs(2), ..base.clone() };
    let mut admin = admin(&endpoint, options.timeout).unwrap();
    admin.prepare(Layout::Page, "sessions", 1_500).unwrap();
    admin.verify(Layout::Page, &options, "p_verify").unwrap();
    let mut first = open_page_store(&endpoint, &options).unwrap();
    let mut second = open_page_store(&endpoint, &options).unwrap();
    page_store(first.as_mut());
    let mut value = Vec::new();
    let log = log_of(server, || {
        first.open("new", &mut value).unwrap();
        first.close(b"it's").unwrap();
    });
    let nine = |c: char| if c.is_ascii_digit() { '9' } else { c };
    let log: Vec<String> = log.iter().map(|line| line.chars().map(nine).collect()).collect();
    let columns = "INSERT INTO sessions (sess_id, sess_data, sess_lifetime, sess_time) VALUES";
    let expected = [
        "Query SET TRANSACTION ISOLATION LEVEL READ COMMITTED".to_string(),
        "Query START TRANSACTION".into(),
        "Query SELECT sess_data, sess_lifetime FROM sessions WHERE sess_id = 'new' FOR UPDATE"
            .into(),
        format!("Query {columns} ('new', '', 9999999999, 9999999999)"),
        format!(
            "Query {columns} ('new', 'it\\'s', 9999999999, 9999999999) ON DUPLICATE KEY UPDATE \
             sess_data = VALUES(sess_data), sess_lifetime = VALUES(sess_lifetime), \
             sess_time = VALUES(sess_time)"
        ),
        "Query COMMIT".into(),
    ];
    assert_eq!(log, expected.map(|l| l.replace('\\', "\\\\")));
    let log = log_of(server, || assert_eq!(first.collect().unwrap().deleted, 0));
    let log: Vec<String> = log.iter().map(|line| line.chars().map(nine).collect()).collect();
    assert_eq!(log, ["Query DELETE FROM sessions WHERE sess_lifetime < 9999999999"]);
    // A missing row is locked by inserting it, an existing one by reading it.
    contention(first.as_mut(), second.as_mut(), "both");
    contention(second.as_mut(), first.as_mut(), "both");

    locked_open_times_out(first.as_mut(), second.as_mut());
    drop((first, second));
    server.sql("UPDATE shop.sessions SET sess_lifetime = 1000 WHERE sess_id = 'abc'");
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
    let endpoint = server.mysql_endpoint("root", None);
    let mut admin = admin(&endpoint, base.timeout).unwrap();
    let facts = admin.facts().unwrap();
    assert!(
        facts.empty == Some(true) && facts.version.starts_with("MariaDB 1"),
        "{}",
        facts.version
    );
    let name = |(name, _): &(String, String)| name == "innodb_flush_log_at_trx_commit";
    assert!(facts.configuration.iter().any(name));
    server.sql("CREATE TABLE shop.theirs (a INT); INSERT INTO shop.theirs VALUES (1)");
    assert!(admin.facts().unwrap().empty == Some(false));
    let e = admin.prepare(Layout::Plain, "theirs", 1_500).unwrap_err();
    assert_eq!(e.class, ErrorClass::NotOurs);
    assert!(admin.prepare(Layout::Plain, "a; DROP TABLE theirs", 1_500).is_err());
    admin.clean(Layout::Plain, "", &mut patience()).unwrap();
    assert_eq!(server.sql("SELECT a FROM shop.theirs"), "1");
}

fn denied(server: &Server, base: &SessionOptions) {
    server.sql("CREATE USER shop@localhost IDENTIFIED BY 'hush'");
    for (user, password) in [("shop", None), ("shop", Some("wrong-secret"))] {
        let endpoint = server.mysql_endpoint(user, password);
        let e = open_session_store(&endpoint, base).err().unwrap();
        assert_eq!(e.class, ErrorClass::Denied, "{e}");
        assert!(!e.message.contains("wrong-secret"));
    }
    // The correct password, but no access to the database.
    let e = open_page_store(&server.mysql_endpoint("shop", Some("hush")), base).err().unwrap();
    assert_eq!(e.class, ErrorClass::Denied, "{e}");
}

fn ends(mut server: Server, base: &SessionOptions) {
    let endpoint = server.mysql_endpoint("root", None);
    let mut admin = admin(&endpoint, base.timeout).unwrap();
    admin.prepare(Layout::Plain, "ends", 1_500).unwrap();
    let short = SessionOptions {
        timeout: Duration::from_millis(300),
        table: "ends".into(),
        ..base.clone()
    };
    let mut store = open_session_store(&endpoint, &short).unwrap();
    let mut other = open_session_store(&endpoint, &short).unwrap();
    let per_call = SessionOptions { connections: Connections::As2019, ..short.clone() };
    let mut third = open_session_store(&endpoint, &per_call).unwrap();
    server.freeze();
    let limit = Duration::from_secs(2);
    let (result, took) = timed(|| store.create("a", b"x"));
    let e = result.unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Timeout, true), "{e}");
    assert!(took < limit, "{took:?}");
    let (result, took) = timed(|| third.create("b", b"x"));
    let e = result.unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Timeout, false), "{e}");
    assert!(took < limit, "{took:?}");
    server.signal(Signal::SIGCONT);
    assert_eq!(third.replace("missing", b"x").unwrap(), Found::No);
    server.end();
    let e = other.create("c", b"x").unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Closed, true), "{e}");
    let e = third.create("c", b"x").unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Refused, true), "{e}");
    let gone = Endpoint::Mysql(Database {
        address: NetAddress::Tcp("127.0.0.1".into(), 1),
        user: "root".into(),
        password: None,
        name: "shop".into(),
    });
    assert_eq!(open_session_store(&gone, &short).err().unwrap().class, ErrorClass::Refused);
}

/// One server for all tests, because it takes seconds to create.
#[test]
fn a_mariadb_server() {
    if !installed("mariadbd") || !installed("mariadb-install-db") {
        return;
    }
    let server = Server::mariadb();
    let options = options(Path::new(""));
    ownership(&server, &options);
    plain(&server, &options);
    statements_of_2019(&server, &options);
    pages(&server, &options);
    denied(&server, &options);
    ends(server, &options);
}
