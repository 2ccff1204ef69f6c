//! The generator's CPU cost of an application cache: a load, a clean, and the fill before both.
//!
//! `Cm_Cache_Backend_Redis` of 2019 through Magento's layer, Redis on a unix socket, records of the
//! shipped study.
//!
//! - A load: one client of the engine, against a bare loop that writes the same prepared request
//!   and reads into a fixed buffer until the reply is complete.
//! - A clean of a tag with 744 records: CPU time of the client's thread and of the server.
//! - A fill by four clients: records per wall time, and per CPU time of the server.
//!
//! Each block has fresh servers and measures every kind once, in random order; ratios are paired by
//! block. `cargo bench -p cachedyno-lab --bench cache_cost -- --blocks 8 --seed 7 --measure-ms 250
//! --keys 200000` changes the defaults.

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

mod common;
mod study;

use cachedyno_lab::{Ready, TargetProvisioner, schedule};
use common::{Outcome, arguments, error, number};
use drivers::CacheOptions;
use load::watch::ThreadUse;
use load::{Engine, Finished, Settings, Unmetered};
use model::{AppCache, Backend, Endpoint, Fill, Generation, NetAddress, Phase, Stop, Workload};
use nix::time::{ClockId, clock_gettime};
use stats::{Estimate, Paired, geometric_mean_interval};
use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use workloads::app_cache::magento::{Magento, prefix_of};
use workloads::app_cache::{AppCacheClient, DataSet, Ledger, Record, TaggedCache};
use workloads::values::{mix, pick};
use workloads::{Client, Share};

/// Goal: maximum CPU time and wall time of a load relative to the bare loop.
const LOAD_GOAL: f64 = 1.3;
/// Goal: maximum CPU time of a clean relative to the server's.
const CLEAN_GOAL: f64 = 0.1;
/// Goal: minimum fill rate, records per second.
const FILL_GOAL: f64 = 100_000.0;
const ALPHA: f64 = 0.05;
/// Records that loads choose from.
const LOADED: u64 = 20_000;
/// Prepared requests of the bare loop.
const VISITS: u64 = 4_096;
/// Requests of the bare loop between two clock readings.
const BATCH: u64 = 256;
/// Records with the cleaned tag, and cleans per block.
const CARRIERS: u64 = 744;
const CLEANS: u64 = 20;
/// Clients that fill, as in the study.
const FILLING: u32 = 4;
/// The slow fill has this many times fewer records.
const FEWER: u64 = 8;

/// What is measured, in the order of [`Blocks`].
const KINDS: usize = 5;

/// One kind in one block.
#[derive(Clone, Copy)]
struct Measured {
    /// Loads, cleans or records.
    count: f64,
    wall_ns: f64,
    client_cpu_ns: f64,
    /// 0 if not measured.
    server_cpu_ns: f64,
}

/// Values of each kind by block: bare loop, load, clean, fast fill, fill by saves.
type Blocks = [Vec<Measured>; KINDS];

fn main() -> Outcome {
    let arguments = arguments();
    if study::played_guard(&arguments)? {
        return Ok(());
    }
    let blocks = number(&arguments, "--blocks", 6)?;
    let seed = number(&arguments, "--seed", 1)?;
    let measure_ms = number(&arguments, "--measure-ms", 250)?;
    let keys = number(&arguments, "--keys", 200_000)?;
    let text = include_str!("../../../studies/app-cache.toml");
    let sets = [("warmup_ms", "50".into()), ("measure_ms", measure_ms.to_string())];
    let plan = study::plan(("app-cache", text), seed, &["cm-redis"], &sets)?;
    let setup = study::setup()?;
    let mut provisioner = study::provisioner(&plan, &setup);
    println!(
        "{blocks} blocks, seed {seed}, {measure_ms} ms each; {LOADED} records to load, {CARRIERS} to \
         clean {CLEANS} times, {keys} to fill; generator on CPUs {:?}, server on {:?}",
        setup.pinning.generator, setup.pinning.server
    );
    println!("load CPU ns: bare loop, engine; clean µs: client, server; records/s: fast, saves");
    let mut all: Blocks = Default::default();
    for block in 0..blocks as u32 {
        for kind in order(seed, block) {
            let (mut side, ready) = side(&mut provisioner, seed, (block, kind))?;
            all[kind].push(side.measure(kind, keys)?);
            ready.finish(&AtomicBool::new(false)).map_err(error)?;
        }
        let of = |kind: usize| all[kind][block as usize];
        let cpu = |kind| of(kind).client_cpu_ns / of(kind).count;
        let rate = |kind| of(kind).count * 1e9 / of(kind).wall_ns;
        println!(
            "block {block:2}: {:6.0} {:6.0}; {:5.0} {:5.0}; {:7.0} {:7.0}",
            cpu(0),
            cpu(1),
            cpu(2) / 1e3,
            of(2).server_cpu_ns / of(2).count / 1e3,
            rate(3),
            rate(4)
        );
    }
    summary(&all)
}

