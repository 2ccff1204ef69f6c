//! Signals: the run prints a result, leaves a resumable record and nothing else.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::common::{
    Defect, Fake, Place, Started, child_named, freeze, installed, trials_so_far, wait_until,
};

/// Two trials of about two seconds each: of files and, if it is installed, of Redis.
const TWO_TRIALS: [&str; 4] = ["--set", "clients=1", "--set", "measure_ms=350"];

fn targets() -> &'static [&'static str] {
    if installed(&["redis-server"]) {
        &["--target", "files", "--target", "redis"]
    } else {
        &["--target", "files", "--set", "clients=1,2"]
    }
}

/// Ends a run after its first trial and returns its summary.
fn ended_by(place: &Place, end: fn(&Started)) -> Value {
    let run = Started::new(place.fast(&[&TWO_TRIALS[..], targets()].concat()));
    wait_until("the first trial has ended", Duration::from_secs(60), || {
        (trials_so_far(&place.records()) >= 1).then_some(())
    });
    std::thread::sleep(Duration::from_millis(300));
    end(&run);
    let since = std::time::Instant::now();
    let finished = run.finish_within(Duration::from_secs(30)).code(130);
    // The operation in flight takes milliseconds, but a busy disk can delay writing the record.
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
    place.assert_nothing_left();
    let message = "stopping after the operations in flight; Ctrl-C again exits at once";
    assert!(finished.stderr.contains(message), "{}", finished.stderr);
    finished.json()
}

fn interrupt_and_resume(end: fn(&Started)) {
    let place = Place::new();
    let summary = ended_by(&place, end);
    assert_eq!((&summary["status"], &summary["blocks"]), (&"interrupted".into(), &0.into()));
    assert_eq!(summary["stopped_because"], "interrupted");
    assert!(!summary["cells"].as_array().unwrap().is_empty(), "no partial result: {summary}");
    let record = place.record();
    assert_eq!(record.seal()["status"], "interrupted");
    assert_eq!(record.trials().len(), 1, "an interrupted trial is recorded");
    assert!(record.path.join("report.html").is_file());

    let resume = ["--resume", "latest", "--format", "json"];
    let summary = Place::finish(place.run(&resume)).measured().json();
    assert_eq!(summary["status"], "complete");
    assert_eq!(record.measured().values().sum::<usize>(), 2);
    place.assert_nothing_left();
}

#[test]
fn ctrl_c_ends_the_run_with_its_result_so_far() {
    interrupt_and_resume(|run| run.signal_group(Signal::SIGINT));
}

#[test]
fn sigterm_ends_the_run_like_ctrl_c() {
    interrupt_and_resume(|run| run.signal(Signal::SIGTERM));
}

#[test]
fn a_run_interrupted_before_its_first_trial_can_be_resumed() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let run = Started::new(place.fast(&["--target", "redis", "--set", "clients=1"]));
    let parent = run.pid();
    let server = wait_until("a server is checked", Duration::from_secs(20), || {
        child_named(parent, "redis-server")
    });
    // While the server is stopped, the check cannot end before the signal arrives.
    let server = Pid::from_raw(server.cast_signed());
    let stopped = kill(server, Signal::SIGSTOP).is_ok();
    run.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(100));
    if stopped {
        let _ = kill(server, Signal::SIGCONT);
    }
    let summary = run.finish_within(Duration::from_secs(30)).code(130).json();
    assert_eq!(summary["status"], "interrupted");
    assert_eq!(summary["stopped_because"], "interrupted");
    assert_eq!(place.record().trials().len(), 0);
    place.assert_nothing_left();

    let resume = ["--resume", "latest", "--format", "json"];
    Place::finish(place.run(&resume)).measured();
    assert_eq!(place.record().seal()["status"], "complete");
}

/// A run whose Redis server hangs, with a timeout longer than the test.
fn hanging(place: &Place) -> Started {
    let arguments = ["--target", "redis", "--set", "clients=1", "--set", "measure_ms=2000"];
    let run = Started::new(place.fast(&[&arguments[..], &["--timeout", "60s"]].concat()));
    let parent = run.pid();
    let server = || child_named(parent, "redis-server");
    let check = wait_until("a server is checked", Duration::from_secs(20), server);
    let measured = wait_until("a server is measured", Duration::from_secs(20), || {
        server().filter(|pid| *pid != check)
    });
    std::thread::sleep(Duration::from_millis(400));
    freeze(measured);
    run
}

#[test]
fn a_second_ctrl_c_exits_at_once() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let mut run = hanging(&place);
    run.signal(Signal::SIGINT);
    std::thread::sleep(Duration::from_millis(500));
    if !run.is_running() {
        let finished = run.finish_within(Duration::from_secs(10));
        panic!("the first signal did not wait for the operation in flight: {finished:#?}");
    }
    run.signal(Signal::SIGINT);
    let since = std::time::Instant::now();
    let finished = run.finish_within(Duration::from_secs(10)).code(130);
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    let run = place.record().header()["run"].as_str().unwrap().to_string();
    let resume = format!("`cachedyno run --resume {run} --out {}`", place.records().display());
    let said = finished.stderr.contains("exiting at once") && finished.stderr.contains(&resume);
    assert!(said, "{finished:?}");
    place.assert_nothing_left();
    assert!(!place.record().path.join("seal.json").exists());
}

#[test]
fn a_killed_run_leaves_no_server_behind() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let run = hanging(&place);
    run.signal(Signal::SIGKILL);
    assert_eq!(run.finish_within(Duration::from_secs(10)).code, None);
    place.assert_nothing_left();
}

#[test]
fn ctrl_c_ends_an_endless_cleanup() {
    let (place, server) = (Place::new(), Fake::new(Defect::EndlessScan));
    let target = format!("--target=x={}", server.url());
    let run = Started::new(place.fast(&[&target, "--allow-shared", "--set", "clients=1"]));
    wait_until("keys are removed", Duration::from_secs(60), || {
        (server.scans() > 100).then_some(())
    });
    run.signal(Signal::SIGINT);
    let finished = run.finish_within(Duration::from_secs(20));
    assert_eq!(finished.code, Some(130), "{finished:#?}");
    let summary = finished.json();
    let why = summary["targets"][0]["not_run"].as_str().unwrap_or_default();
    let run = summary["run"].as_str().unwrap();
    for part in ["cleaning was interrupted", &format!("cachedyno-{run}-")] {
        assert!(why.contains(part), "no `{part}` in {summary}");
    }
    place.assert_nothing_left();
}
