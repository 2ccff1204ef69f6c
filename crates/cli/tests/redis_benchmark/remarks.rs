//! What is said besides, on standard error; and what only valkey-benchmark knows.

use std::time::{Duration, Instant};

use super::common::{Server, tools};

#[test]
fn reading_nothing_is_said() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let arguments = ["-n", "200", "-q", "-t", "get", "-r", "100", "-d", "1024"];
    let ran = server.ours(&arguments).code(0);
    let ran = ran.says("warning: every GET found nothing").says("`-t set`");
    ran.says("-d has no effect on GET").says_nothing_of("without -r");
    server.ours(&["-n", "100", "-q", "-t", "set", "-r", "100", "--sequential"]).code(0);
    server.ours(&arguments).code(0).says_nothing_of("found nothing");
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
    let ran = ran.says("without -r").says("with -P 4").says("writes are not read back");
    // That cachedyno itself was busy may be true of two hundred requests on a busy machine.
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
fn other_peoples_data_is_said_and_left_alone() {
    if !tools() {
        return;
    }
    let server = Server::new();
    server.ask(&["SET", "basket:7", "eggs"]);
    let ran = server.ours(&["-n", "100", "-q", "-t", "set,lpush"]).code(0);
    let ran = ran.says("the server already holds 1 key (database 0: 1); none was found");
    assert!(!ran.stdout.contains("holds"), "{ran:?}");
    assert_eq!(server.ask(&["GET", "basket:7"]), "eggs");
    server.ask(&["DEL", "basket:7"]);
    let ran = server.ours(&["-n", "100", "-q", "-t", "get,ping"]).code(0);
    ran.says("the tests change none of them");
    server.ask(&["FLUSHALL"]);
    server.ours(&["-n", "100", "-q", "-t", "set"]).code(0).says_nothing_of("already holds");
}

#[test]
fn unknown_tests_are_said() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let ran = server.ours(&["-n", "10", "-q", "-t", "nosuch"]).code(0);
    assert_eq!(ran.stdout, "\n");
    ran.says("-t names `nosuch`, which is no test");
}

#[test]
fn a_rate_is_kept_and_counted_from_when_requests_were_due() {
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
fn a_stall_is_seen_by_all_who_were_due_in_it() {
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
    // The original's figure: only the four that were in flight have waited.
    let cells: Vec<&str> = ran.stdout.lines().nth(1).unwrap().split("\",\"").collect();
    let p95_ms: f64 = cells[5].parse().unwrap();
    assert!(p95_ms < 250.0, "{ran:?}");
    // A quarter was due while the server stood still, and has waited up to 0.9 s.
    let row = ran.stderr.lines().find(|line| line.starts_with("INCR")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    let p99_ms: f64 = words[3].parse().unwrap();
    assert!(words[4] == "ms" && p99_ms > 700.0, "{row}");
    assert_eq!(server.ask(&["GET", "counter:__rand_int__"]), "900", "nothing was left out");
}

#[test]
fn time_ends_a_test_and_a_lead_in_is_not_recorded() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let arguments = ["--duration", "1", "--warmup", "1", "-t", "incr", "-c", "2"];
    let started = Instant::now();
    let ran = server.ours(&arguments).code(0);
    assert!(started.elapsed() >= Duration::from_secs(2));
    let told = ran.stdout.split(" requests completed in ").next().unwrap();
    let told: u64 = told.rsplit(' ').next().unwrap().parse().unwrap();
    let seconds = ran.stdout.split(" requests completed in ").nth(1).unwrap();
    let seconds: f64 = seconds.split(' ').next().unwrap().parse().unwrap();
    assert!((0.95..1.5).contains(&seconds), "{seconds}");
    let counted: u64 = server.ask(&["GET", "counter:__rand_int__"]).parse().unwrap();
    assert!(told > 0 && counted > told + told / 10, "{told} of {counted}");
}

#[test]
fn connections_speak_as_they_are_told() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let list = ["-n", "20", "-c", "3", "-q", "-3", "--dbnum", "5", "client", "list"];
    server.ours(&list).code(0);
    let lua = "redis.call('set', 'seen', redis.call('client', 'info')) return 1";
    // A script runs on a connection of its own kind, so the client itself tells.
    let info = ["-n", "1", "-c", "1", "-q", "-3", "--dbnum", "5", "eval", lua, "0"];
    let ran = server.ours(&info);
    if ran.code == Some(0) {
        let seen = server.ask(&["-n", "5", "GET", "seen"]);
        assert!(seen.contains(" resp=3 ") && seen.contains(" db=5 "), "{seen}");
    } else {
        ran.code(1).says("Error from server");
    }
}
