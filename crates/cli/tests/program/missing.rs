//! Servers that are missing or do not start: the result gives the reason.

use std::path::Path;

use super::common::{Place, among, installed, row, skipped, target};

/// True if an empty PATH hides the program: it is in none of the system directories that are always
/// searched.
fn hidden_by_path(program: &str) -> bool {
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
    let found = system.iter().any(|d| Path::new(d).join(program).is_file());
    !found || skipped(&format!("{program} is in a directory that is always searched"))
}

#[test]
fn missing_programs_are_reported_and_other_targets_measured() {
    if !hidden_by_path("redis-server") {
        return;
    }
    let place = Place::new();
    let mut command = place.fast(&["--set", "clients=1"]);
    command.env("PATH", "/nonexistent");
    let summary = Place::finish(command).measured().json();
    for (name, package) in [("redis", "redis-server"), ("mysql", "mariadb-server")] {
        let why = target(&summary, name)["not_run"].as_str().unwrap();
        assert!(why.starts_with("not available: "), "{why}");
        assert!(why.ends_with(&format!(" is not installed (apt-get install {package})")), "{why}");
    }
    assert!(target(&summary, "files")["not_run"].is_null());
    assert_eq!(row(&summary, "files", "read")["blocks"], 1);
    let not_run = among(&summary["claims"], |c| c["verdict"] == "not run");
    assert_eq!(not_run.len(), summary["claims"].as_array().unwrap().len());
    place.assert_nothing_left();
}

#[test]
fn a_named_target_that_is_not_installed_gives_exit_code_3() {
    if !hidden_by_path("redis-server") {
        return;
    }
    let place = Place::new();
    let mut command = place.fast(&["--set", "clients=1", "--target", "redis", "--target", "files"]);
    command.env("PATH", "/nonexistent");
    let finished = Place::finish(command).code(3);
    let summary = finished.json();
    let why = target(&summary, "redis")["not_run"].as_str().unwrap();
    assert!(why.contains("redis-server is not installed (apt-get install redis-server)"), "{why}");
    assert_eq!(summary["validity"], "invalid");
    assert_eq!(row(&summary, "files", "write")["blocks"], 1);
    place.assert_nothing_left();
}

#[test]
fn the_error_of_a_server_that_rejects_a_setting_is_quoted() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let arguments = ["--set", "clients=1", "--set", "redis.maxmemory-policy=no-such-policy"];
    let named = ["--target", "redis", "--target", "files"];
    let summary = Place::finish(place.fast(&[&arguments[..], &named].concat())).code(3).json();
    let why = target(&summary, "redis")["not_run"].as_str().unwrap();
    for part in ["did not start", "exit code 1", "no-such-policy", "must be one of the following"] {
        assert!(why.contains(part), "no `{part}` in {why}");
    }
    assert_eq!(row(&summary, "files", "read")["blocks"], 1);
    place.assert_nothing_left();
}

#[test]
fn an_unlisted_setting_is_refused() {
    let place = Place::new();
    let unlisted = "not on the list of settings that a plan can choose (expected one that \
                    docs/FORMAT.md lists";
    for (name, server) in [
        ("redis.unixsocket", "`unixsocket` of redis-server"),
        ("redis.Port", "`Port` of redis-server"),
        ("redis.loadmodule", "`loadmodule` of redis-server"),
        ("redis.requirepass", "`requirepass` of redis-server"),
        ("mysql.datadir", "`datadir` of mariadbd"),
        ("mysql.loose-datadir", "`loose-datadir` of mariadbd"),
        ("mysql.pid_fil", "`pid_fil` of mariadbd"),
        ("mysql.plugin-load-add", "`plugin-load-add` of mariadbd"),
        ("mysql.slow-query-log-file", "`slow-query-log-file` of mariadbd"),
        ("mysql.wsrep_provider", "`wsrep_provider` of mariadbd"),
    ] {
        let finished = Place::finish(place.fast(&["--set", &format!("{name}=hush")]));
        assert!(!finished.stderr.contains("hush"), "{finished:#?}");
        finished.usage_error(&[server, unlisted]);
    }
    for (set, words) in [
        ("memcached.foo=1", "setting `foo` of memcached is not on the list"),
        ("memcached.memory=-s/x", "setting `memory` of memcached has a value that is not allowed"),
        ("memcached.threads=0", "a value that is not allowed (expected a whole number, 1 or more)"),
    ] {
        let ramp = place.run(&["ramp", "--scale", "quick", "--set", set]);
        Place::finish(ramp).usage_error(&["target `memcached`", words]);
        let mut bench = place.command();
        bench.args(["bench", "memcached", "--set", set]);
        Place::finish(bench).usage_error(&[words]);
    }
    assert!(place.all_records().is_empty(), "nothing was started");
    place.assert_nothing_left();
}

#[test]
fn an_address_without_a_server_is_reported() {
    let place = Place::new();
    let socket = place.path().join("nobody.sock");
    let url = format!("x=redis+unix://{}", socket.display());
    // Without another target, no record is written.
    let alone = place.fast(&["--set", "clients=1", "--target", &url]);
    Place::finish(alone).code(3).error(&[
        "cannot connect to `x` at",
        "nobody.sock",
        "No such file",
    ]);
    assert!(place.all_records().is_empty());
    let with_files = place.fast(&["--set", "clients=1", "--target", &url, "--target", "files"]);
    let summary = Place::finish(with_files).code(3).json();
    let why = target(&summary, "x")["not_run"].as_str().unwrap();
    assert!(why.starts_with("refused: nothing is listening at"), "{why}");
    assert!(why.contains("nobody.sock"), "{why}");
    place.assert_nothing_left();

    let place = Place::new();
    let url = format!("x=file://{}/no/such", place.path().display());
    let summary =
        Place::finish(place.fast(&["--set", "clients=1", "--target", &url])).code(3).json();
    let why = target(&summary, "x")["not_run"].as_str().unwrap();
    assert!(why.contains("/no/such"), "{why}");
}