/// The kinds in this block's order (Fisher and Yates' shuffle).
fn order(seed: u64, block: u32) -> [usize; KINDS] {
    let mut order = [0, 1, 2, 3, 4];
    for last in (1..KINDS).rev() {
        let draw = mix(&[seed, u64::from(block), last as u64]);
        order.swap(last, pick(draw, last as u64 + 1) as usize);
    }
    order
}

fn summary([bare, load, clean, fast, saves]: &Blocks) -> Outcome {
    let per = |of: fn(&Measured) -> f64| {
        move |all: &[Measured]| -> Vec<f64> { all.iter().map(|m| of(m) / m.count).collect() }
    };
    let (client, server, wall) =
        (per(|m| m.client_cpu_ns), per(|m| m.server_cpu_ns), per(|m| m.wall_ns));
    println!("load:");
    println!("  CPU ns: engine {}, bare loop {}", mean(&client(load))?, mean(&client(bare))?);
    println!("  wall ns: engine {}, bare loop {}", mean(&wall(load))?, mean(&wall(bare))?);
    at_most("CPU engine / bare loop", &client(load), &client(bare), LOAD_GOAL)?;
    at_most("wall engine / bare loop", &wall(load), &wall(bare), LOAD_GOAL)?;
    println!("clean of a tag of {CARRIERS} records:");
    println!("  CPU ns: client {}, server {}", mean(&client(clean))?, mean(&server(clean))?);
    at_most("CPU client / server", &client(clean), &server(clean), CLEAN_GOAL)?;
    println!("fill:");
    let rate = |ns: Vec<f64>| -> Vec<f64> { ns.iter().map(|ns| 1e9 / ns).collect() };
    let print_rates = |title, all: &[Measured]| -> Outcome {
        println!("  {title}, records per s: {}", mean(&rate(wall(all)))?);
        println!("    per CPU second of the server: {}", mean(&rate(server(all)))?);
        println!("    per CPU second of the clients: {}", mean(&rate(client(all)))?);
        let busy =
            Paired { a: &server(all), b: &wall(all) }.ratio(ALPHA).map_err(|d| d.to_string())?;
        println!("    CPUs that the server kept busy: {}", bounds(&busy, 2));
        Ok(())
    };
    print_rates("by saves", saves)?;
    print_rates("fast", fast)?;
    let e = geometric_mean_interval(&rate(wall(fast)), 1.0 - ALPHA, 1)?;
    println!("  goal, at least {FILL_GOAL} records per s: {}", verdict(&e, FILL_GOAL, true));
    Ok(())
}

/// Prints the ratio a / b, and whether it reaches the goal.
fn at_most(title: &str, a: &[f64], b: &[f64], goal: f64) -> Outcome {
    let ratio = Paired { a, b }.ratio(ALPHA).map_err(|doubt| doubt.to_string())?;
    let verdict = verdict(&ratio, goal, false);
    println!("  {title}: {}; goal, at most {goal}: {verdict}", bounds(&ratio, 3));
    Ok(())
}

fn verdict(e: &Estimate, goal: f64, is_least: bool) -> &'static str {
    let (Some(lo), Some(hi)) = (e.lo(), e.hi()) else { return "undecided" };
    let (reached, missed) =
        if is_least { (lo >= goal, hi < goal) } else { (hi <= goal, lo > goal) };
    match (reached, missed) {
        (true, _) => "reached",
        (_, true) => "not reached",
        _ => "undecided",
    }
}

fn mean(values: &[f64]) -> Result<String, Box<dyn Error>> {
    Ok(bounds(&geometric_mean_interval(values, 1.0 - ALPHA, 1)?, 0))
}

fn bounds(e: &Estimate, digits: usize) -> String {
    match e.lo().zip(e.hi()) {
        Some((lo, hi)) => format!("{:.digits$} [{lo:.digits$}, {hi:.digits$}]", e.center),
        None => format!("{:.digits$}", e.center),
    }
}

/// Measures one kind in one block on its own server.
struct Side {
    options: CacheOptions,
    server: u32,
    cpus: Vec<usize>,
    workload: AppCache,
    seed: u64,
}

