//! Limits of a tier on a real Redis: CPU time and bandwidth. Skipped where the right is missing.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic and print like tests"
)]

#[expect(dead_code, reason = "shared with tests of other kinds")]
mod common;
mod starting;

use cachedyno_rig::{
    CpuGroup, Guard, Network, Purpose, RigError, SearchPath, Server, ServerSpec, cpu_throttled_ns,
};
use common::{eventually, guard, role, runs};
use model::{Endpoint, ErrorClass, Fact, NetAddress, Product};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use starting::start;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Megabits per second, and bytes that take two seconds at that.
const MBIT: f64 = 8.0;
const BYTES: usize = 2_000_000;

/// The limit, or `None` with a printed reason where it is not possible.
fn possible<T>(limit: Result<T, RigError>) -> Option<T> {
    match limit {
        Ok(limit) => Some(limit),
        Err(e) => {
            assert_eq!(e.class(), ErrorClass::Missing, "{e}");
            assert!(e.to_string().contains("(expected ") || e.to_string().contains("(apt-get "));
            println!("skipped: {e}");
            None
        }
    }
}

fn has_redis() -> bool {
    let is_there = SearchPath::of_process().find(&["redis-server"]).is_some();
    if !is_there {
        println!("skipped: redis-server is not installed");
    }
    is_there
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect()
}

fn fact(group: &CpuGroup, name: &str) -> f64 {
    group.usage().into_iter().find(|fact| fact.name == name).unwrap().value
}

#[test]
fn a_server_gets_the_cpu_time_of_its_quota_and_no_more() {
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let Some(group) = possible(CpuGroup::new(&guard, 0.2, None)).filter(|_| has_redis()) else {
        return;
    };
    let path = group.path().unwrap().to_path_buf();
    let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
    let limits = [read("cpu.cfs_quota_us"), read("cpu.max")].map(|text| text.trim().to_string());
    assert!(limits.contains(&"20000".into()) || limits.contains(&"20000 100000".into()));
    let spec = ServerSpec {
        other_groups: vec![path.clone()],
        settings: settings(&[("save", "")]),
        ..ServerSpec::new(base.path())
    };
    let server = start(Product::Redis, &guard, &spec).unwrap();
    assert!(read("cgroup.procs").lines().any(|pid| pid.parse() == Ok(server.pid())));
    let Endpoint::Redis { address: NetAddress::Unix(socket), .. } = server.endpoint() else {
        panic!("{:?}", server.endpoint())
    };
    let mut stream = UnixStream::connect(socket).unwrap();
    let used = || cachedyno_rig::process_cpu_ns(server.pid()).unwrap();
    let (begun, before) = (Instant::now(), used());
    stream.write_all(b"EVAL \"for i=1,50000000 do end return 1\" 0\r\n").unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    // A period at either end can have its whole quota.
    let most = begun.elapsed().mul_f64(0.2) + Duration::from_millis(40);
    let used = Duration::from_nanos(used() - before);
    assert!(used <= most, "{used:?} of at most {most:?}");
    let throttled = fact(&group, Fact::CPU_PERIODS_THROTTLED);
    assert!(throttled >= 1.0 && throttled <= fact(&group, Fact::CPU_PERIODS));
    assert!(cpu_throttled_ns(group.stat_path()).unwrap() > 0);
    server.stop().unwrap();
    group.remove().unwrap();
    assert!(!path.exists());
}

/// A Redis in its own network, its endpoint's address and its password.
fn networked(guard: &Guard, base: &Path) -> Option<(Server, Arc<Network>, String, String)> {
    let network =
        possible(Network::new(Purpose::Bandwidth, Some(MBIT), &SearchPath::of_process()))?;
    let network = Arc::new(network);
    let spec = ServerSpec {
        network: Some(Arc::clone(&network)),
        settings: settings(&[("save", ""), ("listen", "tcp")]),
        ..ServerSpec::new(base)
    };
    let server = start(Product::Redis, guard, &spec).unwrap();
    let endpoint = server.endpoint().clone();
    let password = endpoint.password().unwrap().reveal().to_string();
    let NetAddress::Tcp(host, port) = &endpoint.addresses()[0] else { panic!("{endpoint:?}") };
    let address = format!("{host}:{port}");
    Some((server, network, address, password))
}

fn exists(interface: &str) -> bool {
    Path::new("/sys/class/net").join(interface).exists()
}

#[test]
fn traffic_waits_in_both_directions_and_the_network_is_removed() {
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    if !has_redis() {
        return;
    }
    let Some((server, network, address, password)) = networked(&guard, base.path()) else { return };
    let interface = network.interface().to_string();
    assert!(exists(&interface));
    let mut stream = TcpStream::connect(&address).unwrap();
    let value = vec![b'x'; BYTES];
    let request = format!("AUTH {password}\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${BYTES}\r\n");
    // A limit can only delay: the bucket lets 64 KiB through at once.
    let least = Duration::from_secs_f64((BYTES - 200_000) as f64 * 8.0 / (MBIT * 1e6));
    let begun = Instant::now();
    stream.write_all(&[request.as_bytes(), &value, b"\r\n"].concat()).unwrap();
    let mut answers = [0; 10];
    stream.read_exact(&mut answers).unwrap();
    assert_eq!(&answers, b"+OK\r\n+OK\r\n");
    assert!(begun.elapsed() >= least, "{:?} to the server", begun.elapsed());
    let begun = Instant::now();
    stream.write_all(b"GET k\r\n").unwrap();
    let mut answer = vec![0; format!("${BYTES}\r\n").len() + BYTES + 2];
    stream.read_exact(&mut answer).unwrap();
    assert!(begun.elapsed() >= least, "{:?} from the server", begun.elapsed());
    server.stop().unwrap();
    drop(network);
    assert!(!exists(&interface));
}

/// Starts a server in a network, prints its id, the guard's and the interface, and waits to be
/// killed.
#[test]
#[ignore = "a role that other tests start as a separate process"]
fn role_networked() {
    let guard = guard();
    let base = std::env::temp_dir();
    let mut out = std::io::stdout();
    let Some((server, network, ..)) = networked(&guard, &base) else {
        writeln!(out, "owned nothing").unwrap();
        return;
    };
    let (pid, guard, interface) = (server.pid(), guard.pid(), network.interface());
    writeln!(out, "owned {pid} {guard} {interface}").unwrap();
    out.flush().unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_network_ends_with_its_owner_even_if_the_guard_is_killed_too() {
    if !has_redis() {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let mut command = role("role_networked");
    let mut owner = command.env("TMPDIR", base.path()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|line| line.contains("owned ")).unwrap();
    let words: Vec<&str> = line.split_once("owned ").unwrap().1.split(' ').collect();
    let [server, guard, interface] = words[..] else {
        println!("skipped: no network is possible here");
        owner.wait().unwrap();
        return;
    };
    assert!(exists(interface));
    let (server, guard): (u32, u32) = (server.parse().unwrap(), guard.parse().unwrap());
    let both = [guard, owner.id()].map(|pid| Pid::from_raw(pid.cast_signed()));
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for pid in both {
            kill(pid, signal).unwrap();
        }
    }
    owner.wait().unwrap();
    eventually("the server ends with its owner", || !runs(server));
    eventually("the kernel removes the network", || !exists(interface));
}
