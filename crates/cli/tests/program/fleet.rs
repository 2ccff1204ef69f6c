//! Loads of several processes: workers on this machine and workers that join.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use stats::SplitMix64;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::common::{Place, PortServer, Started, count, installed, row, skipped, wait_until};

/// Timeout, far more than any run here takes even on a loaded machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("bench").args(arguments);
    command.args(["--warmup", "100ms", "--keys", "2000", "--verify", "1", "--format", "json"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// Process ids of workers that the driver started.
pub(super) fn workers(place: &Place) -> Vec<i32> {
    let own = place.processes().into_iter().filter(|process| process.contains(" worker --join"));
    own.filter_map(|process| process.split_once(' ')?.0.parse().ok()).collect()
}

/// Waits until a load of some seconds runs.
fn wait_for_load(server: &PortServer) {
    wait_until("the load runs", PATIENCE, || (server.calls("get") > 500).then_some(()));
}

fn contributors(trial: &Value) -> Vec<Value> {
    trial["points"][0]["contributors"].as_array().cloned().unwrap_or_default()
}

#[test]
fn workers_divide_a_load_and_their_counts_add_up() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let url = format!("x=redis://127.0.0.1:{}", server.port);
    let load = ["--rate", "2000", "--clients", "7", "--duration", "1s", "--blocks", "1"];
    let finished =
        Place::finish(bench(&place, &[&[&*url, "--fleet", "local:3"], &load[..]].concat()));
    let summary = finished.measured().json();
    let trial = place.record().trials().remove(0);
    let parts = contributors(&trial);
    assert_eq!(parts.len(), 3, "{trial}");
    let clients: u64 = parts.iter().map(|part| part["point"]["clients"].as_u64().unwrap()).sum();
    assert_eq!(clients, 7);
    let whole = row(&summary, "x", "mixed");
    let answered = |part: &Value| part["point"]["operations"][0]["counts"].clone();
    let sum =
        |name: &str| parts.iter().map(|part| answered(part)[name].as_u64().unwrap()).sum::<u64>();
    for name in ["ok", "miss", "error", "wrong"] {
        assert_eq!(sum(name), count(whole, name), "{name}: {trial}");
    }
    assert_eq!((count(whole, "error"), count(whole, "wrong"), count(whole, "miss")), (0, 0, 0));
    // The server counted the same reads: those of the measurement and of the warm-up; the run
    // itself adds a few for its checks and for reading back.
    let reads = count(row(&summary, "x", "mixed.get"), "ok");
    let read_back = trial["read_back"]["read"].as_u64().unwrap();
    let counted = server.calls("get");
    assert!(counted >= reads + read_back, "{counted} {reads} {read_back}");
    assert!(counted <= reads + read_back + 600, "{counted} {reads} {read_back}");
    assert!(read_back > 0, "{trial}");
    // No worker is named as late, and each offered its part.
    let views = summary["workers"].as_array().unwrap();
    assert_eq!(views.len(), 3, "{summary}");
    for one in views {
        assert!((one["share_of_plan"].as_f64().unwrap() - 1.0).abs() < 0.2, "{one}");
        assert!(one["start_skew_ns"].as_u64() < Some(1_000_000_000), "{one}");
        assert!(one["rate_per_s_without"].as_f64() > Some(300.0), "{one}");
    }
    place.assert_nothing_left();
}

/// Asserts that two workers contributed to every point of the only trial, and to its fill.
#[track_caller]
fn assert_by_two(place: &Place, points_min: usize) {
    let trial = place.record().trials().remove(0);
    let points = trial["points"].as_array().unwrap();
    assert!(points.len() >= points_min, "{trial}");
    for point in points {
        assert_eq!(point["contributors"].as_array().unwrap().len(), 2, "{point}");
    }
    assert_eq!(trial["fill"]["operations"][0]["counts"]["ok"], 2_000, "{trial}");
}

#[test]
fn a_worker_without_a_request_in_its_plan_is_not_called_slow() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let url = format!("x=redis://127.0.0.1:{}", server.port);
    let load = ["--rate", "1", "--clients", "8", "--duration", "4s", "--blocks", "1"];
    let finished =
        Place::finish(bench(&place, &[&[&*url, "--fleet", "local:8"], &load[..]].concat()));
    let shown = finished.measured().json().to_string();
    assert!(!shown.contains("per client and the others"), "{shown}");
    place.assert_nothing_left();
}

