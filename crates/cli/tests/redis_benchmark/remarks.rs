//! Warnings and corrected figures on standard error; options of valkey-benchmark.

use std::time::{Duration, Instant};

use super::common::{Server, tools};

#[test]
fn misses_cause_a_warning() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let arguments = ["-n", "200", "-q", "-t", "get", "-r", "100", "-d", "1024"];
    let ran = server.ours(&arguments).code(0);
    let ran = ran.with_stderr("warning: every GET found nothing").with_stderr("`-t set`");
    ran.with_stderr("-d has no effect on GET").without_stderr("without -r");
    server.ours(&["-n", "100", "-q", "-t", "set", "-r", "100", "--sequential"]).code(0);
    server.ours(&arguments).code(0).without_stderr("found nothing");
}

#[test]
fn one_key_and_pipelines_are_explained_but_not_with_csv_on_standard_output() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let ran = server.ours(&["-n", "200", "--csv", "-t", "set", "-P", "4"]).code(0);
    assert_eq!(ran.stdout.lines().count(), 2, "{ran:?}");
    assert!(ran.stdout.lines().all(|line| line.starts_with('"')), "{ran:?}");
    let ran = ran
        .with_stderr("without -r")
        .with_stderr("with -P 4")
        .with_stderr("writes are not read back");
    // The warning that cachedyno itself was busy can appear on a loaded machine.
    let (warnings, table): (Vec<&str>, Vec<&str>) = ran
        .stderr
        .lines()
        .filter(|line| !line.contains("cachedyno itself was busy"))
        .partition(|line| line.starts_with("warning: "));
    assert_eq!((warnings.len(), table.len()), (3, 2), "{ran:?}");
    assert!(table[0].starts_with("per request") && table[1].starts_with("SET"), "{ran:?}");
    let cells: Vec<&str> = table[1].split_whitespace().collect();
    assert!(cells.contains(&"200"), "{ran:?}");
}

#[test]
fn foreign_data_is_reported_and_kept() {
    if !tools() {
        return;
    }
    let server = Server::new();
    server.ask(&["SET", "basket:7", "eggs"]);
    let ran = server.ours(&["-n", "100", "-q", "-t", "set,lpush"]).code(0);
    let ran = ran.with_stderr(
        "the server already holds 1 key (database 0: 1); no key that the tests change",
    );
    assert!(!ran.stdout.contains("holds"), "{ran:?}");
    assert_eq!(server.ask(&["GET", "basket:7"]), "eggs");
    server.ask(&["DEL", "basket:7"]);
    let ran = server.ours(&["-n", "100", "-q", "-t", "get,ping"]).code(0);
    ran.with_stderr("the tests change none of them");
    server.ask(&["FLUSHALL"]);
    server.ours(&["-n", "100", "-q", "-t", "set"]).code(0).without_stderr("already holds");
}

#[test]
fn unknown_tests_cause_a_warning() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let ran = server.ours(&["-n", "10", "-q", "-t", "nosuch"]).code(0);
    assert_eq!(ran.stdout, "\n");
    ran.with_stderr("-t: unknown test `nosuch`");
}

#[test]
fn requests_follow_the_given_rate() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let started = Instant::now();
    let arguments = ["-n", "300", "--rps", "300", "-c", "4", "-t", "incr", "--csv"];
    let ran = server.ours(&arguments).code(0);
    let took = started.elapsed();
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(20), "{took:?}");
    assert_eq!(server.ask(&["GET", "counter:__rand_int__"]), "300");
    let rps = ran.stdout.lines().nth(1).unwrap().split("\",\"").nth(1).unwrap().to_string();
    let rps: f64 = rps.parse().unwrap();
    assert!((150.0..310.0).contains(&rps), "{ran:?}");
}

#[test]
fn a_stall_delays_all_requests_due_during_it() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let arguments = ["--duration", "3", "--rps", "300", "-c", "4", "-t", "incr", "--csv"];
    let ran = std::thread::scope(|scope| {
        let running = scope.spawn(|| server.ours(&arguments).code(0));
        std::thread::sleep(Duration::from_secs(1));
        server.ask(&["DEBUG", "SLEEP", "0.9"]);
        running.join().unwrap()
    });
    // The original's figure: only the four requests in flight were delayed.
    let cells: Vec<&str> = ran.stdout.lines().nth(1).unwrap().split("\",\"").collect();
    let p95_ms: f64 = cells[5].parse().unwrap();
    assert!(p95_ms < 250.0, "{ran:?}");
    // A quarter of the requests were due during the stall and waited up to 0.9 s.
    let row = ran.stderr.lines().find(|line| line.starts_with("INCR")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    let p99_ms: f64 = words[3].parse().unwrap();
    assert!(words[4] == "ms" && p99_ms > 700.0, "{row}");
    assert_eq!(server.ask(&["GET", "counter:__rand_int__"]), "900", "no request was skipped");
}

#[test]
fn duration_ends_a_test_and_the_warm_up_is_not_recorded() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let arguments = ["--duration", "1", "--warmup", "1", "-t", "incr", "-c", "2"];
    let started = Instant::now();
    let ran = server.ours(&arguments).code(0);
    assert!(started.elapsed() >= Duration::from_secs(2));
    let reported = ran.stdout.split(" requests completed in ").next().unwrap();
    let reported: u64 = reported.rsplit(' ').next().unwrap().parse().unwrap();
    let seconds = ran.stdout.split(" requests completed in ").nth(1).unwrap();
    let seconds: f64 = seconds.split(' ').next().unwrap().parse().unwrap();
    assert!((0.95..1.5).contains(&seconds), "{seconds}");
    let counted: u64 = server.ask(&["GET", "counter:__rand_int__"]).parse().unwrap();
    assert!(reported > 0 && counted > reported + reported / 10, "{reported} of {counted}");
}

#[test]
fn connections_use_the_given_protocol_and_database() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let list = ["-n", "20", "-c", "3", "-q", "-3", "--dbnum", "5", "client", "list"];
    server.ours(&list).code(0);
    let lua = "redis.call('set', 'seen', redis.call('client', 'info')) return 1";
    // The command runs on the client's own connection, so it reports that client's state.
    let info = ["-n", "1", "-c", "1", "-q", "-3", "--dbnum", "5", "eval", lua, "0"];
    let ran = server.ours(&info);
    if ran.code == Some(0) {
        let seen = server.ask(&["-n", "5", "GET", "seen"]);
        assert!(seen.contains(" resp=3 ") && seen.contains(" db=5 "), "{seen}");
    } else {
        ran.code(1).with_stderr("Error from server");
    }
}
