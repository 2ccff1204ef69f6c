//! Tests that the workers of a fleet run together.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::common::{Program, Ran, Server, form, ours, tools};

/// Rows of the table of workers: name and requests per second.
fn workers(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().filter(|line| line.contains(", worker ") && line.contains(" µs")).collect()
}

#[test]
fn the_output_is_that_of_one_process_and_every_request_is_sent_once() {
    if !tools() {
        return;
    }
    let (alone, divided) = (Server::new(), Server::new());
    let arguments = ["-t", "set,incr", "-n", "3001", "-r", "100", "-c", "7", "-P", "4"];
    let one = alone.ours(&[&arguments[..], &["--threads", "3"]].concat()).code(0);
    let three = divided.ours(&[&arguments[..], &["--fleet", "local:3"]].concat()).code(0);
    assert_eq!(form(&three.stdout), form(&one.stdout));
    assert_eq!(workers(&three).len(), 6, "{three:#?}");
    assert!(three.stdout.contains("threads: 3"), "{three:#?}");
    let calls = |server: &Server, command: &str| {
        let stats = server.ask(&["INFO", "commandstats"]);
        let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
        line.and_then(|line| line.split([',', '=']).nth(1)?.parse::<u64>().ok())
    };
    for command in ["set", "incr"] {
        assert_eq!(calls(&divided, command), Some(3001), "{command}");
    }
    assert_eq!(divided.ask(&["DBSIZE"]), alone.ask(&["DBSIZE"]));
    // Counted numbers are divided as well: each occurs once.
    divided.ask(&["FLUSHALL"]);
    let counted = ["-n", "300", "-r", "300", "--sequential", "-q", "--fleet", "local:2"];
    divided.ours(&[&counted[..], &["incr", "n:__rand_int__"]].concat()).code(0);
    assert_eq!(divided.ask(&["DBSIZE"]), "300");
}

#[test]
fn workers_of_a_planned_rate_and_of_a_cluster_send_their_parts() {
    if !tools() {
        return;
    }
    let cluster = Cluster::new(0);
    let load = ["--cluster", "-n", "1200", "--rps", "2000", "-c", "6", "-t", "set", "-r", "50"];
    let ran = cluster.first().ours(&[&load[..], &["-q", "--fleet", "local:2"]].concat()).code(0);
    let rows = workers(&ran);
    assert_eq!(rows.len(), 2, "{ran:#?}");
    assert!(rows.iter().all(|row| row.contains("   3   ")), "{ran:#?}");
    let calls = cluster.calls("set");
    assert_eq!(calls.iter().sum::<u64>(), 1200, "{calls:?}");
    assert!(calls.iter().all(|calls| *calls > 250), "{calls:?}");
    let last = ran.stdout.rsplit('\r').find(|line| line.contains("requests per second"));
    let rate = last.and_then(|line| line.split([':', ' ']).find(|word| word.contains('.')));
    let rate: f64 = rate.unwrap().parse().unwrap();
    assert!((1500.0..2100.0).contains(&rate), "{ran:#?}");
}

#[test]
fn errors_of_workers_and_wrong_places_are_named() {
    if !tools() {
        return;
    }
    let server = Server::new();
    server.ask(&["SET", "text", "abc"]);
    let by_two = ["--fleet", "local:2", "-n", "100", "-q"];
    let with = |more: &[&str]| server.ours(&[&by_two[..], more].concat()).code(1);
    with(&["lpush", "text", "a"])
        .with_stderr("Error: worker ")
        .with_stderr("the server answered `WRONGTYPE");
    with(&["-c", "1"]).with_stderr("`1` clients for 2 workers with 2 threads (expected");
    with(&["--enable-tracking"]).with_stderr("--enable-tracking is not supported with --fleet");
    server
        .ours(&["--fleet", "near:2"])
        .code(1)
        .with_stderr("--fleet `near:2` does not name a place and a number of workers (expected");
    server.ours(&["--fleet-wait", "soon"]).code(1).with_stderr("expected a time, such as 5m");
    with(&["--fleet-wait", "1m"]).with_stderr("--fleet-wait has no effect with --fleet `local:2`");
    with(&["--token-file", "t"]).with_stderr("--token-file has no effect with --fleet `local:2`");
    with(&["--fleet-wait", "0s"]).with_stderr("gives workers no time to join");
    server
        .ours(&["--fleet-wait", "1m", "-n", "10", "-q", "-t", "ping_inline"])
        .code(0)
        .with_stderr("--token-file and --fleet-wait have no effect without --fleet");
    // Nobody joins.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    let nobody = ["--fleet", "listen:127.0.0.1:0,1", "--fleet-wait", "300ms", "--token-file"];
    let ran = server.ours(&[&nobody[..], &[file.to_str().unwrap()]].concat()).code(1);
    ran.with_stderr("start each with `cachedyno worker --join 127.0.0.1:")
        .with_stderr("0 of 1 worker joined");
    assert!(!file.exists());
}

#[test]
fn an_interrupted_fleet_prints_its_result_and_ends_its_workers() {
    if !tools() {
        return;
    }
    let server = Server::new();
    // The server opens its socket after its port.
    server.ours(&["-n", "1", "-q", "ping"]).code(0);
    let mut command = Program::Ours.command();
    command.args(["-p", &server.port.to_string(), "-t", "get", "--duration", "60", "-q"]);
    command.args(["--fleet", "local:2"]).stdin(Stdio::null());
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !server.ask(&["INFO", "commandstats"]).contains("cmdstat_get:") {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing was sent");
        std::thread::sleep(Duration::from_millis(20));
    }
    let own = std::process::Command::new("pkill")
        .args(["-INT", "-P", &running.id().to_string(), "-f"])
        .arg(ours())
        .status();
    assert!(own.unwrap().success());
    let ran = Ran::of(&running.wait_with_output().unwrap()).code(130);
    assert_eq!(workers(&ran).len(), 2, "{ran:#?}");
    let ended = Instant::now();
    let clients = || server.ask(&["CLIENT", "LIST"]).lines().count();
    while clients() > 1 {
        assert!(ended.elapsed() < Duration::from_secs(10), "connections remain");
        std::thread::sleep(Duration::from_millis(50));
    }
}