#[test]
fn a_fleet_fills_and_climbs_like_one_process() {
    if !installed(&["memcached"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::memcached(&[]));
    let url = format!("x=memcached://127.0.0.1:{}", server.port);
    let load = ["--stages", "1s:400,1s:800", "--clients", "4", "--blocks", "1"];
    let own = [&*url, "--fleet", "local:2", "--i-own-this-server"];
    let summary = Place::finish(bench(&place, &[&own[..], &load[..]].concat())).json();
    assert_by_two(&place, 2);
    let stages = place.record().trials()[0]["points"].clone();
    let planned = |stage: usize| stages[stage]["planned_per_s"].as_f64().unwrap();
    assert!((planned(0) - 400.0).abs() < 1e-6 && (planned(1) - 800.0).abs() < 1e-6, "{stages}");
    let parts = |stage: usize| {
        let parts = stages[stage]["contributors"].as_array().unwrap();
        parts.iter().map(|part| part["point"]["planned_per_s"].as_f64().unwrap()).sum::<f64>()
    };
    assert!((parts(0) - 400.0).abs() < 1e-6, "{summary}");
    place.assert_nothing_left();
}

#[test]
#[ignore = "searches for a minute or more (make soak)"]
fn a_fleet_searches_in_step() {
    if !installed(&["memcached"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::memcached(&[]));
    let mut command = place.command();
    command.args(["find-max", &format!("x=memcached://127.0.0.1:{}", server.port)]);
    command.args(["--slo", "p99<50ms", "--probe", "500ms", "--rounds", "2", "--blocks", "1"]);
    command.args(["--fleet", "local:2", "--clients", "4", "--keys", "2000", "--format", "json"]);
    command.args(["--i-own-this-server", "--warmup", "50ms"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let summary = Started::new(command).finish_within(PATIENCE * 5).measured().json();
    assert_eq!(summary["searches"].as_array().unwrap().len(), 1, "{summary}");
    assert_by_two(&place, 4);
    place.assert_nothing_left();
}

/// Kills and stops random workers at random moments of a load: the driver ends, nothing is left,
/// and a result that lacks a worker is never VALID.
#[test]
#[ignore = "kills workers in many trials (make soak)"]
fn lost_workers_never_leave_a_valid_result() {
    if !installed(&["redis-server"]) {
        return;
    }
    let number =
        |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (runs, seed) = (number("FLEET_RUNS", 100), number("HARM_SEED", 1));
    let mut random = SplitMix64::new(seed);
    println!("{runs} fleets, seed {seed}");
    for run in 0..runs {
        let (place, server) = (Place::new(), PortServer::redis(&[]));
        let url = format!("redis=redis://127.0.0.1:{}", server.port);
        let command = if run % 2 == 0 {
            let load = ["--rate", "600", "--clients", "6", "--duration", "1s", "--blocks", "3"];
            bench(&place, &[&[&*url, "--fleet", "local:3"], &load[..]].concat())
        } else {
            let sets = "profile=steady sessions=400 clients=8 measure_ms=200 blocks_max=3";
            let mut arguments = vec!["sessions", "--scale", "quick", "--target", &url];
            arguments.extend(sets.split(' ').flat_map(|set| ["--set", set]));
            place.run(&[&arguments[..], &["--fleet", "local:3"]].concat())
        };
        let mut driver = Started::new(command);
        std::thread::sleep(Duration::from_millis(random.below(4_000)));
        let found = workers(&place);
        let signal = if random.below(4) == 0 { Signal::SIGSTOP } else { Signal::SIGKILL };
        let is_hit = driver.is_running()
            && !found.is_empty()
            && kill(Pid::from_raw(found[random.below(found.len() as u64) as usize]), signal)
                .is_ok();
        let finished = driver.finish_within(PATIENCE);
        let trials = place.all_records().first().map(|_| place.record().trials());
        let is_whole = trials.is_some_and(|trials| {
            trials.len() == 3 && trials.iter().all(|trial| trial["failure"].is_null())
        });
        assert!(!is_hit || is_whole || finished.code != Some(0), "run {run}: {finished:#?}");
        if !place.all_records().is_empty() {
            let shown = place.on_records(&["show", "latest"]);
            assert!(shown.stderr.is_empty(), "run {run}: {shown:#?}");
        }
        place.assert_nothing_left();
    }
}

/// A bench with three local workers under load, on a server that counts.
fn under_load(place: &Place, server: &PortServer) -> Started {
    let url = format!("x=redis://127.0.0.1:{}", server.port);
    let load = ["--rate", "1000", "--clients", "6", "--duration", "20s", "--blocks", "3"];
    let bench = bench(place, &[&[&*url, "--fleet", "local:3"], &load[..]].concat());
    let started = Started::new(bench);
    wait_for_load(server);
    started
}

#[test]
fn a_killed_worker_fails_the_trial_and_is_named() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let started = under_load(&place, &server);
    kill(Pid::from_raw(workers(&place)[1]), Signal::SIGKILL).unwrap();
    let summary = started.finish_within(PATIENCE).code(4).json();
    assert_eq!(summary["validity"], "invalid");
    let failure = summary["reasons"].to_string();
    assert!(failure.contains("left the fleet") && failure.contains("worker "), "{failure}");
    assert_eq!(summary["status"], "interrupted");
    assert_eq!(place.record().trials().len(), 1);
    // All its connections and those of the others are gone.
    wait_until("connections are closed", Duration::from_secs(5), || {
        (server.ask(&["CLIENT", "LIST"]).lines().count() == 1).then_some(())
    });
    place.assert_nothing_left();
}

#[test]
fn a_resumed_run_measures_a_lost_trial_again() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let url = format!("x=redis://127.0.0.1:{}", server.port);
    let load = ["--rate", "1000", "--clients", "6", "--duration", "3s", "--blocks", "2"];
    let bench = bench(&place, &[&[&*url, "--fleet", "local:3"], &load[..]].concat());
    let started = Started::new(bench);
    wait_for_load(&server);
    kill(Pid::from_raw(workers(&place)[1]), Signal::SIGKILL).unwrap();
    let summary = started.finish_within(PATIENCE).code(4).json();
    assert!(summary["reasons"].to_string().contains("--resume measures the lost trial again"));
    let resume = ["--resume", "latest", "--target", &url, "--fleet", "local:3", "--format", "json"];
    let resume = place.run(&resume);
    let summary = Place::finish(resume).measured().json();
    assert_eq!((&summary["status"], &summary["blocks"]), (&"complete".into(), &2.into()));
    assert!(!summary["reasons"].to_string().contains("left the fleet"), "{summary}");
    let again = summary["footnotes"].to_string();
    assert!(again.contains("1 of 2 trials was measured again after a loss"), "{again}");
    // The attempt is still in the record, before the trial that replaces it.
    let trials = place.record().trials();
    let failed: Vec<bool> = trials.iter().map(|trial| !trial["failure"].is_null()).collect();
    assert_eq!(failed, [true, false, false], "{trials:?}");
    assert_eq!(trials[0]["failure"]["class"], "lost");
    assert_eq!(trials[1]["lost_before"].as_array().map(Vec::len), Some(1), "{}", trials[1]);
    place.assert_nothing_left();
}

#[test]
fn a_stopped_worker_is_given_up_after_some_seconds() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let started = under_load(&place, &server);
    kill(Pid::from_raw(workers(&place)[0]), Signal::SIGSTOP).unwrap();
    let summary = started.finish_within(PATIENCE).code(4).json();
    let failure = summary["reasons"].to_string();
    assert!(failure.contains("it was silent for 5 s"), "{failure}");
    place.assert_nothing_left();
}

/// The driver cannot end a worker that it did not start, and that can write again.
#[test]
fn a_stopped_worker_writes_nothing_once_it_was_given_up() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "20s", &[]);
    let (first, second) = (driver.worker(&place), driver.worker(&place));
    wait_for_load(&server);
    first.signal(Signal::SIGSTOP);
    let summary = driver.started.finish_within(PATIENCE).code(4).json();
    let left = summary["left_behind"].to_string();
    assert!(left.contains("silent for 5 s, and may still write if it continues"), "{summary}");
    assert!(left.contains("cachedyno clean "), "{left}");
    first.signal(Signal::SIGCONT);
    for worker in [first, second] {
        worker.finish_within(PATIENCE);
    }
    assert_eq!(server.ask(&["DBSIZE"]), "0");
    place.assert_nothing_left();
}

