//! Private servers on the machine of a worker.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::common::{Place, Started, count, installed, row, target, trials_so_far, wait_until};
use super::fleet::{PATIENCE, bench, workers};

/// A worker that starts servers, and the arguments by which a driver finds it.
struct Rig {
    started: Started,
    address: String,
    token: PathBuf,
}

impl Rig {
    fn start(place: &Place) -> Self {
        let (address, token) =
            (format!("127.0.0.1:{}", rig::free_port(0).unwrap()), place.path().join("rig.token"));
        let mut command = place.command();
        command.args(["worker", "--listen", &address, "--token-file"]).arg(&token);
        command.arg("--disk").arg(place.disk());
        let rig = Self { started: Started::new(command), address, token };
        wait_until("the token is there", PATIENCE, || rig.token.exists().then_some(()));
        rig
    }

    fn bench(&self, place: &Place, arguments: &[&str]) -> Command {
        let own = ["--rig-on", &self.address, "--rig-token", self.token.to_str().unwrap()];
        bench(place, &[arguments, &own[..], &["--clients", "4", "--blocks", "1"]].concat())
    }

    /// Interrupts it and asserts that it leaves nothing.
    fn end(self, place: &Place) {
        self.started.signal(Signal::SIGINT);
        self.started.finish_within(PATIENCE).code(0);
        assert!(!self.token.exists(), "the token is removed");
        place.assert_nothing_left();
    }
}

/// Process ids of servers that a worker started.
fn servers(place: &Place) -> Vec<String> {
    let own = place.processes().into_iter();
    own.filter(|process| process.contains("redis-server")).collect()
}

#[test]
fn a_worker_cannot_join_one_that_starts_servers() {
    let place = Place::new();
    let rig = Rig::start(&place);
    let mut command = place.command();
    command.args(["worker", "--join", &rig.address, "--token-file"]).arg(&rig.token);
    let joining = Started::new(command).finish_within(PATIENCE).code(1);
    joining.error(&["cannot join the driver at", "a `worker --listen` serves drivers with"]);
    rig.end(&place);
}

#[test]
fn servers_run_on_the_machine_of_a_worker() {
    if !installed(&["redis-server", "memcached", "mariadbd", "postgres"]) {
        return;
    }
    let place = Place::new();
    let rig = Rig::start(&place);
    let load = ["redis", "memcached", "--duration", "500ms", "--fleet", "local:2"];
    let summary = Place::finish(rig.bench(&place, &load)).measured().json();
    for name in ["redis", "memcached"] {
        let row = row(&summary, name, "mixed");
        assert!(count(row, "ok") > 50, "{row}");
        let cpu = &row["metrics"]["server_cpu_ns_per_op"]["center"];
        assert!(cpu.as_f64() > Some(100.0), "{row}");
    }
    let groups = summary["conditions"].to_string();
    assert!(groups.contains("of the servers' machine"), "{groups}");
    assert!(groups.contains("servers and clients share CPU"), "{groups}");
    // Its memory is checked, not that of the driver.
    let mut large = place.command();
    large.args(["bench", "redis", "--keys", "900000000", "--value", "10000"]);
    large.args(["--rig-on", &rig.address, "--rig-token"]).arg(&rig.token);
    large.args(["--format", "json", "--out"]).arg(place.path().join("large"));
    large.arg("--disk").arg(place.disk());
    let summary = Place::finish(large).code(3).json();
    let why = target(&summary, "redis")["not_run"].to_string();
    assert!(why.contains("the memory of the servers' machine (127.0.0.1:"), "{why}");
    fs::remove_dir_all(place.path().join("large")).unwrap();
    // The worker serves the next driver.
    let out = place.path().join("sessions");
    let mut sessions = place.command();
    sessions.args(["run", "sessions", "--scale", "quick", "--set", "profile=steady"]);
    for setting in ["blocks_max=1", "blocks_min=1", "clients=2"] {
        sessions.args(["--set", setting]);
    }
    let databases = ["mysql", "postgres", "redis"];
    for name in databases {
        sessions.args(["--target", name]);
    }
    sessions.args(["--rig-on", &rig.address, "--rig-token"]).arg(&rig.token);
    sessions.args(["--format", "json", "--out"]).arg(&out).arg("--disk").arg(place.disk());
    let summary = Place::finish(sessions).measured().json();
    for name in databases {
        let row = row(&summary, name, "read");
        assert!(count(row, "ok") > 50 && count(row, "wrong") == 0, "{row}");
        let cpu = &row["metrics"]["server_cpu_ns_per_op"]["center"];
        assert!(cpu.as_f64() > Some(100.0), "{row}");
    }
    fs::remove_dir_all(out).unwrap();
    rig.end(&place);
}

#[test]
fn clusters_replicas_and_sentinels_run_on_the_machine_of_a_worker() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let rig = Rig::start(&place);
    for settings in
        [["redis.shards=3", "redis.replicas=1"], ["redis.replicas=1", "redis.sentinels=3"]]
    {
        let set = settings.iter().flat_map(|setting| ["--set", *setting]);
        let load: Vec<&str> = ["redis", "--duration", "500ms"].into_iter().chain(set).collect();
        let finished = Place::finish(rig.bench(&place, &load));
        let summary = finished.measured().json();
        let row = row(&summary, "redis", "mixed");
        assert!(count(row, "ok") > 50 && count(row, "error") == 0, "{settings:?}: {row}");
        let cpu = &row["metrics"]["server_cpu_ns_per_op"]["center"];
        assert!(cpu.as_f64() > Some(100.0), "{settings:?}: {row}");
    }
    rig.end(&place);
}

