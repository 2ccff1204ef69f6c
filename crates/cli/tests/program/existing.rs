//! Existing servers with foreign data.

use serde_json::Value;

use super::common::{MariadbServer, Place, RedisServer, count, installed, row, target};

/// Foreign keys, some named like ours.
const FOREIGN: [(&str, &str); 4] = [
    ("cart:17", "three eggs"),
    ("cachedyno-00000000-1_0", "not of this run"),
    ("1_0", "a foreign session"),
    ("prefix*[a-z]?", "a pattern"),
];

fn foreign_data(server: &RedisServer) -> Vec<(String, String)> {
    server.keys().into_iter().map(|key| (key.clone(), server.ask(&["GET", &key]))).collect()
}

fn assert_all_phases(summary: &Value, name: &str) {
    for operation in ["write", "read", "change", "mixed"] {
        let row = row(summary, name, operation);
        assert!(count(row, "ok") > 0, "{row}");
        for bad in ["miss", "error", "wrong"] {
            assert_eq!(count(row, bad), 0, "{bad} of {row}");
        }
    }
}

#[test]
fn an_existing_redis_database_is_used_only_when_empty_or_allowed() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::new();
    let url = format!("x={}", server.url());
    let arguments = ["--set", "clients=1", "--target", &url];

    let place = Place::new();
    let summary = Place::finish(place.fast(&arguments)).measured().json();
    assert_all_phases(&summary, "x");
    assert_eq!(server.keys(), [""; 0], "keys left in an empty database");
    assert!(row(&summary, "x", "read")["product"].as_str().unwrap().starts_with("Redis "));

    for (key, value) in FOREIGN {
        server.ask(&["SET", key, value]);
    }
    let before = foreign_data(&server);
    let place = Place::new();
    let finished = Place::finish(place.fast(&arguments)).code(3);
    let summary = finished.json();
    let why = target(&summary, "x")["not_run"].as_str().unwrap();
    for part in ["not empty", "s.sock", "--allow-shared"] {
        assert!(why.contains(part), "no `{part}` in {why}");
    }
    assert_eq!(foreign_data(&server), before);
    assert_eq!(server.ask(&["INFO", "commandstats"]).matches("cmdstat_setex").count(), 1);

    let place = Place::new();
    let shared = [&arguments[..], &["--allow-shared", "--set", "profile=steady,page"]].concat();
    let summary = Place::finish(place.fast(&shared)).measured().json();
    assert_all_phases(&summary, "x");
    assert!(count(row(&summary, "x", "page.open"), "ok") > 0);
    assert_eq!(foreign_data(&server), before, "only the foreign data remains");
    let flushed = server.ask(&["INFO", "commandstats"]);
    assert!(!flushed.contains("cmdstat_flush"), "{flushed}");
    place.assert_nothing_left();
}

#[test]
fn other_databases_of_the_same_server_stay_unchanged() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::new();
    server.ask(&["SET", "cart:17", "three eggs"]);
    let place = Place::new();
    let url = format!("x={}?db=5", server.url());
    let arguments = ["--set", "clients=1", "--target", &url];
    let summary = Place::finish(place.fast(&arguments)).measured().json();
    assert_all_phases(&summary, "x");
    assert!(target(&summary, "x")["place"].as_str().unwrap().ends_with("database 5"));
    assert_eq!(server.ask(&["-n", "5", "DBSIZE"]), "0");
    assert_eq!(foreign_data(&server), [("cart:17".into(), "three eggs".into())]);
}

#[test]
fn an_existing_mysql_database_is_used_only_when_empty_or_allowed() {
    if !installed(&["mariadbd", "mariadb", "mariadb-install-db", "setpriv"]) {
        return;
    }
    let server = MariadbServer::new();
    server.ask("CREATE TABLE shop.customers (name TEXT); INSERT INTO shop.customers VALUES ('A')");
    server.ask("CREATE TABLE shop.sessions (name TEXT); INSERT INTO shop.sessions VALUES ('B')");
    server.ask("CREATE TABLE shop.cachedyno_00000000_0_0 (name TEXT)");
    let tables = server.ask("CHECKSUM TABLE shop.customers, shop.sessions");
    let names = server.ask("SHOW TABLES IN shop");
    let url = format!("x={}", server.url());
    let arguments = ["--set", "clients=1", "--target", &url];

    let place = Place::new();
    let mut command = place.fast(&arguments);
    command.env("CACHEDYNO_PASSWORD_X", MariadbServer::PASSWORD);
    let summary = Place::finish(command).code(3).json();
    let why = target(&summary, "x")["not_run"].as_str().unwrap();
    assert!(why.contains("not empty") && why.contains("--allow-shared"), "{why}");
    assert_eq!(server.ask("SHOW TABLES IN shop"), names);

    let place = Place::new();
    let shared = [&arguments[..], &["--allow-shared", "--set", "profile=steady,page"]].concat();
    let mut command = place.fast(&shared);
    command.env("CACHEDYNO_PASSWORD_X", MariadbServer::PASSWORD);
    let summary = Place::finish(command).measured().json();
    assert_all_phases(&summary, "x");
    assert!(count(row(&summary, "x", "page.open"), "ok") > 0);
    assert_eq!(server.ask("SHOW TABLES IN shop"), names, "only the foreign tables remain");
    assert_eq!(server.ask("CHECKSUM TABLE shop.customers, shop.sessions"), tables);
    place.assert_nothing_left();
}

#[test]
fn a_trial_that_cannot_connect_all_clients_leaves_no_table() {
    if !installed(&["mariadbd", "mariadb", "mariadb-install-db", "setpriv"]) {
        return;
    }
    let server = MariadbServer::new();
    server.ask("GRANT USAGE ON *.* TO clerk@localhost WITH MAX_USER_CONNECTIONS 4");
    let place = Place::new();
    let url = format!("x={}", server.url());
    let mut command = place.fast(&["--set", "clients=8", "--target", &url]);
    command.env("CACHEDYNO_PASSWORD_X", MariadbServer::PASSWORD);
    let summary = Place::finish(command).code(4).json();
    assert_eq!(summary["failures"][0]["class"], "refused", "{}", summary["failures"]);
    assert_eq!(server.ask("SHOW TABLES IN shop"), "");
    place.assert_nothing_left();
}
