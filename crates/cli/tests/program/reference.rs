//! The reference server commands: the line with their address, their final output, and wrong
//! arguments.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::common::{Finished, Place, Scripted, Started, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `client` against a reference server on a unix socket, then stops the server.
fn with_server(
    command: &str,
    arguments: &[&str],
    client: impl FnOnce(UnixStream),
) -> (Place, Finished) {
    let place = Place::new();
    let socket = place.path().join("s");
    let mut started = place.command();
    started.arg(command).args(arguments).arg("--socket").arg(&socket);
    let server = Started::new(started);
    let stream = wait_until("it listens", PATIENCE, || UnixStream::connect(&socket).ok());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    client(stream);
    server.signal(Signal::SIGINT);
    let finished = server.finish_within(PATIENCE).code(0);
    let first = format!("listening on {}\n", socket.display());
    assert!(finished.stdout.starts_with(&first), "{finished:#?}");
    assert!(finished.stderr.is_empty() && !socket.exists(), "{finished:#?}");
    (place, finished)
}

fn ask(stream: &mut UnixStream, request: &str, expected: &str) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(String::from_utf8(reply).unwrap(), expected);
}

#[test]
fn the_null_server_serves_until_it_is_interrupted() {
    let (_place, finished) =
        with_server("null-server", &["--value", "3B", "--threads", "2"], |mut s| {
            ask(&mut s, "GET k\r\n", "$3\r\nxxx\r\n");
            ask(&mut s, "SET k v\r\n", "+OK\r\n");
        });
    let served = "\nserved 2 requests on 1 connection in ";
    assert!(finished.stdout.contains(served), "{finished:#?}");
    with_server("null-server", &["--miss"], |mut s| ask(&mut s, "GET k\r\n", "$-1\r\n"));
    with_server("null-server", &["--remember", "9"], |mut s| {
        ask(&mut s, "SET k v\r\nGET k\r\n", "+OK\r\n$1\r\nv\r\n");
    });
}

#[test]
fn the_scripted_server_writes_a_log_and_reports_faults() {
    let place = Place::new();
    let log = place.path().join("log.csv");
    let arguments = ["--script", "service=constant:1ms", "--script", "wrong=1", "--log"];
    let arguments = [&arguments[..], &[log.to_str().unwrap()]].concat();
    let (_other, finished) = with_server("scripted-server", &arguments, |mut s| {
        ask(&mut s, "SET k good\r\nGET k\r\n", "+OK\r\n$4\r\ngnod\r\n");
    });
    let text = &finished.stdout;
    assert!(text.contains("\nserved 2 requests on 1 connection with 2 replies\n"), "{text}");
    assert!(text.contains("\nfaults: wrong values 1\nreplies sent "), "{text}");
    assert!(text.ends_with(" (p99) after they were due\n"), "{text}");
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!((lines[0], lines.len()), ("connection,request,received_ns,sent_ns", 3));
    for (number, line) in lines[1..].iter().enumerate() {
        let fields: Vec<u64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        assert_eq!(fields[..2], [1, number as u64 + 1]);
        assert!(fields[3] - fields[2] >= 1_000_000 * (number as u64 + 1), "{log}");
    }
    let hang = ["--script", "hang=1", "--log", "hang.csv"];
    let (place, finished) = with_server("scripted-server", &hang, |mut s| {
        s.write_all(b"PING\r\n").unwrap();
        s.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        assert!(s.read(&mut [0]).is_err(), "it answers");
    });
    assert!(finished.stdout.contains("\nfaults: never answered 1\n"), "{finished:#?}");
    let log = fs::read_to_string(place.path().join("hang.csv")).unwrap();
    assert!(log.lines().nth(1).unwrap().ends_with(','), "{log}");
}

#[test]
fn servers_stop_after_the_given_time() {
    for command in ["null-server", "scripted-server"] {
        let place = Place::new();
        let mut started = place.command();
        started.args([command, "--for", "50ms", "--cpus", "0"]);
        let finished = Place::finish(started).code(0);
        assert!(finished.stdout.starts_with("listening on 127.0.0.1:"), "{finished:#?}");
        assert!(finished.stdout.contains("\nserved 0 requests on 0 connections "), "{finished:#?}");
        assert!(finished.took < Duration::from_secs(30), "{finished:#?}");
    }
}

