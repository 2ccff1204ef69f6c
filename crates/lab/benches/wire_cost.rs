//! Cost of the wire engine: CPU time per request compared to redis-benchmark and to a bare loop,
//! with the same keys, sizes, connections and pipeline on the same server.
//!
//! One redis-server on the second CPU over TCP, a unix socket and TLS; the generators on the first,
//! one thread each. The bare loop is that of `calibrate` and does not speak TLS. The engine times
//! every request, checks the length of every value and the content of one in 64. redis-benchmark
//! times batches and checks nothing.
//!
//! Each block measures every kind once in every cell, in random order; ratios are paired by block.
//! `cargo bench -p cachedyno-lab --bench wire_cost -- --blocks 5 --seed 7 --scale 100` changes the
//! defaults (scale: percent of the requests of a measurement).

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

mod common;
mod plain;

use cachedyno_lab::calibrate::bare::{Bare, Batch};
use common::{Outcome, arguments, number};
use drivers::tls;
use load::wire::{Address, Pacing, ThinkTime, Tls, Until};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use plain::Plain;
use stats::{Paired, geometric_mean_interval};
use std::error::Error;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use workloads::kv::Distribution;
use workloads::values::{mix, pick};

const ALPHA: f64 = 0.05;
const CONNECTIONS: u32 = 50;
const KEYS: u64 = 100_000;
/// CPU of the generators and of the server.
const CPUS: (usize, usize) = (0, 1);
/// Pipeline depths, and requests per measurement.
const PIPELINES: [(u32, u64); 3] = [(1, 100_000), (16, 600_000), (50, 1_000_000)];
/// Goals: CPU time relative to redis-benchmark, by pipeline depth.
const GOALS: [f64; 3] = [0.6, 0.5, 0.5];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Engine,
    Peer,
    Bare,
}

const KINDS: [Kind; 3] = [Kind::Engine, Kind::Peer, Kind::Bare];

#[derive(Clone, Copy)]
struct Cell {
    operation: &'static str,
    bytes: usize,
    pipeline: u32,
    requests: u64,
    link: Link,
}

/// Transport to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Tcp,
    Unix,
    Tls,
}

impl Link {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Unix => "unix",
            Self::Tls => "TLS",
        }
    }
}

#[derive(Clone, Copy)]
struct Measured {
    cpu_us: f64,
    user_us: f64,
    rate_per_s: f64,
}

fn main() -> Outcome {
    let arguments = arguments();
    let blocks = number(&arguments, "--blocks", 3)?;
    let seed = number(&arguments, "--seed", 1)?;
    let scale = number(&arguments, "--scale", 100)?;
    if thread::available_parallelism()?.get() < 2 {
        println!("skipped: generator and server need a CPU each");
        return Ok(());
    }
    let server = Server::start()?;
    println!(
        "{blocks} blocks, seed {seed}, {CONNECTIONS} connections, {KEYS} keys; generators on CPU \
         {}, server on {}\n",
        CPUS.0, CPUS.1
    );
    println!(
        "| | engine µs (user) | redis-benchmark | bare loop | CPU / r.-b. | CPU / bare | rate / r.-b. |"
    );
    println!("|---|---|---|---|---|---|---|");
    for link in [Link::Tcp, Link::Unix, Link::Tls] {
        for (operation, bytes) in [("get", 1024), ("set", 1024), ("get", 3), ("set", 3)] {
            for (pipeline, requests) in PIPELINES {
                let requests = (requests * scale / 100).max(1_000);
                let cell = Cell { operation, bytes, pipeline, requests, link };
                server.fill(cell)?;
                println!("{}", row(&server, cell, blocks as u32, seed)?);
            }
        }
    }
    println!(
        "\ngoals: CPU / r.-b. at most {GOALS:?} for GET of 1024 bytes by pipeline, CPU / bare \
              at most 1.15, user time at most 0.15 µs at pipeline 50, rate / r.-b. at least 1"
    );
    Ok(())
}