/// Starts the server.
fn side(
    provisioner: &mut TargetProvisioner<'_>,
    seed: u64,
    (block, kind): (u32, usize),
) -> Result<(Side, Ready), Box<dyn Error>> {
    let plan = provisioner.plan;
    let cell = &plan.cells[0];
    let Workload::AppCache(workload) = &cell.workload else {
        return Err(format!("cell `{}` is not an application cache", cell.id).into());
    };
    let label = format!("{block}_{kind}");
    let mut ready = provisioner.ready(&plan.targets[0], &cell.workload, &label).map_err(error)?;
    if block == 0 && kind == 0 {
        println!("{}", ready.version().map_err(error)?);
    }
    let Some(server) = ready.server_pids().first().copied() else {
        return Err("the server is not private".into());
    };
    let mut workload = AppCache { fill: Fill::Fast, keys: LOADED, ..workload.clone() };
    workload.phases.retain(|phase| phase.name == "read");
    let side = Side {
        options: ready.cache_options(),
        server,
        cpus: provisioner.client_cpus(&ready),
        workload,
        seed: schedule::data_seed(plan, block) ^ seed,
    };
    Ok((side, ready))
}

impl Side {
    fn measure(&mut self, kind: usize, keys: u64) -> Result<Measured, Box<dyn Error>> {
        match kind {
            0 => {
                self.run(1, true)?;
                self.on_thread(Self::bare_loads)
            }
            1 => self.loads(),
            2 => self.on_thread(Self::cleans),
            3 => self.fills(keys),
            _ => {
                self.workload.fill = Fill::Save;
                self.fills(keys / FEWER)
            }
        }
    }

    /// Runs work in a thread on the generator's CPUs.
    fn on_thread(
        &self,
        work: impl Fn(&Self) -> Result<Measured, Box<dyn Error>> + Sync,
    ) -> Result<Measured, Box<dyn Error>> {
        let pinned = || -> Result<Measured, Box<dyn Error>> {
            rig::pin_current_thread(&self.cpus)?;
            work(self)
        };
        let joined = thread::scope(|scope| {
            let handle = scope.spawn(|| pinned().map_err(|e| e.to_string()));
            handle.join().map_err(|_| "a thread of the bench panicked".to_string())
        });
        Ok(joined??)
    }

    fn server_cpu_ns(&self) -> Result<f64, Box<dyn Error>> {
        cpu_ns_of(self.server)
    }

    fn store(&self) -> Result<Box<dyn TaggedCache>, Box<dyn Error>> {
        drivers::open_tagged_cache(Backend::CmRedis, &self.options).map_err(error)
    }

    /// Fills with `clients` clients of the engine, then runs the phases unless `fills_only`.
    fn run(&self, clients: u32, fills_only: bool) -> Result<Finished, Box<dyn Error>> {
        let ledger = Arc::new(Ledger::drawn(&self.workload, self.seed, clients));
        let open = |client| -> Result<Box<dyn Client>, Box<dyn Error>> {
            let store = self.store()?;
            let share = Share { seed: self.seed, client, clients, prefix: String::new() };
            let workload = self.workload.clone();
            Ok(Box::new(AppCacheClient::new(store, workload, share, ledger.clone())))
        };
        let opened = (0..clients).map(open).collect::<Result<_, _>>()?;
        let stop = AtomicBool::new(false);
        let phases: &[Phase] = if fills_only { &[] } else { &self.workload.phases };
        let engine = Engine {
            phases,
            planned: None,
            settings: Settings {
                generation: Generation::Outside,
                cpus: &self.cpus,
                timeout_ns: 0,
                stall_ns: 0,
                stop: &stop,
            },
        };
        let finished = engine.run(opened, &mut Unmetered, &mut |_| {});
        match finished.failure {
            Some(failure) => Err(error(failure)),
            None => Ok(finished),
        }
    }

    fn fills(&mut self, keys: u64) -> Result<Measured, Box<dyn Error>> {
        self.workload.keys = keys;
        let (server, client) = (self.server_cpu_ns()?, cpu_ns_of(std::process::id())?);
        let start = Instant::now();
        self.run(FILLING, true)?;
        Ok(Measured {
            count: keys as f64,
            wall_ns: start.elapsed().as_nanos() as f64,
            client_cpu_ns: cpu_ns_of(std::process::id())? - client,
            server_cpu_ns: self.server_cpu_ns()? - server,
        })
    }

    fn loads(&self) -> Result<Measured, Box<dyn Error>> {
        let finished = self.run(1, false)?;
        let [phase] = &finished.phases[..] else { return Err("a phase has no result".into()) };
        let [point] = &phase.points[..] else { return Err("it was not steady".into()) };
        let counts = point.whole().map(|all| &all.counts);
        match counts {
            Some(counts) if counts.ok == counts.total() => Ok(Measured {
                count: counts.ok as f64,
                wall_ns: point.length_ns as f64,
                client_cpu_ns: point.generator_cpu_ns as f64,
                server_cpu_ns: 0.0,
            }),
            other => Err(format!("the phase has errors: {other:?}").into()),
        }
    }

