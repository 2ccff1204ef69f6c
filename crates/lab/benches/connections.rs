//! Cost of ten thousand connections in the wire engine compared to fifty: CPU time per request, and
//! memory per connection without its socket.
//!
//! The null server runs in a separate process on the second CPU, on a unix socket. Each measurement
//! is a new process on the first CPU, so that no memory of an earlier one remains. Memory is the
//! peak resident set of the process, which excludes sockets; its growth from fifty to ten thousand
//! connections is divided by their difference.
//!
//! Each block measures both numbers of connections in random order; ratios are paired by block.
//! `cargo bench -p cachedyno-lab --bench connections -- --blocks 5 --seed 7 --requests 1000000`
//! changes the defaults.

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

mod common;
mod plain;

use common::{Outcome, arguments, number};
use load::wire::{Address, Pacing, ThinkTime, Until};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use plain::Plain;
use rig::reference::{Listen, NullServer, NullSettings};
use stats::{Paired, geometric_mean_interval};
use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use workloads::kv::Distribution;
use workloads::values::mix;

const ALPHA: f64 = 0.05;
const FEW: u32 = 50;
const MANY: u32 = 10_000;
/// Open files of a process besides its connections.
const BESIDES: u64 = 100;
/// Value size, bytes.
const BYTES: usize = 100;
/// CPU of the generator and of the server.
const CPUS: (usize, usize) = (0, 1);
/// Goal: maximum memory per connection without its socket, bytes.
const GOAL_BYTES: f64 = 8192.0;

#[derive(Clone, Copy, Debug)]
struct Measured {
    cpu_ns: f64,
    resident_bytes: f64,
}

fn main() -> Outcome {
    let arguments = arguments();
    let allowed = allow_files()?;
    let at = |name: &str| arguments.iter().position(|a| a == name).map(|i| &arguments[i + 1..]);
    if let Some([socket]) = at("--serve") {
        return serve(Path::new(socket));
    }
    if let Some([socket, clients, requests, seed]) = at("--offer") {
        let (clients, seed) = (clients.parse()?, seed.parse()?);
        return offer(Path::new(socket), clients, requests.parse()?, seed);
    }
    let blocks = number(&arguments, "--blocks", 3)?;
    let seed = number(&arguments, "--seed", 1)?;
    let requests = number(&arguments, "--requests", 300_000)?;
    if thread::available_parallelism()?.get() < 2 {
        println!("skipped: generator and server need a CPU each");
        return Ok(());
    }
    let needed = u64::from(MANY) + BESIDES;
    if allowed < needed {
        println!("skipped: {MANY} connections need {needed} open files, {allowed} are allowed");
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("null.sock");
    let server = Server(itself()?.arg("--serve").arg(&socket).stdin(Stdio::piped()).spawn()?);
    let until = Instant::now() + Duration::from_secs(10);
    while !socket.exists() {
        if Instant::now() > until {
            return Err("the null server did not start".into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    let result = compare(&socket, (blocks, seed), requests);
    drop(server);
    println!("{}", result?);
    Ok(())
}

fn compare(
    socket: &Path,
    (blocks, seed): (u64, u64),
    requests: u64,
) -> Result<String, Box<dyn Error>> {
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for block in 0..blocks {
        let first_few = mix(&[seed, block]).is_multiple_of(2);
        for is_few in [first_few, !first_few] {
            let clients = if is_few { FEW } else { MANY };
            let measured = measure(socket, clients, requests, seed + block)?;
            if is_few { few.push(measured) } else { many.push(measured) }
        }
    }
    let cpu = |all: &[Measured]| all.iter().map(|m| m.cpu_ns).collect::<Vec<f64>>();
    let (a, b) = (cpu(&many), cpu(&few));
    let center = |values: &[f64]| -> Result<f64, Box<dyn Error>> {
        Ok(geometric_mean_interval(values, 1.0 - ALPHA, 1)?.center)
    };
    let ratio = Paired { a: &a, b: &b }.ratio(ALPHA).map_err(|doubt| doubt.to_string())?;
    let bounds =
        ratio.lo().zip(ratio.hi()).map_or(String::new(), |(lo, hi)| format!(" [{lo:.2}, {hi:.2}]"));
    let resident =
        |all: &[Measured]| center(&all.iter().map(|m| m.resident_bytes).collect::<Vec<_>>());
    let (small, large) = (resident(&few)?, resident(&many)?);
    let each = (large - small) / f64::from(MANY - FEW);
    Ok(format!(
        "{blocks} blocks of {requests} requests, GET of {BYTES} bytes, pipeline 1, unix socket\n\
         CPU per request: {:.2} µs with {FEW} connections, {:.2} µs with {MANY}: \
         ratio {:.2}{bounds}\n\
         memory: {:.1} MiB with {FEW} connections, {:.1} MiB with {MANY}: {each:.0} bytes a \
         connection, {:.2} of the {GOAL_BYTES} allowed",
        center(&b)? / 1e3,
        center(&a)? / 1e3,
        ratio.center,
        small / f64::from(1 << 20),
        large / f64::from(1 << 20),
        each / GOAL_BYTES,
    ))
}

/// Raises the limit of open files to this user's maximum and returns it.
fn allow_files() -> Result<u64, Box<dyn Error>> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(most)
}

fn itself() -> Result<Command, Box<dyn Error>> {
    Ok(Command::new(std::env::current_exe()?))
}

/// A null server in a separate process; stopped on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It stops at the end of its input, unless it has already exited.
        drop(self.0.stdin.take());
        let _ended = self.0.wait();
    }
}

/// Serves until standard input ends.
fn serve(socket: &Path) -> Outcome {
    let settings = NullSettings {
        listen: Listen::Unix(socket.to_path_buf()),
        cpus: vec![CPUS.1],
        value_bytes: BYTES,
        ..NullSettings::default()
    };
    let _server = NullServer::start(&settings)?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Runs one measurement in a new process.
fn measure(
    socket: &Path,
    clients: u32,
    requests: u64,
    seed: u64,
) -> Result<Measured, Box<dyn Error>> {
    let numbers = [u64::from(clients), requests, seed].map(|n| n.to_string());
    let output = itself()?.arg("--offer").arg(socket).args(numbers).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut figures = text.split_whitespace().map(str::parse::<f64>);
    if let (Some(Ok(cpu_ns)), Some(Ok(resident_bytes))) = (figures.next(), figures.next()) {
        return Ok(Measured { cpu_ns, resident_bytes });
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("{clients} connections: {said}{text}").into())
}

/// Runs the load, and prints CPU nanoseconds per request and the peak resident set in bytes.
fn offer(socket: &Path, clients: u32, requests: u64, seed: u64) -> Outcome {
    let plain = Plain {
        operation: "get",
        bytes: BYTES,
        keys: (Distribution::Uniform, 100_000),
        seed,
        clients,
        pipeline: 1,
        pacing: Pacing::Closed { think: ThinkTime::default(), stages: Vec::new() },
        until: Until::Requests(requests),
        cpu: CPUS.0,
        spin: false,
    };
    let done = plain.offer(Address::Unix(socket.to_path_buf()), None)?;
    println!("{} {}", done.generator_cpu_ns as f64 / requests as f64, resident_bytes()?);
    Ok(())
}

/// Peak resident set of this process, bytes (`VmHWM` of proc(5), in KiB).
fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? << 10)
}
