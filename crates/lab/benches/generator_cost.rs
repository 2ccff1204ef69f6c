//! Cost of the generator: CPU time per operation, compared to a bare loop.
//!
//! One client, Redis on a unix socket, sessions of the shipped study's `steady` profile. The bare
//! loop copies the key into one prepared request, writes it, and reads into a fixed buffer until
//! the reply is complete: no clock, no recording, no checks. The engine is the real one with its
//! driver, records and checks. Both run on the same CPU.
//!
//! Each block has a fresh server and measures every kind once, in random order; ratios are paired
//! by block. `cargo bench -p cachedyno-lab --bench generator_cost -- --blocks 30 --seed 7
//! --measure-ms 400` changes the defaults.

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

mod common;
mod sessions;
mod study;

use cachedyno_lab::Ready;
use cachedyno_lab::schedule;
use common::{Outcome, arguments, error, number};
use drivers::SessionOptions;
use load::watch::ThreadUse;
use load::{Engine, PhaseRecord, Settings, Unmetered};
use model::{Endpoint, NetAddress, Phase, Plan, Point, Sessions, Stop};
use stats::{Paired, geometric_mean_interval};
use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use workloads::values::{mix, name_into, pick};
use workloads::{Client, PlainClient, Share};

/// Goal: maximum CPU time of a read relative to the bare loop.
const GOAL: f64 = 1.3;
const ALPHA: f64 = 0.05;
const SESSIONS: u64 = 2_000;
/// Requests of the bare loop between two clock readings.
const BATCH: u64 = 256;

/// What is measured, in the order of the columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    BareGet,
    BareSetex,
    /// A phase of the `steady` profile, by name.
    Engine(&'static str),
}

const KINDS: [Kind; 5] = [
    Kind::BareGet,
    Kind::BareSetex,
    Kind::Engine("read"),
    Kind::Engine("write"),
    Kind::Engine("change"),
];
/// Title, and indices of numerator and denominator in [`KINDS`].
const PAIRS: [(&str, usize, usize); 3] = [("read", 2, 0), ("write", 3, 1), ("change", 4, 1)];

/// One kind in one block.
#[derive(Clone, Copy)]
struct Measured {
    cpu_ns_per_op: f64,
    rate_per_s: f64,
    run_delay_share: f64,
}

impl Measured {
    fn new(operations: u64, wall_ns: u64, used: ThreadUse) -> Self {
        let (operations, wall_ns) = (operations.max(1) as f64, wall_ns.max(1) as f64);
        Self {
            cpu_ns_per_op: used.cpu_ns as f64 / operations,
            rate_per_s: operations * 1e9 / wall_ns,
            run_delay_share: used.run_delay_ns as f64 / wall_ns,
        }
    }
}

fn main() -> Outcome {
    let arguments = arguments();
    if study::played_guard(&arguments)? {
        return Ok(());
    }
    let blocks = number(&arguments, "--blocks", 15)?;
    let seed = number(&arguments, "--seed", 1)?;
    let measure_ms = number(&arguments, "--measure-ms", 250)?;
    let sets = [
        ("profile", "steady".to_string()),
        ("sessions", SESSIONS.to_string()),
        ("warmup_ms", "50".to_string()),
        ("measure_ms", measure_ms.to_string()),
    ];
    let plan = sessions::plan(seed, &["redis"], &sets)?;
    let setup = study::setup()?;
    let mut provisioner = study::provisioner(&plan, &setup);
    let cell = &plan.cells[0];
    let workload = sessions::of(cell)?.clone();
    println!(
        "{blocks} blocks, seed {seed}, {measure_ms} ms each; {SESSIONS} sessions of {} bytes; \
         generator on CPUs {:?}, server on {:?}",
        workload.value_bytes, setup.pinning.generator, setup.pinning.server
    );
    println!("CPU ns/op: bare GET, bare SETEX, read, write, change");
    let mut columns: [Vec<Measured>; 5] = Default::default();
    for block in 0..blocks as u32 {
        let mut ready = provisioner
            .ready(&plan.targets[0], &cell.workload, &format!("{block}"))
            .map_err(error)?;
        if block == 0 {
            println!("{}", ready.version().map_err(error)?);
        }
        let cpus = provisioner.client_cpus(&ready);
        let side = Side { ready: &ready, cpus: &cpus, workload: &workload, plan: &plan, block };
        for kind in order(seed, block) {
            columns[kind].push(side.measure(KINDS[kind])?);
        }
        ready.finish(&AtomicBool::new(false)).map_err(error)?;
        let row = columns.each_ref().map(|c| c[block as usize].cpu_ns_per_op);
        println!("block {block:2}: {}", row.map(|ns| format!("{ns:7.0}")).join(" "));
    }
    summary(&columns)
}

