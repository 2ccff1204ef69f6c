//! Workers in network namespaces: a slow link, and one that breaks.

use nix::unistd::geteuid;
use serde_json::Value;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::common::{Place, PortServer, Started, installed, skipped, wait_until};

/// Timeout, far more than any run here takes even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A network namespace connected with this host by a pair of interfaces. Removed when dropped.
struct Namespace {
    name: String,
    outside: String,
    /// Address of this host on the pair.
    address: String,
}

/// Runs `ip` or `tc`; false if it fails.
fn run(program: &str, arguments: &str) -> bool {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Namespace {
    /// `None` if this user or machine cannot create one.
    fn new() -> Option<Self> {
        // Tests run side by side in this process.
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed) % 50;
        let own = std::process::id() % 60_000;
        let (name, outside) = (format!("cdt{own}n{number}"), format!("cdt{own}v{number}"));
        // Of the block for benchmarks (RFC 2544), apart from those of limited networks.
        let pair = |host: u32| format!("198.19.{}.{}", 200 + number, own % 60 * 4 + host);
        let (address, inside) = (pair(1), pair(2));
        let namespace = Self { name, outside, address };
        let Self { name, outside, address } = &namespace;
        let is_made = run("ip", &format!("netns add {name}"))
            && run("ip", &format!("link add {outside} type veth peer name eth0 netns {name}"))
            && run("ip", &format!("addr add {address}/30 dev {outside}"))
            && run("ip", &format!("link set {outside} up"))
            && run("ip", &format!("-n {name} addr add {inside}/30 dev eth0"))
            && run("ip", &format!("-n {name} link set eth0 up"))
            && run("ip", &format!("-n {name} link set lo up"))
            && run("ip", &format!("-n {name} route add default via {address}"));
        is_made.then_some(namespace)
    }

    /// Limits the traffic in both directions.
    fn limit(&self, rate: &str) -> bool {
        let Self { name, outside, .. } = self;
        let bucket = format!("root tbf rate {rate} burst 16kb latency 200ms");
        run("tc", &format!("qdisc add dev {outside} {bucket}"))
            && run("tc", &format!("-n {name} qdisc add dev eth0 {bucket}"))
    }

    /// Leaves only this host's address on the pair reachable.
    fn remove_route(&self) -> bool {
        run("ip", &format!("-n {} route del default", self.name))
    }

    /// Breaks the link.
    fn cut(&self) {
        assert!(run("ip", &format!("link set {} down", self.outside)));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run("ip", &format!("netns del {}", self.name));
        run("ip", &format!("link del {}", self.outside));
    }
}

/// Namespaces, a server that all of them reach, and a driver that waits for a worker in each.
struct Fleet {
    place: Place,
    namespaces: Vec<Namespace>,
    server: PortServer,
    driver: Started,
    workers: Vec<Started>,
}

impl Fleet {
    /// The last namespace is harmed first. `None` if there are no namespaces here, which is said.
    fn start(workers: u32, duration: &str, harm: fn(&Namespace) -> bool) -> Option<Self> {
        let is_root = geteuid().is_root();
        let made = || (0..workers).map(|_| Namespace::new()).collect::<Option<Vec<Namespace>>>();
        let namespaces = is_root.then(made).flatten();
        let namespaces = namespaces.filter(|all| all.last().is_some_and(harm));
        let Some(namespaces) = namespaces else {
            skipped("network namespaces need root, ip and tc");
            return None;
        };
        let (place, address) = (Place::new(), namespaces[0].address.clone());
        let server =
            PortServer::redis(&["--bind", "127.0.0.1", &address, "--protected-mode", "no"]);
        let (port, token) = (rig::free_port(0).unwrap(), place.path().join("token"));
        let mut command = place.command();
        command.args(["bench", &format!("x=redis://{address}:{}", server.port)]);
        command.args(["--fleet", &format!("listen:0.0.0.0:{port},{workers}")]);
        command.arg("--token-file").arg(&token);
        command.args(["--rate", "900", "--op", "get=1", "--clients", "6", "--keys", "2000"]);
        command.args(["--duration", duration, "--timeout", "2s", "--blocks", "1", "--no-fill"]);
        command.args(["--format", "json"]);
        command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
        let driver = Started::new(command);
        wait_until("the token is there", PATIENCE, || token.exists().then_some(()));
        let mut fleet = Self { place, namespaces, server, driver, workers: Vec::new() };
        for namespace in &fleet.namespaces {
            let program = env!("CARGO_BIN_EXE_cachedyno");
            let join = format!("{}:{port}", namespace.address);
            let own = ["netns", "exec", &namespace.name, program, "worker", "--join", &join];
            let mut command = fleet.place.command_by("ip", &own);
            command.arg("--token-file").arg(&token);
            fleet.workers.push(Started::new(command));
        }
        Some(fleet)
    }
}

