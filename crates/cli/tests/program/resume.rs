//! Resuming a killed run.

use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::common::{
    MariadbServer, Place, RedisServer, Started, installed, trials_so_far, wait_until,
};

const THREE_BLOCKS: [&str; 10] = [
    "--set",
    "blocks_min=3",
    "--set",
    "blocks_max=3",
    "--set",
    "measure_ms=150",
    "--set",
    "clients=1,2",
    "--target",
    "files",
];

/// Starts a run of three blocks and two cells, and kills it in its second block.
fn kill_in_second_block(place: &Place) {
    let run = Started::new(place.fast(&THREE_BLOCKS));
    wait_until("block 2 has started", Duration::from_secs(60), || {
        (trials_so_far(&place.records()) >= 3).then_some(())
    });
    // Other commands can read the record of a running run.
    assert!(place.on_records(&["list"]).code(0).stdout.contains("running"));
    let shown = place.on_records(&["show", "--format", "json"]).code(0).json();
    assert_eq!(shown["status"], "running");
    assert_ne!(shown["validity"], "valid");
    run.signal(Signal::SIGKILL);
    assert_eq!(run.finish_within(Duration::from_secs(20)).code, None);
    place.assert_nothing_left();
}

fn resumed(place: &Place, run: &str) -> std::process::Command {
    place.run(&["--resume", run, "--format", "json"])
}

#[test]
fn a_resumed_run_measures_only_missing_trials() {
    let place = Place::new();
    kill_in_second_block(&place);
    let record = place.record();
    assert!(!record.path.join("seal.json").exists());
    let listed = place.on_records(&["list"]).code(0);
    assert!(listed.stdout.contains("unsealed"), "{listed:?}");
    let shown = place.on_records(&["show", "--format", "json"]).code(0).json();
    assert_eq!(shown["status"], "unsealed");

    let before = record.read("trials.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(record.path.join("trials.jsonl"));
    // A torn line, as after a power failure.
    file.as_mut().unwrap().write_all(&before[..before.len().min(700) / 2]).unwrap();

    let summary = Place::finish(resumed(&place, "latest")).measured().json();
    assert_eq!((&summary["status"], &summary["blocks"]), (&"complete".into(), &3.into()));
    assert_eq!(summary["resumed"], true);
    let after = record.read("trials.jsonl");
    assert!(after.starts_with(&before), "earlier lines were changed");
    let measured = record.measured();
    assert_eq!(measured.len(), 6, "{measured:?}");
    assert!(measured.values().all(|times| *times == 1), "{measured:?}");
    assert_eq!(record.seal()["status"], "complete");
    assert_eq!(record.header()["run"], summary["run"]);
    place.assert_nothing_left();

    let id = summary["run"].as_str().unwrap();
    Place::finish(resumed(&place, id)).usage_error(&[id, "complete", "nothing to resume"]);
    assert_eq!(record.read("trials.jsonl"), after, "a complete record stays unchanged");
    assert_eq!(record.seal()["status"], "complete");
}

#[test]
fn the_record_of_a_running_run_is_in_use() {
    let place = Place::new();
    let mut run = Started::new(place.fast(&THREE_BLOCKS));
    wait_until("the first trial has ended", Duration::from_secs(60), || {
        (trials_so_far(&place.records()) >= 1).then_some(())
    });
    let mut second = resumed(&place, "latest");
    // With another TMPDIR the measurement lock is free, but the record has its own lock.
    second.env("TMPDIR", place.path());
    let second = Place::finish(second);
    assert!(run.is_running(), "the run ended too soon for this test");
    second.usage_error(&["in use by another cachedyno"]);
    run.finish_within(Duration::from_secs(60)).measured();
    let measured = place.record().measured();
    assert_eq!((measured.len(), measured.values().sum()), (6, 6));
}

#[test]
fn a_resumed_run_cannot_change_its_plan() {
    let place = Place::new();
    for flag in [
        &["--scale", "full"][..],
        &["--budget", "5m"],
        &["--set", "clients=1"],
        &["--aa"],
        &["--seed", "1"],
        &["--timeout", "1s"],
    ] {
        let arguments = [&["--resume", "latest"], flag].concat();
        let finished = Place::finish(place.run(&arguments));
        finished.usage_error(&["--resume", flag[0], "cannot be used with"]);
    }
    Place::finish(resumed(&place, "latest")).usage_error(&["no run `latest`", "known: none"]);
    assert!(!place.records().exists());
}

#[test]
fn another_study_and_another_store_are_refused() {
    let place = Place::new();
    let (here, there) = (place.path().join("here"), place.path().join("there"));
    fs::create_dir(&here).unwrap();
    fs::create_dir(&there).unwrap();
    let at = |path: &std::path::Path| format!("x=file://{}", path.display());
    let run = Started::new(place.fast(&[&THREE_BLOCKS[..8], &["--target", &at(&here)]].concat()));
    wait_until("a trial has ended", Duration::from_secs(60), || {
        (trials_so_far(&place.records()) >= 1).then_some(())
    });
    // Kill the run in the middle of the next trial.
    std::thread::sleep(Duration::from_millis(200));
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    place.assert_nothing_left();
    let before = place.record().read("trials.jsonl");

    let resume = ["--resume", "latest", "--format", "json"];
    let with = |more: &[&str]| Place::finish(place.run(&[&resume[..], more].concat()));
    with(&["own"]).usage_error(&["is of study `sessions`, not of `own`"]);
    let again = format!("--target {}`", at(&here));
    with(&[]).usage_error(&["target `x` was directory", "cachedyno run --resume", &again]);
    for other in ["nosuch", "x", &format!("y=file://{}", here.display())] {
        let name = other.split('=').next().unwrap();
        let named = format!("cannot use --target `{name}`");
        with(&["--target", other]).usage_error(&[&named, "measures `x` as planned"]);
    }
    with(&["--target", &at(&there)]).usage_error(&["target `x`", "here", "there"]);
    assert_eq!(place.record().read("trials.jsonl"), before);

    let summary = with(&["sessions", "--target", &at(&here)]).measured().json();
    assert_eq!(summary["status"], "complete");
    assert_eq!(place.record().measured().len(), 6);
    assert_eq!(fs::read_dir(&here).unwrap().count(), 0);
    place.assert_nothing_left();
}

#[test]
fn one_error_lists_all_existing_stores_to_name_again() {
    let place = Place::new();
    let directories = ["one", "two"].map(|name| place.path().join(name));
    let at = |i: usize| format!("s{i}=file://{}", directories[i].display());
    for directory in &directories {
        fs::create_dir(directory).unwrap();
    }
    let targets = ["--target", &at(0), "--target", &at(1)];
    let run = Started::new(place.fast(&[&THREE_BLOCKS[..8], &targets].concat()));
    wait_until("a trial has ended", Duration::from_secs(60), || {
        (trials_so_far(&place.records()) >= 1).then_some(())
    });
    run.signal(Signal::SIGINT);
    run.finish_within(Duration::from_secs(30)).code(130);
    place.assert_nothing_left();
    let refused = Place::finish(resumed(&place, "latest"));
    let command = format!("--out {} {}", place.records().display(), targets.join(" "));
    refused.usage_error(&["target `s0` was", "target `s1` was", &command]);
}

/// Kills a run on an existing store in the second of three blocks and resumes it. Resuming first
/// removes the leftovers of the killed run from the store.
fn kill_and_resume_on(target: &str, password: Option<&str>) {
    let place = Place::new();
    let with_password = |mut command: Command| {
        command.envs(password.map(|password| ("CACHEDYNO_PASSWORD_X", password)));
        command
    };
    let plan = [&THREE_BLOCKS[..6], &["--set", "clients=1", "--target", target]].concat();
    let mut run = Started::new(with_password(place.fast(&plan)));
    wait_until("block 2 has started", Duration::from_secs(60), || {
        assert!(run.is_running(), "the run has ended");
        (trials_so_far(&place.records()) >= 1).then_some(())
    });
    std::thread::sleep(Duration::from_millis(200));
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    place.assert_nothing_left();

    let command = place.run(&["--resume", "latest", "--format", "json", "--target", target]);
    let summary = Place::finish(with_password(command)).measured().json();
    assert_eq!(summary["failures"].as_array().unwrap().len(), 0, "{}", summary["failures"]);
    let measured = place.record().measured();
    assert_eq!((measured.len(), measured.values().sum()), (3, 3));
}

#[test]
fn a_killed_run_on_an_existing_redis_is_resumed_and_cleaned_up() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let server = RedisServer::new();
    kill_and_resume_on(&format!("x={}", server.url()), None);
    assert_eq!(server.keys(), [""; 0], "leftovers of the killed run");
}