/// Its workers give it up meanwhile. When it continues, it does not blame them.
#[test]
fn a_driver_that_was_stopped_says_so() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let started = under_load(&place, &server);
    started.signal(Signal::SIGSTOP);
    let all_have_ended = || workers(&place).is_empty().then_some(());
    wait_until("the workers have ended", PATIENCE, all_have_ended);
    started.signal(Signal::SIGCONT);
    let summary = started.finish_within(PATIENCE).code(4).json();
    let reasons = summary["reasons"].to_string();
    let expected = "the connection was closed after this process was stopped for ";
    assert!(reasons.contains(expected), "{reasons}");
    place.assert_nothing_left();
}

/// For less time than it takes to give it up. Nothing else uses its CPUs meanwhile.
#[test]
fn a_worker_that_is_stopped_for_a_moment_is_named() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let url = format!("x=redis://127.0.0.1:{}", server.port);
    for load in [&["--rate", "1000"][..], &["--think", "2ms"]] {
        let given = ["--fleet", "local:2", "--clients", "4", "--duration", "5s", "--blocks", "1"];
        let started = Started::new(bench(&place, &[&[&*url], &given[..], load].concat()));
        wait_for_load(&server);
        // Past the warm-up.
        std::thread::sleep(Duration::from_secs(2));
        let worker = Pid::from_raw(workers(&place)[0]);
        kill(worker, Signal::SIGSTOP).unwrap();
        std::thread::sleep(Duration::from_millis(1_500));
        kill(worker, Signal::SIGCONT).unwrap();
        let summary = started.finish_within(PATIENCE).json();
        let lost = summary["workers"].as_array().unwrap().iter();
        let lost: Vec<f64> = lost.map(|one| one["disturbed_share"].as_f64().unwrap()).collect();
        assert!(lost.iter().any(|share| *share > 0.25), "{load:?}: {lost:?}");
        let reasons = summary["reasons"].to_string();
        assert!(reasons.contains("could not use its CPUs for "), "{load:?}: {reasons}");
        assert!(matches!(summary["validity"].as_str(), Some("not-steady" | "invalid")));
        server.ask(&["CONFIG", "RESETSTAT"]);
    }
    place.assert_nothing_left();
}