#[test]
fn a_lost_machine_of_servers_fails_the_trial() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let rig = Rig::start(&place);
    let load = ["redis", "--duration", "30s", "--rate", "500"];
    let driver = Started::new(rig.bench(&place, &load));
    let started = || servers(&place).first().cloned();
    let server = wait_until("a server runs under load", PATIENCE, || {
        std::thread::sleep(Duration::from_secs(2));
        started()
    });
    // Its server dies, then the worker.
    let pid = server.split_once(' ').unwrap().0.parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let summary = driver.finish_within(PATIENCE).code(4).json();
    let why = summary["reasons"].to_string();
    assert!(why.contains("a server on 127.0.0.1 died"), "{why}");
    let driver = Started::new(rig.bench(&place, &load));
    wait_until("a server runs", PATIENCE, started);
    // Another driver is refused, and does not wait.
    let second = Place::finish(rig.bench(&place, &load)).code(1);
    second.error(&["refused this driver: it is in use by the driver at 127.0.0.1:"]);
    rig.started.signal(Signal::SIGKILL);
    let summary = driver.finish_within(PATIENCE).code(4).json();
    let failed = summary.to_string();
    assert!(failed.contains("lost the machine of the servers"), "{failed}");
    assert!(!failed.contains("has not answered"), "{failed}");
    assert!(summary["left_behind"].as_array().is_none_or(Vec::is_empty), "{summary}");
    wait_until("its servers are gone", Duration::from_secs(10), || {
        servers(&place).is_empty().then_some(())
    });
    drop(rig.started);
    place.assert_nothing_left();
}

#[test]
fn servers_end_with_the_driver_that_asked_for_them() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let rig = Rig::start(&place);
    let driver = Started::new(rig.bench(&place, &["redis", "--duration", "30s"]));
    wait_until("a server runs", PATIENCE, || (!servers(&place).is_empty()).then_some(()));
    driver.signal(Signal::SIGKILL);
    wait_until("its servers are gone", Duration::from_secs(8), || {
        servers(&place).is_empty().then_some(())
    });
    drop(driver);
    // A forged token is refused.
    let text = fs::read_to_string(&rig.token).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["secret"] = "0".repeat(64).into();
    let forged = place.write("forged", &other.to_string());
    let given = ["redis", "--rig-on", &rig.address, "--rig-token", forged.to_str().unwrap()];
    Place::finish(bench(&place, &given)).code(1).error(&["the token is of another worker"]);
    let existing = rig.bench(&place, &["x=redis://127.0.0.1:1"]);
    Place::finish(existing).usage_error(&["--rig-on: this run starts no server"]);
    fs::remove_file(forged).unwrap();
    rig.end(&place);
}

#[test]
fn a_run_resumes_with_its_workers_and_its_machine_of_servers() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let rig = Rig::start(&place);
    let own = ["--rig-on", &rig.address, "--rig-token", rig.token.to_str().unwrap()];
    let load = ["redis", "--clients", "4", "--duration", "2s", "--blocks", "3"];
    let by_two = ["--fleet", "local:2"];
    let driver = Started::new(bench(&place, &[&load[..], &by_two, &own].concat()));
    wait_until("a trial has ended", PATIENCE, || {
        (trials_so_far(&place.records()) >= 1).then_some(())
    });
    driver.signal(Signal::SIGKILL);
    driver.finish_within(PATIENCE);
    wait_until("workers and servers have ended", Duration::from_secs(8), || {
        (servers(&place).is_empty() && workers(&place).is_empty()).then_some(())
    });
    let shown = place.on_records(&["show"]).code(0).stdout;
    let all = format!("--fleet local:2 --rig-on {}", rig.address);
    assert!(shown.contains(&all), "no {all} in {shown}");
    let resumed = |more: &[&str]| {
        let resume = ["--resume", "latest", "--format", "json"];
        Place::finish(place.run(&[&resume[..], more].concat()))
    };
    resumed(&own).usage_error(&["--fleet"]);
    resumed(&[&own[..], &["--fleet", "local:3"]].concat()).usage_error(&["--fleet", "2 workers"]);
    resumed(&by_two).usage_error(&["private servers of this run are on", "--rig-on HOST:PORT"]);
    let summary = resumed(&[&own[..], &by_two].concat()).measured().json();
    assert_eq!((&summary["status"], &summary["resumed"]), (&"complete".into(), &true.into()));
    for trial in place.record().trials() {
        let parts = trial["points"][0]["contributors"].as_array().map(Vec::len);
        assert_eq!(parts, Some(2), "{trial}");
    }
    rig.end(&place);
}

#[test]
fn strangers_do_not_keep_a_machine_of_servers_from_its_driver() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let rig = Rig::start(&place);
    // One says nothing, and one does not speak TLS.
    let silent = TcpStream::connect(&rig.address).unwrap();
    let mut other = TcpStream::connect(&rig.address).unwrap();
    other.set_read_timeout(Some(PATIENCE)).unwrap();
    other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = other.read_to_end(&mut Vec::new());
    let driver = Place::finish(rig.bench(&place, &["redis", "--duration", "300ms"])).measured();
    assert!(count(row(&driver.json(), "redis", "mixed"), "ok") > 10);
    drop(silent);
    rig.started.signal(Signal::SIGINT);
    let said = rig.started.finish_within(PATIENCE).code(0).stderr;
    for part in ["ended before it was served", "serving the driver at", "started redis", "stopped"]
    {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
    place.assert_nothing_left();
}