/// Indices of [`KINDS`] in this block's order (Fisher and Yates' shuffle).
fn order(seed: u64, block: u32) -> [usize; 5] {
    let mut order = [0, 1, 2, 3, 4];
    for last in (1..order.len()).rev() {
        let draw = mix(&[seed, u64::from(block), last as u64]);
        order.swap(last, pick(draw, last as u64 + 1) as usize);
    }
    order
}

fn summary(columns: &[Vec<Measured>; 5]) -> Outcome {
    let values = |kind: usize, of: fn(&Measured) -> f64| -> Vec<f64> {
        columns[kind].iter().map(of).collect()
    };
    for (title, own, bare) in PAIRS {
        let cpu = |kind| values(kind, |m| m.cpu_ns_per_op);
        let rate = |kind| values(kind, |m| m.rate_per_s);
        let text = |values: &[f64]| -> Result<String, Box<dyn Error>> {
            let e = geometric_mean_interval(values, 1.0 - ALPHA, 1)?;
            Ok(bounds(e.center, e.lo(), e.hi(), 0))
        };
        println!("{title}:");
        println!("  CPU ns/op: engine {}, bare loop {}", text(&cpu(own))?, text(&cpu(bare))?);
        println!("  rate per s: engine {}, bare loop {}", text(&rate(own))?, text(&rate(bare))?);
        let ratio = |a: &[f64], b: &[f64]| {
            Paired { a, b }.ratio(ALPHA).map_err(|doubt| Box::<dyn Error>::from(doubt.to_string()))
        };
        let (cost, speed) = (ratio(&cpu(own), &cpu(bare))?, ratio(&rate(own), &rate(bare))?);
        println!("  CPU engine / bare: {}", bounds(cost.center, cost.lo(), cost.hi(), 3));
        println!("  rate engine / bare: {}", bounds(speed.center, speed.lo(), speed.hi(), 3));
        let waiting = |kind: usize| {
            let all = values(kind, |m| m.run_delay_share);
            all.iter().sum::<f64>() / all.len().max(1) as f64 * 100.0
        };
        println!("  waiting for the CPU: {:.1} % and {:.1} %", waiting(own), waiting(bare));
        if title == "read" {
            let verdict = match (cost.lo(), cost.hi()) {
                (_, Some(hi)) if hi <= GOAL => "reached",
                (Some(lo), _) if lo > GOAL => "not reached",
                _ => "undecided",
            };
            println!("  goal, at most {GOAL} times the bare loop's CPU: {verdict}");
        }
    }
    Ok(())
}

fn bounds(center: f64, lo: Option<f64>, hi: Option<f64>, digits: usize) -> String {
    match lo.zip(hi) {
        Some((lo, hi)) => format!("{center:.digits$} [{lo:.digits$}, {hi:.digits$}]"),
        None => format!("{center:.digits$}"),
    }
}

/// Server of a block, and parameters of engine and bare loop.
struct Side<'a> {
    ready: &'a Ready,
    cpus: &'a [usize],
    workload: &'a Sessions,
    plan: &'a Plan,
    block: u32,
}

impl Side<'_> {
    fn share(&self) -> Share {
        let seed = schedule::data_seed(self.plan, self.block);
        Share { seed, client: 0, clients: 1, prefix: String::new() }
    }

    fn client(&self, workload: &Sessions) -> Result<PlainClient, Box<dyn Error>> {
        let options: &SessionOptions = self.ready.options();
        let store = drivers::open_session_store(self.ready.endpoint(), options).map_err(error)?;
        Ok(PlainClient::new(store, workload.clone(), self.share()))
    }

    fn measure(&self, kind: Kind) -> Result<Measured, Box<dyn Error>> {
        match kind {
            Kind::Engine(phase) => self.engine(phase),
            bare => {
                // The engine fills too, so both read the same sessions in their first version.
                let mut client = self.client(self.workload)?;
                while client.fill_next()? {}
                drop(client);
                let bare = Bare::new(self, bare == Kind::BareSetex)?;
                let measured = thread::scope(|scope| {
                    let handle = scope.spawn(|| bare.run().map_err(|e| e.to_string()));
                    handle.join().map_err(|_| "the bare loop panicked".to_string())
                });
                Ok(measured??)
            }
        }
    }

    fn engine(&self, phase: &str) -> Result<Measured, Box<dyn Error>> {
        let mut workload = self.workload.clone();
        workload.phases.retain(|p| p.name == phase);
        let stop = AtomicBool::new(false);
        let client = Box::new(self.client(&workload)?);
        let engine = Engine {
            phases: &workload.phases,
            planned: None,
            settings: Settings {
                generation: workload.generation,
                cpus: self.cpus,
                timeout_ns: 0,
                stall_ns: 0,
                stop: &stop,
            },
        };
        let finished = engine.run(vec![client], &mut Unmetered, &mut |_| {});
        if let Some(failure) = finished.failure {
            return Err(error(failure));
        }
        let [PhaseRecord { points, .. }] = &finished.phases[..] else {
            return Err(format!("phase `{phase}` has no result").into());
        };
        engine_cost(&points[0])
    }
}