/// Measures a cell in every block and formats its line.
fn row(server: &Server, cell: Cell, blocks: u32, seed: u64) -> Result<String, Box<dyn Error>> {
    let mut columns: [Vec<Measured>; 3] = Default::default();
    for block in 0..blocks {
        for kind in order(seed, block) {
            match KINDS[kind] {
                Kind::Engine => columns[kind].push(server.engine(cell, seed)?),
                Kind::Peer => columns[kind].push(server.peer(cell)?),
                Kind::Bare => columns[kind].extend(server.bare(cell)?),
            }
        }
    }
    let values = |kind: usize, of: fn(&Measured) -> f64| -> Vec<f64> {
        columns[kind].iter().map(of).collect()
    };
    let center = |values: &[f64]| -> Result<f64, Box<dyn Error>> {
        Ok(geometric_mean_interval(values, 1.0 - ALPHA, 1)?.center)
    };
    let ratio = |a: &[f64], b: &[f64]| -> Result<String, Box<dyn Error>> {
        let e = Paired { a, b }.ratio(ALPHA).map_err(|doubt| doubt.to_string())?;
        Ok(match e.lo().zip(e.hi()) {
            Some((lo, hi)) => format!("{:.2} [{lo:.2}, {hi:.2}]", e.center),
            None => format!("{:.2}", e.center),
        })
    };
    let cpu: [Vec<f64>; 3] = [0, 1, 2].map(|kind| values(kind, |m| m.cpu_us));
    let rates = [0, 1].map(|kind| values(kind, |m| m.rate_per_s));
    let has_bare = !cpu[2].is_empty();
    Ok(format!(
        "| {} {} B, P {}, {} | {:.3} ({:.3}) | {:.3} | {} | {} | {} | {} |",
        cell.operation.to_uppercase(),
        cell.bytes,
        cell.pipeline,
        cell.link.name(),
        center(&cpu[0])?,
        center(&values(0, |m| m.user_us))?,
        center(&cpu[1])?,
        if has_bare { format!("{:.3}", center(&cpu[2])?) } else { "–".into() },
        ratio(&cpu[0], &cpu[1])?,
        if has_bare { ratio(&cpu[0], &cpu[2])? } else { "–".into() },
        ratio(&rates[0], &rates[1])?,
    ))
}

/// Indices of [`KINDS`] in this block's order (Fisher and Yates' shuffle).
fn order(seed: u64, block: u32) -> [usize; 3] {
    let mut order = [0, 1, 2];
    for last in (1..order.len()).rev() {
        let draw = mix(&[seed, u64::from(block), last as u64]);
        order.swap(last, pick(draw, last as u64 + 1) as usize);
    }
    order
}

/// A private redis-server; stopped on drop.
struct Server {
    child: Child,
    directory: TempDir,
    port: u16,
    tls_port: u16,
}

