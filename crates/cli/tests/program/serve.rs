//! `--serve`: a run that is watched while it lasts, and readers that it never waits for.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::common::{Finished, Place, Started, among, count, installed, row, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A run of keys and values on a private Redis in two blocks, watched at that address.
fn bench(place: &Place, address: SocketAddr, load: &[&str]) -> Command {
    let mut command = place.command();
    command.args(["bench", "redis", "--blocks", "2"]).args(load);
    command.args(["--warmup", "50ms", "--keys", "500", "--clients", "4", "--format", "json"]);
    command.args(["--serve", &address.to_string()]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// The body of a page; `None` while nobody answers.
fn page(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200").then(|| body.to_string())
}

/// The value of the first sample that begins so.
fn sample(metrics: &str, start: &str) -> Option<f64> {
    metrics.lines().find(|l| l.starts_with(start))?.rsplit(' ').next()?.parse().ok()
}

fn refused(address: &str, parts: &[&str]) {
    let place = Place::new();
    let mut commands = [place.command(), place.command(), place.command()];
    commands[0].args(["run", "sessions", "--target", "files"]);
    commands[1].args(["bench", "redis"]);
    commands[2].args(["find-max", "redis", "--slo", "p99<1ms"]);
    for mut command in commands {
        command.args(["--serve", address]).arg("--out").arg(place.records());
        Place::finish(command).usage_error(&[&["--serve: "], parts].concat());
        assert!(!place.records().exists(), "written: {:?}", place.all_records());
    }
    place.assert_nothing_left();
}

#[test]
fn an_address_that_cannot_be_served_is_an_error_before_anything_starts() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let port = format!("port `{}` of 127.0.0.1 is taken", address.port());
    refused(&address.to_string(), &[&port, "0 takes any"]);
    refused("192.0.2.1:9464", &["`192.0.2.1` is not an address of this machine", "127.0.0.1"]);
    refused("9464", &["`9464` is not an address", "127.0.0.1:9464"]);
}

#[test]
fn a_run_tells_what_is_under_way_and_readers_that_take_nothing_do_not_hold_it_up() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let stages = ["--stages", "700ms:1000,700ms:2000"];
    let mut run = Started::new(bench(&place, address, &stages));
    let mut stuck = Vec::new();
    let metrics = wait_until("requests of the second stage are told", PATIENCE, || {
        assert!(run.runs(), "the run ended unwatched");
        if let Ok(mut stream) = TcpStream::connect(address)
            && stuck.len() < 8
        {
            stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
            stuck.push(stream);
        }
        let metrics = page(address, "/metrics")?;
        (sample(&metrics, "cachedyno_stage{")? > 1.5).then_some(metrics)
    });
    let get = "cachedyno_request_duration_seconds_count{target=\"redis\",\
               cell=\"redis/get=0.9,set=0.1/4\",phase=\"mixed\",op=\"get\"}";
    assert!(sample(&metrics, get).unwrap() > 100.0, "{metrics}");
    assert_eq!(sample(&metrics, "cachedyno_planned_requests_per_second{"), Some(2_000.0));
    assert!(page(address, "/").unwrap().contains("<!doctype html>"));
    let summary = run.finish_within(PATIENCE).measured().json();
    assert_eq!(summary["status"], "complete");
    // Each stage of each block in full, whoever read.
    let stages = summary["ramps"][0]["stages"].as_array().unwrap();
    let ok: u64 = stages.iter().map(|stage| count(&stage["operations"]["all"], "ok")).sum();
    assert!(ok >= 4 * 3_500 / 5, "{summary}");
    drop(stuck);
    place.assert_nothing_left();
}

#[test]
fn every_request_that_counts_is_told() {
    if !installed(&["redis-server", "setpriv", "promtool"]) {
        return;
    }
    let place = Place::new();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let rate = ["--rate", "1500", "--duration", "1400ms"];
    let run = Started::new(bench(&place, address, &rate));
    // One who reads events is waited for, so that what was told last can be had.
    let mut reader = wait_until("the run is served", PATIENCE, || TcpStream::connect(address).ok());
    reader.set_read_timeout(Some(PATIENCE)).unwrap();
    reader.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut told = String::new();
    let mut bytes = [0; 4096];
    while !told.contains("\"report\":true") {
        let read = reader.read(&mut bytes).unwrap();
        assert_ne!(read, 0, "the server ended without a report: {told}");
        told.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    let metrics = page(address, "/metrics").unwrap();
    assert!(page(address, "/report").unwrap().starts_with("<!doctype html>"));
    drop(reader);
    let summary = run.finish_within(PATIENCE).measured().json();
    for (operation, row) in
        ["get", "set"].map(|o| (o, row(&summary, "redis", &format!("mixed.{o}"))))
    {
        let name = "cachedyno_request_duration_seconds_count{";
        let of = |l: &&str| l.starts_with(name) && l.contains(&format!("op=\"{operation}\""));
        let line = metrics.lines().find(of).unwrap_or_default();
        let seen: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(seen, count(row, "ok"), "{operation}");
    }
    checked(&place, &metrics);
}

/// promtool finds nothing to say.
fn checked(place: &Place, metrics: &str) {
    let file = std::fs::File::open(place.write("metrics.txt", metrics)).unwrap();
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(file);
    let output = promtool.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}\n{metrics}");
}

#[test]
fn clients_of_sessions_tell_as_well_and_others_are_warned_of() {
    let place = Place::new();
    let port = free_port();
    let address = format!("0.0.0.0:{port}");
    let arguments = ["--target", "files", "--set", "measure_ms=1500", "--set", "clients=2"];
    let run = Started::new(place.fast(&[&arguments[..], &["--serve", &address]].concat()));
    let here = SocketAddr::from(([127, 0, 0, 1], port));
    let told = wait_until("sessions are told", PATIENCE, || {
        let metrics = page(here, "/metrics")?;
        sample(&metrics, "cachedyno_request_duration_seconds_count{target=\"files\"")
    });
    assert!(told > 0.0, "{told}");
    let Finished { stderr, .. } = run.finish_within(PATIENCE).measured();
    assert!(stderr.contains(&format!("warning: --serve `{address}` lets everyone")), "{stderr}");
    place.assert_nothing_left();
}

#[test]
fn a_search_is_watched_as_well() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut command = place.command();
    command.args(["find-max", "redis", "--slo", "p99<1s", "--probe", "500ms", "--rounds", "2"]);
    command.args(["--keys", "500", "--clients", "4", "--format", "json"]);
    command.args(["--serve", &address.to_string()]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let run = Started::new(command);
    wait_until("a probe at a rate is told", PATIENCE, || {
        let metrics = page(address, "/metrics")?;
        let rate = sample(&metrics, "cachedyno_planned_requests_per_second{target=\"redis\"")?;
        (rate > 0.0).then_some(())
    });
    run.signal(nix::sys::signal::Signal::SIGINT);
    let summary = run.finish_within(PATIENCE).code(130).json();
    assert!(!among(&summary["targets"], |t| t["name"] == "redis").is_empty());
    place.assert_nothing_left();
}