fn engine_cost(result: &Point) -> Result<Measured, Box<dyn Error>> {
    let Some(all) = result.operations.last() else {
        return Err(format!("phase `{}` has no operations", result.phase).into());
    };
    if all.counts.ok != all.counts.total() {
        return Err(format!("phase `{}` has errors: {:?}", result.phase, all.counts).into());
    }
    let (cpu_ns, run_delay_ns) = (result.generator_cpu_ns, result.generator_run_delay_ns);
    Ok(Measured::new(
        all.counts.ok,
        result.length_ns,
        ThreadUse { cpu_ns, run_delay_ns, ..ThreadUse::default() },
    ))
}

/// The bare loop: its request with a placeholder for the key, and the keys in order of use.
struct Bare<'a> {
    socket: &'a Path,
    timeout: Duration,
    cpus: &'a [usize],
    phase: &'a Phase,
    request: Vec<u8>,
    key_at: usize,
    keys: Vec<String>,
    reply_bytes: usize,
}

impl<'a> Bare<'a> {
    fn new(side: &'a Side<'a>, write: bool) -> Result<Self, Box<dyn Error>> {
        let Endpoint::Redis { address: NetAddress::Unix(socket), .. } = side.ready.endpoint()
        else {
            return Err("the server has no unix socket".into());
        };
        let share = side.share();
        let mut keys = Vec::with_capacity(SESSIONS as usize);
        for visit in 0..SESSIONS {
            let slot = pick(mix(&[share.seed, visit, u64::MAX]), SESSIONS);
            let mut key = String::new();
            name_into(&mut key, side.workload.names, &share, slot);
            keys.push(key);
        }
        let value_bytes = side.workload.value_bytes;
        let ttl = side.workload.ttl_s.to_string();
        let head = if write { "*4\r\n$5\r\nSETEX\r\n" } else { "*2\r\n$3\r\nGET\r\n" };
        let key = &keys[0];
        let mut request = format!("{head}${}\r\n", key.len()).into_bytes();
        let key_at = request.len();
        request.extend_from_slice(format!("{key}\r\n").as_bytes());
        let reply_bytes = if write {
            let rest = format!("${}\r\n{ttl}\r\n${value_bytes}\r\n", ttl.len());
            request.extend_from_slice(rest.as_bytes());
            request.resize(request.len() + value_bytes, b'v');
            request.extend_from_slice(b"\r\n");
            "+OK\r\n".len()
        } else {
            format!("${value_bytes}\r\n").len() + value_bytes + "\r\n".len()
        };
        Ok(Self {
            socket,
            timeout: side.ready.options().timeout,
            cpus: side.cpus,
            phase: &side.workload.phases[0],
            request,
            key_at,
            keys,
            reply_bytes,
        })
    }

    fn run(mut self) -> Result<Measured, Box<dyn Error>> {
        let Stop::AfterNs(measure_ns) = self.phase.stop else {
            return Err("the phase has no duration".into());
        };
        rig::pin_current_thread(self.cpus)?;
        let mut socket = UnixStream::connect(self.socket)?;
        // The driver's sockets have timeouts too, so both make the same system calls.
        socket.set_read_timeout(Some(self.timeout))?;
        socket.set_write_timeout(Some(self.timeout))?;
        self.exchange(&mut socket, Duration::from_nanos(self.phase.warmup_ns))?;
        let (before, start) = (ThreadUse::now(), Instant::now());
        let operations = self.exchange(&mut socket, Duration::from_nanos(measure_ns))?;
        let wall_ns = start.elapsed().as_nanos() as u64;
        Ok(Measured::new(operations, wall_ns, ThreadUse::now().since(before)))
    }

    /// Exchanges requests and replies for at least this long; returns their number.
    fn exchange(&mut self, socket: &mut UnixStream, least: Duration) -> std::io::Result<u64> {
        let mut buffer = [0; 16 << 10];
        let (start, mut operations) = (Instant::now(), 0);
        let key = self.key_at..self.key_at + self.keys[0].len();
        while start.elapsed() < least {
            for _ in 0..BATCH {
                let visit = &self.keys[(operations % SESSIONS) as usize];
                self.request[key.clone()].copy_from_slice(visit.as_bytes());
                socket.write_all(&self.request)?;
                let mut received = 0;
                while received < self.reply_bytes {
                    match socket.read(&mut buffer[received..])? {
                        0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                        n => received += n,
                    }
                }
                operations += 1;
            }
        }
        Ok(operations)
    }
}