#[test]
fn an_interrupt_ends_all_workers() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let started = under_load(&place, &server);
    let asked = Instant::now();
    started.signal(Signal::SIGINT);
    started.finish_within(PATIENCE).code(130);
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    place.assert_nothing_left();
}

#[test]
fn workers_end_when_their_driver_is_killed() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let started = under_load(&place, &server);
    started.signal(Signal::SIGKILL);
    wait_until("workers have ended", Duration::from_secs(5), || {
        workers(&place).is_empty().then_some(())
    });
    drop(started);
    place.assert_nothing_left();
}

/// A driver that listens for two workers on a free port, with its token file.
pub(super) struct Driver {
    pub(super) started: Started,
    port: u16,
    token: PathBuf,
}

impl Driver {
    fn start(place: &Place, server: &PortServer, duration: &str, arguments: &[&str]) -> Self {
        let url = format!("x=redis://127.0.0.1:{}", server.port);
        let load = ["--rate", "1000", "--clients", "4", "--duration", duration, "--blocks", "1"];
        Self::of(place, bench(place, &[&[&*url], &load[..], arguments].concat()))
    }

    /// Of a command without a fleet.
    pub(super) fn of(place: &Place, mut command: Command) -> Self {
        let port = rig::free_port(0).unwrap();
        let token = place.path().join("token");
        command.args(["--fleet", &format!("listen:127.0.0.1:{port},2"), "--token-file"]);
        command.arg(&token);
        let driver = Self { started: Started::new(command), port, token };
        wait_until("the token is there", PATIENCE, || driver.token.exists().then_some(()));
        driver
    }

    pub(super) fn worker(&self, place: &Place) -> Started {
        worker(place, self.port, &self.token)
    }
}

fn worker(place: &Place, port: u16, token: &Path) -> Started {
    let mut command = place.command();
    command.args(["worker", "--join", &format!("127.0.0.1:{port}"), "--token-file"]).arg(token);
    Started::new(command)
}

