//! Programs started instead of `redis-server`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use model::{Program, RedisCompatible};
use nix::sys::signal::Signal;

use super::common::{
    Place, Started, count, installed, row, skipped, target, trials_so_far, wait_until,
};

const VALKEY: [&str; 6] = ["--set", "clients=1", "--set", "measure_ms=150", "--target", "valkey"];

/// A script under another program's name that starts Redis and logs each start.
struct FakeProgram {
    directory: PathBuf,
    starts: PathBuf,
}

impl FakeProgram {
    fn new(place: &Place, name: &str) -> Self {
        let directory = place.path().join("programs");
        fs::create_dir(&directory).unwrap();
        let starts = place.path().join("starts");
        let script =
            format!("#!/bin/sh\necho \"$0\" >> '{}'\nexec redis-server \"$@\"\n", starts.display());
        fs::write(directory.join(name), script).unwrap();
        fs::set_permissions(directory.join(name), Permissions::from_mode(0o755)).unwrap();
        Self { directory, starts }
    }

    /// Puts the script first in the command's PATH.
    fn first_in_path(&self, mut command: Command) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut directories = vec![self.directory.clone()];
        directories.extend(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(directories).unwrap());
        command
    }

    fn starts(&self) -> usize {
        fs::read_to_string(&self.starts).unwrap_or_default().lines().count()
    }
}

fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("bench").args(arguments).args(["--format", "json"]);
    command.args(["--duration", "200ms", "--warmup", "50ms", "--blocks", "1", "--keys", "1500"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

#[test]
fn a_resumed_run_starts_the_recorded_program() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let valkey = FakeProgram::new(&place, "valkey-server");
    let three = ["--set", "blocks_min=3", "--set", "blocks_max=3"];
    let run = Started::new(valkey.first_in_path(place.fast(&[&VALKEY[..], &three].concat())));
    wait_until("a trial is recorded", Duration::from_secs(60), || {
        (trials_so_far(&place.records()) >= 1).then_some(())
    });
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    place.assert_nothing_left();
    let planned = place.record().header()["plan"]["targets"][0].clone();
    assert_eq!(planned["product"], "redis");
    assert_eq!(planned["program"], "valkey-server");
    // The check and each trial use separate servers.
    let before = valkey.starts();
    assert!(before >= 2, "{before}");

    let resumed = place.run(&["--resume", "latest", "--format", "json"]);
    let summary = Place::finish(valkey.first_in_path(resumed)).measured().json();
    assert_eq!(summary["blocks"], 3);
    assert!(valkey.starts() >= before + 2, "{before} before, {} after", valkey.starts());
    let valkey = target(&summary, "valkey");
    assert_eq!(valkey["place"], "a private valkey-server, started fresh for each trial");
    assert_eq!(valkey["kind"], "redis");
    assert_eq!(valkey["settings"]["appendonly"], "no", "same settings as redis: {valkey}");
    place.assert_nothing_left();
}

#[test]
fn bench_compares_redis_with_another_program() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let keydb = FakeProgram::new(&place, "keydb-server");
    let command = bench(&place, &["redis", "keydb", "--set", "hz=20"]);
    let summary = Place::finish(keydb.first_in_path(command)).measured().json();
    assert_eq!(keydb.starts(), 2, "one start for the check, one for the trial");
    for name in ["redis", "keydb"] {
        assert!(count(row(&summary, name, "mixed"), "ok") > 50, "{name}");
        assert_eq!(target(&summary, name)["settings"]["hz"], "20", "{name}");
    }
    let place_of_redis = &target(&summary, "redis")["place"];
    assert_eq!(place_of_redis, "a private server, started fresh for each trial");
    let wrong = bench(&place, &["keydb", "--set", "keydb.hz=20"]);
    Place::finish(wrong).usage_error(&["`keydb.hz=20`", "expected redis.NAME=VALUE"]);
    place.assert_nothing_left();
}

#[test]
fn a_missing_program_is_reported_with_its_package() {
    for Program { target: name, server: RedisCompatible { program, .. }, package, .. } in
        Program::ALL
    {
        if is_in_any(program, &["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from)) {
            skipped(&format!("{program} is in a directory that is always searched"));
            continue;
        }
        let place = Place::new();
        let mut command = place.run(&["ramp", "--scale", "quick", "--target", name]);
        command.args(["--format", "json"]).env("PATH", "/nonexistent");
        let summary = Place::finish(command).code(3).json();
        let why = target(&summary, name)["not_run"].as_str().unwrap();
        let expected = format!("{program} is not installed (apt-get install {package})");
        assert_eq!(why, format!("not available: {expected}"));
        place.assert_nothing_left();
    }
}

#[test]
fn installed_programs_are_measured_under_their_own_name() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for Program { target: name, server: RedisCompatible { program, title, .. }, .. } in Program::ALL
    {
        if !is_in_any(program, &directories) {
            skipped(&format!("{program} is not installed"));
            continue;
        }
        let place = Place::new();
        let summary = Place::finish(bench(&place, &[name])).measured().json();
        let product = target(&summary, name)["product"].as_str().unwrap();
        let version = product.strip_prefix(title).unwrap_or_else(|| panic!("{product}"));
        assert!(version[1..].starts_with(|c: char| c.is_ascii_digit()), "{product}");
        assert!(count(row(&summary, name, "mixed"), "ok") > 50);
        place.assert_nothing_left();
    }
}

fn is_in_any(program: &str, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| directory.join(program).is_file())
}

#[test]
fn valkey_runs_as_a_cluster_and_with_sentinels() {
    if !installed(&["valkey-server"]) {
        return;
    }
    let deployments = [&["shards=2", "replicas=1"][..], &["replicas=1", "sentinels=3"]];
    for settings in deployments {
        let place = Place::new();
        let settings = settings.iter().map(|setting| format!("redis.{setting}"));
        let settings: Vec<String> = settings.collect();
        let set = settings.iter().flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> =
            ["valkey", "--op", "get=0.5,set=0.5"].into_iter().chain(set).collect();
        let summary = Place::finish(bench(&place, &arguments)).measured().json();
        let valkey = target(&summary, "valkey");
        assert!(valkey["product"].as_str().unwrap().starts_with("Valkey "), "{valkey}");
        assert!(count(row(&summary, "valkey", "mixed"), "ok") > 500, "{settings:?}");
        assert_eq!(count(row(&summary, "valkey", "mixed"), "error"), 0, "{settings:?}");
        place.assert_nothing_left();
    }
}