#[test]
fn wrong_arguments_name_the_expected_values() {
    let place = Place::new();
    fs::write(place.path().join("taken"), "").unwrap();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let mut command = place.command();
        command.args(arguments);
        Place::finish(command).usage_error(parts);
    };
    let null = "null-server";
    refused(&[null, "--value", "1K"], &["--value: `1K` is not a size"]);
    refused(&[null, "--value", "65MiB"], &["--value is too large, expected 0 B to 64 MiB"]);
    refused(&[null, "--threads", "0"], &["--threads is 0, expected 1 to 1024"]);
    refused(&[null, "--cpus", "9999"], &["--cpus: CPU `9999` cannot be used"]);
    refused(&[null, "--for", "soon"], &["--for: `soon` is not a duration"]);
    refused(&[null, "--for", "0s"], &["--for: `0s` would stop at once"]);
    refused(&[null, "--miss", "--remember", "3"], &["--remember"]);
    refused(&[null, "--socket", &"x".repeat(200)], &["--socket: ", "at most 107"]);
    let scripted = "scripted-server";
    refused(
        &[scripted, "--script", "sevice=constant:1ms"],
        &["--script: unknown directive `sevice` in a script", "`service`, `servers`"],
    );
    refused(
        &[scripted, "--script", "stall=2s/1s"],
        &["--script: `stall=2s/1s` in a script", "the period longer"],
    );
    refused(&[scripted, "--log", "none/log.csv"], &["--log `none/log.csv`: "]);
    let mut command = place.command();
    command.args([null, "--socket", "taken"]);
    Place::finish(command).code(1).error(&["cannot listen on `taken`: "]);
    assert!(place.path().join("taken").exists());
}

/// Gaps of at least 150 ms between the replies of a server, from its log, in milliseconds.
fn gaps(log: &str) -> Vec<f64> {
    let sent = log.lines().skip(1).filter_map(|line| line.rsplit(',').next()?.parse::<u64>().ok());
    let mut sent: Vec<u64> = sent.collect();
    sent.sort_unstable();
    let gaps = sent.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6);
    gaps.filter(|ms| *ms >= 150.0).collect()
}

/// Needs a quiet machine.
#[test]
#[ignore = "part of make soak"]
fn outages_are_as_long_as_in_the_log_of_the_server() {
    for (script, faults) in
        [("stall=200ms/1100ms", 18), ("stall=900ms/2900ms", 6), ("stall=2300ms/5500ms", 3)]
    {
        let place = Place::new();
        let log = place.path().join("log.csv");
        let server = Scripted::with(script, &["--log", log.to_str().unwrap()]);
        let mut bench = place.command();
        bench.args(["bench", &server.url(), "--op", "get=0.5,set=0.5"]);
        bench.args(["--rate", "4k", "--clients", "16", "--keys", "200", "--warmup", "0ms"]);
        bench.args(["--duration", "20s", "--blocks", "1", "--format", "json", "--timeout", "20s"]);
        bench.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
        Started::new(bench).finish_within(PATIENCE).measured();
        server.stop();
        let truth = gaps(&fs::read_to_string(&log).unwrap());
        let trial = place.record().trials().remove(0);
        let silences = trial["points"][0]["silences"].as_array().unwrap().clone();
        for operation in ["get", "set"] {
            let own = silences.iter().filter(|silence| silence["operation"] == operation);
            let own = own.map(|silence| silence["length_ns"].as_f64().unwrap() / 1e6);
            let own: Vec<f64> = own.filter(|ms| *ms >= 150.0).collect();
            assert!(own.len() + 1 >= faults, "{script}: {operation}: {own:?}");
            // Stalls while the keys are filled or removed are not part of the measurement.
            let own = &own[1..own.len() - 1];
            let worst = own.iter().map(|ms| {
                truth.iter().map(|other| (ms - other).abs()).fold(f64::INFINITY, f64::min)
            });
            let worst = worst.fold(0.0, f64::max);
            println!("{script}: {operation}: {} outages, at most {worst:.2} ms off", own.len());
            assert!(worst <= 5.0, "{script}: {operation}: {own:?}, {truth:?}");
        }
    }
}