    /// Requests as the engine sends them, with the lengths of their replies.
    fn visits(&self) -> Vec<(Vec<u8>, usize)> {
        let data = DataSet::drawn(&self.workload, self.seed);
        let prefix = prefix_of("/var/www/magento/app/etc");
        let visit = |visit| {
            let record = pick(mix(&[self.seed, visit, u64::MAX]), LOADED);
            let mut key = String::new();
            data.key_into(&mut key, record);
            let key = format!("zc:k:{prefix}{}", key.to_ascii_uppercase());
            let request = format!("*3\r\n$4\r\nHGET\r\n${}\r\n{key}\r\n$1\r\nd\r\n", key.len());
            let bytes = data.bytes(record);
            (request.into_bytes(), format!("${bytes}\r\n").len() + bytes + "\r\n".len())
        };
        (0..VISITS).map(visit).collect()
    }

    fn bare_loads(&self) -> Result<Measured, Box<dyn Error>> {
        let [Endpoint::Redis { address: NetAddress::Unix(socket), .. }] =
            &self.options.endpoints[..]
        else {
            return Err("the server has no unix socket".into());
        };
        let Stop::AfterNs(measure_ns) = self.workload.phases[0].stop else {
            return Err("the phase has no duration".into());
        };
        let visits = self.visits();
        let mut socket = UnixStream::connect(socket)?;
        // The driver's sockets have timeouts too, so both make the same system calls.
        let timeout = self.options.timeout;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let warmup = Duration::from_nanos(self.workload.phases[0].warmup_ns);
        exchange(&mut socket, &visits, warmup)?;
        let (before, start) = (ThreadUse::now(), Instant::now());
        let count = exchange(&mut socket, &visits, Duration::from_nanos(measure_ns))?;
        let wall_ns = start.elapsed().as_nanos() as f64;
        let client_cpu_ns = ThreadUse::now().since(before).cpu_ns as f64;
        Ok(Measured { count: count as f64, wall_ns, client_cpu_ns, server_cpu_ns: 0.0 })
    }

    fn cleans(&self) -> Result<Measured, Box<dyn Error>> {
        let mut shop = Magento::new(self.store()?, model::Magento::One);
        let data = DataSet::drawn(&self.workload, self.seed);
        let tag = "CLEANED".to_string();
        let mut all =
            Measured { count: CLEANS as f64, wall_ns: 0.0, client_cpu_ns: 0.0, server_cpu_ns: 0.0 };
        let (mut numbers, mut value) = (Vec::new(), Vec::new());
        for _ in 0..CLEANS {
            for record in 0..CARRIERS {
                let mut id = String::new();
                data.key_into(&mut id, record);
                data.tags_of_into(&mut numbers, record);
                data.value_into(&mut value, record, 0);
                let mut tags = vec![tag.clone()];
                for number in &numbers {
                    let mut name = String::new();
                    data.tag_into(&mut name, *number);
                    tags.push(name);
                }
                shop.fill(Record::new(&id, &value, &tags, None))?;
            }
            shop.fill_end()?;
            let (server, client, start) = (self.server_cpu_ns()?, own_thread_ns(), Instant::now());
            shop.clean(std::slice::from_ref(&tag))?;
            all.client_cpu_ns += own_thread_ns() - client;
            all.wall_ns += start.elapsed().as_nanos() as f64;
            all.server_cpu_ns += self.server_cpu_ns()? - server;
        }
        Ok(all)
    }
}

fn cpu_ns_of(process: u32) -> Result<f64, Box<dyn Error>> {
    let used = rig::process_cpu_ns(process).map(|ns| ns as f64);
    used.ok_or_else(|| format!("the CPU time of process {process} cannot be read").into())
}

fn own_thread_ns() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(0.0, |t| t.tv_sec() as f64 * 1e9 + t.tv_nsec() as f64)
}

/// Exchanges requests and replies for at least this long; returns their number.
fn exchange(
    socket: &mut UnixStream,
    visits: &[(Vec<u8>, usize)],
    least: Duration,
) -> std::io::Result<u64> {
    let mut buffer = [0; 16 << 10];
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < least {
        for _ in 0..BATCH {
            let (request, reply_bytes) = &visits[(count % VISITS) as usize];
            socket.write_all(request)?;
            let mut received = 0;
            while received < *reply_bytes {
                match socket.read(&mut buffer[received..])? {
                    0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                    n => received += n,
                }
            }
            count += 1;
        }
    }
    Ok(count)
}