/// Even if the run was killed before its first trial ended.
#[test]
fn a_run_can_be_resumed_again_after_a_refusal() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (server, place) = (RedisServer::new(), Place::new());
    let target = format!("x={}", server.url());
    let plan = ["--set", "clients=1", "--set", "warmup_ms=60000", "--target", &target];
    let run = Started::new(place.fast(&plan));
    wait_until("the run has written keys", Duration::from_secs(60), || {
        (!server.keys().is_empty()).then_some(())
    });
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    place.assert_nothing_left();

    server.ask(&["SET", "foreign", "value"]);
    let resume = || Place::finish(place.run(&["--resume", "latest", "--target", &target]));
    let refused = resume().code(3);
    assert!(refused.stdout.contains("is not empty"), "{refused:?}");
    assert_eq!(place.record().seal()["status"], "interrupted");
    server.ask(&["DEL", "foreign"]);
    let started = Started::new(place.run(&["--resume", "latest", "--target", &target]));
    wait_until("the resumed run has written keys", Duration::from_secs(60), || {
        (!server.keys().is_empty()).then_some(())
    });
    started.signal(Signal::SIGINT);
    started.finish_within(Duration::from_secs(20));
    assert_eq!(server.keys(), [""; 0]);
}

#[test]
fn a_killed_run_on_an_existing_mysql_is_resumed() {
    if !installed(&["mariadbd", "mariadb", "mariadb-install-db", "setpriv"]) {
        return;
    }
    let server = MariadbServer::new();
    kill_and_resume_on(&format!("x={}", server.url()), Some(MariadbServer::PASSWORD));
    let left = server.ask("SHOW TABLES IN shop");
    assert_eq!(left.trim(), "", "leftovers of the killed run");
}