#[test]
fn workers_join_with_the_token_and_end_with_the_driver() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "5s", &[]);
    // Other connections are refused: one without TLS, and one with another fleet's token.
    let mut stream = TcpStream::connect(("127.0.0.1", driver.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    let text = fs::read_to_string(&driver.token).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["secret"] = "0".repeat(64).into();
    let forged = place.write("forged", &other.to_string());
    let stranger = worker(&place, driver.port, &forged);
    stranger.finish_within(PATIENCE).code(1).error(&["of another fleet"]);
    let (first, second) = (driver.worker(&place), driver.worker(&place));
    wait_for_load(&server);
    let surplus = driver.worker(&place).finish_within(PATIENCE).code(1);
    surplus.error(&["the fleet has all of its workers (2)"]);
    let finished = driver.started.finish_within(PATIENCE).measured();
    assert!(finished.stderr.contains("was refused: its token is of another fleet"));
    assert!(finished.stderr.contains("ended before it joined"), "{}", finished.stderr);
    for worker in [first, second] {
        worker.finish_within(PATIENCE).code(0);
    }
    assert_eq!(contributors(&place.record().trials()[0]).len(), 2);
    let conditions = finished.json()["conditions"].to_string();
    assert!(conditions.contains("cpu of all workers"), "{conditions}");
    assert!(!driver.token.exists(), "the token is removed");
    fs::remove_file(place.path().join("forged")).unwrap();
    place.assert_nothing_left();
}

/// Lists of CPUs of a process's threads, as the kernel writes them.
fn cpus_of_threads(pid: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let statuses =
        threads.filter_map(|one| fs::read_to_string(one.ok()?.path().join("status")).ok());
    let list = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.map(|list| list.trim().to_owned())
    };
    statuses.filter_map(list).collect()
}

#[test]
fn workers_keep_to_their_own_cpus() {
    if !installed(&["redis-server"]) {
        return;
    }
    let first = rig::OwnCpus::take(2);
    if first.is_none() {
        skipped("two CPUs of this machine cannot be taken: it has one, or this is a container");
        return;
    }
    drop(first);
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "3s", &[]);
    let worker = || {
        let mut command = place.command();
        command.args(["worker", "--join", &format!("127.0.0.1:{}", driver.port)]);
        command.args(["--own-cpus", "1", "--token-file"]).arg(&driver.token);
        Started::new(command)
    };
    let workers = [worker(), worker()];
    wait_for_load(&server);
    let mut used: Vec<String> = Vec::new();
    for one in &workers {
        let lists = cpus_of_threads(one.pid());
        used.extend(lists.into_iter().filter(|list| list.parse::<u32>().is_ok()));
    }
    let summary = driver.started.finish_within(PATIENCE).measured().json();
    for one in workers {
        one.finish_within(PATIENCE).code(0);
    }
    used.sort();
    assert_eq!(used.len(), 2, "a thread of each worker is pinned to one CPU: {used:?}");
    assert_ne!(used[0], used[1]);
    let conditions = summary["conditions"]["facts"].as_array().unwrap();
    let cpus = conditions.iter().find(|one| one["name"] == "CPUs of the workers").unwrap();
    let listed = cpus["value"].as_str().unwrap();
    assert!(used.iter().all(|cpu| listed.contains(&format!(": {cpu}"))), "{cpus}");
    assert!(!cpus.to_string().contains("workers share"), "{cpus}");
    place.assert_nothing_left();
}

#[test]
fn a_worker_says_that_its_driver_is_gone() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "30s", &[]);
    let workers = [driver.worker(&place), driver.worker(&place)];
    wait_for_load(&server);
    driver.started.signal(Signal::SIGKILL);
    for worker in workers {
        worker.finish_within(Duration::from_secs(10)).code(1).error(&["lost the driver at"]);
    }
    drop(driver.started);
    place.assert_nothing_left();
}

#[test]
fn a_second_fleet_leaves_the_token_of_the_first() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "3s", &[]);
    let token = fs::read(&driver.token).unwrap();
    let own = ["--fleet", "listen:127.0.0.1:0,1", "--token-file", driver.token.to_str().unwrap()];
    let mut second = bench(&place, &[&["redis"], &own[..]].concat());
    second.env("TMPDIR", place.disk());
    Place::finish(second).code(1).error(&["is the token of another cachedyno that still runs"]);
    assert_eq!(fs::read(&driver.token).unwrap(), token);
    let (first, second) = (driver.worker(&place), driver.worker(&place));
    driver.started.finish_within(PATIENCE).measured();
    for worker in [first, second] {
        let said = worker.finish_within(PATIENCE).code(0).stderr;
        assert!(said.contains("the driver is done"), "{said}");
    }
    place.assert_nothing_left();
}