#[test]
fn a_worker_with_a_slow_link_is_named() {
    if !installed(&["redis-server"]) {
        return;
    }
    // Requests and misses of 300/s need about 400 kbit/s with all headers.
    let Some(fleet) = Fleet::start(3, "4s", |last| last.limit("60kbit")) else { return };
    let Fleet { place, namespaces, server, driver, workers } = fleet;
    let summary = driver.finish_within(PATIENCE).code(4).json();
    let reasons = summary["reasons"].as_array().unwrap().iter().map(|r| r.as_str().unwrap());
    let off: Vec<&str> = reasons.filter(|reason| reason.contains("of what all workers")).collect();
    let share = |one: &Value| one["share_of_plan"].as_f64().unwrap();
    let mut views: Vec<&Value> = summary["workers"].as_array().unwrap().iter().collect();
    views.sort_by(|one, other| share(one).total_cmp(&share(other)));
    assert!(share(views[0]) < 0.9 * share(views[1]), "{}", summary["workers"]);
    let name = views[0]["worker"].as_str().unwrap();
    assert!(off.iter().any(|reason| reason.contains(name)), "{summary}");
    for worker in workers {
        worker.finish_within(PATIENCE).code(0);
    }
    drop((namespaces, server));
    place.assert_nothing_left();
}

#[test]
fn a_partition_between_driver_and_worker_fails_the_trial() {
    if !installed(&["redis-server"]) {
        return;
    }
    let Some(fleet) = Fleet::start(2, "30s", |_| true) else { return };
    let Fleet { place, namespaces, server, driver, workers } = fleet;
    wait_until("the load runs", PATIENCE, || (server.calls("get") > 500).then_some(()));
    namespaces[1].cut();
    let summary = driver.finish_within(PATIENCE).code(4).json();
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("left the fleet"), "{reasons}");
    let mut workers = workers.into_iter();
    workers.next().unwrap().finish_within(PATIENCE).code(0);
    workers.next().unwrap().finish_within(PATIENCE).code(1).error(&["lost the driver at"]);
    drop((namespaces, server));
    place.assert_nothing_left();
}

#[test]
fn a_worker_without_a_route_to_the_server_is_named() {
    if !installed(&["redis-server"]) {
        return;
    }
    let Some(fleet) = Fleet::start(2, "1s", Namespace::remove_route) else { return };
    let Fleet { place, namespaces, server, driver, workers } = fleet;
    let summary = driver.finish_within(PATIENCE).code(4).json();
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("worker ") && reasons.contains("unreachable"), "{reasons}");
    for worker in workers {
        worker.finish_within(PATIENCE).code(0);
    }
    drop((namespaces, server));
    place.assert_nothing_left();
}

#[test]
fn files_and_private_servers_are_not_run_by_workers_elsewhere() {
    let namespace = geteuid().is_root().then(Namespace::new).flatten();
    let Some(namespace) = namespace else {
        skipped("network namespaces need root, ip and tc");
        return;
    };
    let (place, port) = (Place::new(), rig::free_port(0).unwrap());
    let token = place.path().join("token");
    let targets = ["--target", "files", "--target", "redis", "--set", "profile=steady"];
    let mut command = place.fast(&targets);
    command.args(["--fleet", &format!("listen:{}:{port},1", namespace.address)]);
    command.arg("--token-file").arg(&token);
    let driver = Started::new(command);
    wait_until("the token is there", PATIENCE, || token.exists().then_some(()));
    let join = format!("{}:{port}", namespace.address);
    let program = env!("CARGO_BIN_EXE_cachedyno");
    let own = ["netns", "exec", &namespace.name, program, "worker", "--join", &join];
    let mut worker = place.command_by("ip", &own);
    worker.arg("--token-file").arg(&token);
    let worker = Started::new(worker);
    let summary = driver.finish_within(PATIENCE).code(3).json();
    for target in summary["targets"].as_array().unwrap() {
        let why = target["not_run"].as_str().unwrap();
        assert!(why.contains("is on this machine only, and worker 1 on "), "{why}");
    }
    worker.finish_within(PATIENCE).code(0);
    place.assert_nothing_left();
}
