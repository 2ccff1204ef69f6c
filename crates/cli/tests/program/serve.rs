//! `--serve`: the live page of a run; slow readers never delay the run.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use super::common::{Finished, Place, Started, among, count, installed, row, wait_until};

const PATIENCE: Duration = Duration::from_secs(60);

/// A `bench` on a private Redis in two blocks, with `--serve` at that address.
fn bench(place: &Place, address: SocketAddr, load: &[&str]) -> Command {
    let mut command = place.command();
    command.args(["bench", "redis", "--blocks", "2"]).args(load);
    command.args(["--warmup", "50ms", "--keys", "500", "--clients", "4", "--format", "json"]);
    command.args(["--serve", &address.to_string()]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// Body of a page; `None` if the request fails.
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

/// Value of the first sample whose line starts with `start`.
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
    let port = format!("port `{}` on 127.0.0.1 is already in use", address.port());
    refused(&address.to_string(), &[&port, "0 picks a free one"]);
    refused("192.0.2.1:9464", &["`192.0.2.1` is not an address of this machine", "127.0.0.1"]);
    refused("9464", &["`9464` is not an address", "127.0.0.1:9464"]);
}

#[test]
fn a_run_reports_its_progress_and_is_not_delayed_by_stuck_readers() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let address = SocketAddr::from(([127, 0, 0, 1], rig::free_port(0).unwrap()));
    let stages = ["--stages", "700ms:1000,700ms:2000"];
    let mut run = Started::new(bench(&place, address, &stages));
    let mut stuck = Vec::new();
    let metrics = wait_until("requests of the second stage are reported", PATIENCE, || {
        assert!(run.is_running(), "the run ended before its metrics were read");
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
    // Stuck readers do not reduce the load.
    let stages = summary["ramps"][0]["stages"].as_array().unwrap();
    let ok: u64 = stages.iter().map(|stage| count(&stage["operations"]["all"], "ok")).sum();
    assert!(ok >= 4 * 3_500 / 5, "{summary}");
    drop(stuck);
    place.assert_nothing_left();
}

#[test]
fn metrics_count_every_measured_request() {
    if !installed(&["redis-server", "setpriv", "promtool"]) {
        return;
    }
    let place = Place::new();
    let address = SocketAddr::from(([127, 0, 0, 1], rig::free_port(0).unwrap()));
    let rate = ["--rate", "1500", "--duration", "1400ms"];
    let run = Started::new(bench(&place, address, &rate));
    // The run waits for readers of events until they have received the last one.
    let mut reader = wait_until("the run is served", PATIENCE, || TcpStream::connect(address).ok());
    reader.set_read_timeout(Some(PATIENCE)).unwrap();
    reader.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut events = String::new();
    let mut bytes = [0; 4096];
    while !events.contains("\"report\":true") {
        let read = reader.read(&mut bytes).unwrap();
        assert_ne!(read, 0, "the server ended without a report: {events}");
        events.push_str(&String::from_utf8_lossy(&bytes[..read]));
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
        let reported: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(reported, count(row, "ok"), "{operation}");
    }
    assert_valid_metrics(&place, &metrics);
}

/// Asserts that promtool accepts the metrics without a warning.
fn assert_valid_metrics(place: &Place, metrics: &str) {
    let file = std::fs::File::open(place.write("metrics.txt", metrics)).unwrap();
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(file);
    let output = promtool.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}\n{metrics}");
}

#[test]
fn session_runs_are_served_and_a_public_address_is_warned_about() {
    let place = Place::new();
    let port = rig::free_port(0).unwrap();
    let address = format!("0.0.0.0:{port}");
    let arguments = ["--target", "files", "--set", "measure_ms=1500", "--set", "clients=2"];
    let run = Started::new(place.fast(&[&arguments[..], &["--serve", &address]].concat()));
    let here = SocketAddr::from(([127, 0, 0, 1], port));
    let requests = wait_until("sessions are reported", PATIENCE, || {
        let metrics = page(here, "/metrics")?;
        sample(&metrics, "cachedyno_request_duration_seconds_count{target=\"files\"")
    });
    assert!(requests > 0.0, "{requests}");
    let Finished { stderr, .. } = run.finish_within(PATIENCE).measured();
    assert!(stderr.contains(&format!("warning: --serve `{address}` lets everyone")), "{stderr}");
    place.assert_nothing_left();
}

#[test]
fn a_search_is_served() {
    if !installed(&["redis-server", "setpriv"]) {
        return;
    }
    let place = Place::new();
    let address = SocketAddr::from(([127, 0, 0, 1], rig::free_port(0).unwrap()));
    let mut command = place.command();
    command.args(["find-max", "redis", "--slo", "p99<1s", "--probe", "500ms", "--rounds", "2"]);
    command.args(["--keys", "500", "--clients", "4", "--format", "json"]);
    command.args(["--serve", &address.to_string()]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let run = Started::new(command);
    wait_until("a probe at a rate is reported", PATIENCE, || {
        let metrics = page(address, "/metrics")?;
        let rate = sample(&metrics, "cachedyno_planned_requests_per_second{target=\"redis\"")?;
        (rate > 0.0).then_some(())
    });
    run.signal(nix::sys::signal::Signal::SIGINT);
    let summary = run.finish_within(PATIENCE).code(130).json();
    assert!(!among(&summary["targets"], |t| t["name"] == "redis").is_empty());
    place.assert_nothing_left();
}