impl Server {
    fn start() -> Result<Self, Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let free =
            || Ok::<_, std::io::Error>(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let (port, tls_port) = (free()?, free()?);
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "key"])
            .args(["-out", "cert", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=IP:127.0.0.1"])
            .current_dir(directory.path())
            .output()?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into());
        }
        let certificate = directory.path().join("cert");
        let child = Command::new("taskset")
            .args(["-c", &CPUS.1.to_string(), "redis-server", "--save", "", "--port"])
            .arg(port.to_string())
            .arg("--unixsocket")
            .arg(directory.path().join("s"))
            .args(["--tls-port", &tls_port.to_string(), "--tls-auth-clients", "no"])
            .arg("--tls-cert-file")
            .arg(&certificate)
            .arg("--tls-ca-cert-file")
            .arg(&certificate)
            .arg("--tls-key-file")
            .arg(directory.path().join("key"))
            .stdout(Stdio::null())
            .spawn()?;
        let server = Self { child, directory, port, tls_port };
        let until = Instant::now() + Duration::from_secs(10);
        while UnixStream::connect(server.socket()).is_err() {
            if Instant::now() > until {
                return Err("redis-server did not start".into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    fn certificate(&self) -> PathBuf {
        self.directory.path().join("cert")
    }

    fn address(&self, link: Link) -> Address {
        let local = |port| Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port)));
        match link {
            Link::Unix => Address::Unix(self.socket()),
            Link::Tcp => local(self.port),
            Link::Tls => local(self.tls_port),
        }
    }

    fn tls(&self, link: Link) -> Result<Option<Tls>, Box<dyn Error>> {
        if link != Link::Tls {
            return Ok(None);
        }
        let options = tls::Options { ca_file: Some(self.certificate()), ..Default::default() };
        Ok(Some(tls::client(&options, "127.0.0.1")?))
    }

    /// Writes every key, so that reads hit.
    fn fill(&self, cell: Cell) -> Outcome {
        let fill =
            Cell { operation: "set", pipeline: 16, requests: KEYS, link: Link::Unix, ..cell };
        self.load(fill, Distribution::Sequential, 1).map(|_| ())
    }

    fn engine(&self, cell: Cell, seed: u64) -> Result<Measured, Box<dyn Error>> {
        self.load(cell, Distribution::Uniform, seed)
    }

    fn load(&self, cell: Cell, keys: Distribution, seed: u64) -> Result<Measured, Box<dyn Error>> {
        let plain = Plain {
            operation: cell.operation,
            bytes: cell.bytes,
            keys: (keys, KEYS),
            seed,
            clients: CONNECTIONS,
            pipeline: cell.pipeline,
            pacing: Pacing::Closed { think: ThinkTime::default(), stages: Vec::new() },
            until: Until::Requests(cell.requests),
            cpu: CPUS.0,
            spin: false,
        };
        let done = plain.offer(self.address(cell.link), self.tls(cell.link)?)?;
        let counts = done.recorder.whole().counts().clone();
        if counts.ok != cell.requests {
            return Err(format!("{counts:?} of {} requests", cell.requests).into());
        }
        let each = cell.requests as f64;
        Ok(Measured {
            cpu_us: done.generator_cpu_ns as f64 / 1e3 / each,
            user_us: done.generator_user_ns.max(1) as f64 / 1e3 / each,
            rate_per_s: each / (done.wall_ns as f64 / 1e9),
        })
    }

    /// Runs redis-benchmark with the same parameters; the rate is the one it prints.
    fn peer(&self, cell: Cell) -> Result<Measured, Box<dyn Error>> {
        let used = || -> Result<[f64; 2], Box<dyn Error>> {
            let all = getrusage(UsageWho::RUSAGE_CHILDREN)?;
            Ok([all.user_time(), all.system_time()].map(|t| t.num_microseconds() as f64))
        };
        let before = used()?;
        let mut command = Command::new("taskset");
        command.args(["-c", &CPUS.0.to_string(), "redis-benchmark", "--csv"]);
        command.args(["-t", cell.operation, "-d", &cell.bytes.to_string()]);
        command.args(["-n", &cell.requests.to_string(), "-r", &KEYS.to_string()]);
        command.args(["-c", &CONNECTIONS.to_string(), "-P", &cell.pipeline.to_string()]);
        match cell.link {
            Link::Unix => command.arg("-s").arg(self.socket()),
            Link::Tcp => command.args(["-p", &self.port.to_string()]),
            Link::Tls => command
                .args(["-p", &self.tls_port.to_string(), "--tls", "--cacert"])
                .arg(self.certificate()),
        };
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let rate =
            text.lines().last().and_then(|l| l.split(',').nth(1)?.trim_matches('"').parse().ok());
        let after = used()?;
        let each = cell.requests as f64;
        Ok(Measured {
            cpu_us: (after[0] + after[1] - before[0] - before[1]) / each,
            user_us: (after[0] - before[0]) / each,
            rate_per_s: rate.ok_or_else(|| format!("redis-benchmark printed `{text}`"))?,
        })
    }

    /// Runs the bare loop; `None` for TLS.
    fn bare(&self, cell: Cell) -> Result<Option<Measured>, Box<dyn Error>> {
        if cell.link == Link::Tls {
            return Ok(None);
        }
        let bare = Bare {
            address: self.address(cell.link),
            connections: CONNECTIONS,
            batch: Batch::redis(cell.operation, cell.bytes, cell.pipeline),
            batches: cell.requests / u64::from(cell.pipeline),
            cpus: vec![CPUS.0],
        };
        let spent = bare.run()?;
        let each = (spent.batches * u64::from(cell.pipeline)) as f64;
        Ok(Some(Measured {
            cpu_us: spent.used.cpu_ns as f64 / 1e3 / each,
            user_us: spent.used.user_ns as f64 / 1e3 / each,
            rate_per_s: each / spent.wall.as_secs_f64(),
        }))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}