#[test]
fn a_driver_says_which_workers_are_missing() {
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "1s", &["--fleet-wait", "1500ms"]);
    let worker = driver.worker(&place);
    let finished = driver.started.finish_within(PATIENCE).code(1);
    finished.error(&["1 of 2 workers joined within", "--fleet-wait"]);
    worker.finish_within(PATIENCE);
    place.assert_nothing_left();
}

#[test]
fn an_interrupt_while_workers_join_leaves_no_token() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "1s", &[]);
    let worker = driver.worker(&place);
    driver.started.signal(Signal::SIGINT);
    let finished = driver.started.finish_within(Duration::from_secs(20)).code(130);
    finished.error(&["interrupted while workers joined"]);
    assert!(!driver.token.exists(), "the token is removed");
    worker.finish_within(PATIENCE);
    place.assert_nothing_left();
}

#[test]
fn an_interrupted_worker_is_named_with_the_reason() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "30s", &[]);
    let [first, second] = [driver.worker(&place), driver.worker(&place)];
    wait_for_load(&server);
    first.signal(Signal::SIGINT);
    first.finish_within(PATIENCE).code(130);
    let summary = driver.started.finish_within(PATIENCE).code(4).json();
    let why = summary["reasons"].to_string();
    assert!(why.contains("left the fleet: it was interrupted"), "{why}");
    second.finish_within(PATIENCE);
    place.assert_nothing_left();
}

#[test]
fn another_worker_can_join_in_place_of_one_that_left() {
    if !installed(&["redis-server"]) {
        return;
    }
    let (place, server) = (Place::new(), PortServer::redis(&[]));
    let driver = Driver::start(&place, &server, "1s", &[]);
    let gone = driver.worker(&place);
    // On a slow machine, it has not joined by then; the driver waits for others in either case.
    std::thread::sleep(Duration::from_secs(1));
    gone.signal(Signal::SIGINT);
    gone.finish_within(PATIENCE).code(130);
    let both = [driver.worker(&place), driver.worker(&place)];
    let finished = driver.started.finish_within(PATIENCE).measured();
    let said = &finished.stderr;
    let has_left = said.contains("worker 1 on ") && said.contains("left before all had joined");
    assert!(has_left || said.contains("ended before it joined"), "{said}");
    let parts = contributors(&place.record().trials()[0]);
    let numbered = |number: usize| parts[number - 1]["name"].as_str().unwrap().to_string();
    assert!(numbered(1).starts_with("worker 1 on ") && numbered(2).starts_with("worker 2 on "));
    for worker in both {
        worker.finish_within(PATIENCE).code(0);
    }
    place.assert_nothing_left();
}

#[test]
fn wrong_fleets_are_refused() {
    let place = Place::new();
    let refused = |arguments: &[&str], parts: &[&str]| {
        Place::finish(bench(&place, &[&["redis"], arguments].concat())).usage_error(parts);
    };
    refused(&["--fleet", "everywhere"], &["--fleet `everywhere`", "local:3"]);
    refused(&["--fleet", "local:0"], &["`0` workers", "1 to 4096"]);
    refused(&["--fleet", "local:999999999999"], &["`999999999999` workers", "1 to 4096"]);
    refused(&["--fleet", "listen:127.0.0.1:99999,2"], &["`127.0.0.1:99999` is not an address"]);
    refused(&["--rig-on", "junk"], &["--rig-on `junk` is not an address"]);
    refused(&["--fleet", "listen:7000"], &["listen:10.0.0.1:7000,8"]);
    refused(
        &["--fleet", "local:3", "--clients", "2"],
        &["`2` clients for 3 workers with 3 threads"],
    );
    let mut command = place.command();
    command.args(["worker", "--join", "127.0.0.1:1", "--token-file", "/no/such/file"]);
    Place::finish(command).usage_error(&["cannot read --token-file `/no/such/file`"]);
    let other = place.write("other", "{}");
    let mut command = place.command();
    command.args(["worker", "--join", "127.0.0.1:1", "--token-file"]).arg(&other);
    Place::finish(command).usage_error(&["is not a token"]);
    assert!(place.all_records().is_empty(), "nothing was measured");
}
