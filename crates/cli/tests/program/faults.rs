//! Servers that die or hang in the middle of a trial.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::common::{Place, Started, among, child_named, installed, row, wait_until};

/// A long run on Redis and files. Sends `fault` to the Redis server during its measurement.
fn disturbed(place: &Place, more: &[&str], fault: Signal) -> (Value, Duration) {
    let arguments = ["--target", "redis", "--target", "files", "--set", "clients=1"];
    let run = Started::new(place.fast(&[&arguments[..], more].concat()));
    let parent = run.pid();
    // The check uses a separate server, which ends before the trial's server starts.
    let check = wait_until("a server is checked", Duration::from_secs(20), || {
        child_named(parent, "redis-server")
    });
    let server = wait_until("a server is measured", Duration::from_secs(30), || {
        child_named(parent, "redis-server").filter(|pid| *pid != check)
    });
    // Wait for the middle of the first phase.
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_raw(server.cast_signed()), fault).unwrap();
    let since = std::time::Instant::now();
    let finished = run.finish_within(Duration::from_secs(60)).code(4);
    (finished.json(), since.elapsed())
}

/// The only failed trial, which is of Redis.
fn only_failure(summary: &Value) -> &Value {
    let failures = among(&summary["failures"], |_| true);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0]["cell"], "redis/steady/1");
    failures[0]
}

#[test]
fn a_server_that_dies_is_a_failed_trial_with_its_signal() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let (summary, _) = disturbed(&place, &["--set", "measure_ms=1500"], Signal::SIGKILL);
    let failure = only_failure(&summary);
    assert_eq!(failure["class"], "connection lost");
    let reason = failure["reason"].as_str().unwrap();
    assert!(reason.contains("the server died (was killed by signal 9 (SIGKILL)"), "{reason}");
    assert!(reason.contains("a client saw: ") && !reason.contains("its log"), "{reason}");
    let log = failure["log"].as_str().unwrap();
    assert!(!log.is_empty() && log.split(" | ").count() <= 3, "{log}");
    assert_eq!(summary["validity"], "invalid");
    assert_eq!(row(&summary, "files", "read")["blocks"], 1);

    let trials = place.record().trials();
    let failed: Vec<_> = trials.iter().filter(|t| !t["failure"].is_null()).collect();
    assert_eq!((trials.len(), failed.len()), (2, 1));
    assert_eq!(failed[0]["failure"]["class"], "closed");
    place.assert_nothing_left();
}

#[test]
fn a_server_that_hangs_fails_its_trial_in_time() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let more = ["--timeout", "300ms", "--set", "measure_ms=1000"];
    let (summary, took) = disturbed(&place, &more, Signal::SIGSTOP);
    let failure = only_failure(&summary);
    assert_eq!(failure["class"], "timed out");
    let reason = failure["reason"].as_str().unwrap();
    assert!(reason.contains("no answer within 300 ms"), "{reason}");
    // The trial of files, about four seconds, can come after it.
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(row(&summary, "files", "read")["blocks"], 1);
    assert_eq!(place.record().seal()["status"], "complete");
    place.assert_nothing_left();
}

#[test]
fn a_target_that_refuses_every_write_is_not_run() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    // A server without memory for data refuses every write.
    let redis = ["--set", "redis.maxmemory=1", "--set", "redis.maxmemory-policy=noeviction"];
    let targets = ["--target", "redis", "--target", "files", "--set", "clients=1"];
    let summary = Place::finish(place.fast(&[&redis[..], &targets].concat())).code(3).json();
    let why = super::common::target(&summary, "redis")["not_run"].as_str().unwrap();
    assert!(why.starts_with("full: ") && why.contains("OOM"), "{why}");
    assert_eq!(row(&summary, "files", "write")["blocks"], 1);
    place.assert_nothing_left();
}
