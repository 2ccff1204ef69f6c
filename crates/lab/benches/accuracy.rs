//! Accuracy of the wire engine's latencies: an open load on servers with known response times.
//!
//! The scripted server computes the due time of each reply by a textbook queue. The bench compares
//! the engine's report with the closed formula. Server and engine have one thread and one CPU each.
//!
//! | server | load | formula |
//! |---|---|---|
//! | service time 1 ms | 500/s, even | p50 is 1 ms |
//! | exponential service time, mean 1/μ | Poisson, λ = 0.8 μ | quantile q is −ln(1 − q)/(μ − λ) |
//! | stalls for S every T | 1,000/s, even | quantile q is S − (1 − q)·T |
//! | answers immediately | 50,000/s, even | the rate, and the lag |
//!
//! When the hypervisor stops the machine for milliseconds, server and engine are both slow, and no
//! generator can be right. So each line consists of blocks of two seconds (the period of the
//! stalls) and is printed twice: for all blocks, and for blocks without stolen CPU time.
//!
//! The quantiles of a queue vary from run to run, more so with a longer memory, and converge to
//! the formula only after minutes. So the table also shows the times that the server planned for
//! the actual requests (due − received). Kernel, pauses of the machine and the engine's error make
//! the difference to what the engine saw. With a service time of 1 ms, blocks last twenty seconds.
//!
//! Where microseconds matter, the bench uses unix sockets: at a hundred requests per second the
//! kernel's TCP path is cold, and even a bare loop of ten lines sees 0.1 ms there. The first block
//! does not count, since the server's first stall starts one period after its first request.
//!
//! `cargo bench -p cachedyno-lab --bench accuracy -- --blocks 20 --seed 7` changes the defaults.

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

mod common;
mod plain;

use common::{Outcome, arguments, number};
use load::wire::pacer::{Arrivals, Stage};
use load::wire::row::Row;
use load::wire::{Address, Pacing, Until};
use plain::Plain;
use rig::reference::{Listen, NullServer, NullSettings, ScriptedServer, ScriptedSettings};
use rig::{NoiseRecorder, ProcessTree};
use stats::Histogram;
use std::error::Error;
use workloads::kv::Distribution;

/// Value size, bytes.
const BYTES: usize = 100;

/// Length of a block, seconds.
const SECONDS: u64 = 2;

/// Parameters of the load.
#[derive(Clone, Copy)]
struct Load {
    rate_per_s: f64,
    arrivals: Arrivals,
    clients: u32,
}

/// Number and length of blocks, and the seed.
#[derive(Clone, Copy)]
struct Extent {
    blocks: u64,
    seconds: u64,
    seed: u64,
}

/// Merged results of some blocks.
#[derive(Default)]
struct Seen {
    response: Histogram,
    lag: Histogram,
    wall_ns: u64,
    blocks: u64,
}

impl Seen {
    fn add(&mut self, row: &Row, wall_ns: u64) {
        self.response.merge(row.response());
        self.lag.merge(row.lag().expect("an open load has a lag"));
        self.wall_ns += wall_ns;
        self.blocks += 1;
    }
}

/// Results of all blocks, and of those without stolen CPU time.
#[derive(Default)]
struct Both {
    all: Seen,
    quiet: Seen,
    /// Times by the server's log, from the arrival of each request to its reply, and to the due
    /// time of its reply.
    by_server: Histogram,
    due: Histogram,
}

impl Both {
    fn named(&self) -> [(&'static str, &Seen); 2] {
        [("all", &self.all), ("quiet", &self.quiet)]
    }
}

fn main() -> Outcome {
    let arguments = arguments();
    let blocks = number(&arguments, "--blocks", 10)?;
    let extent = Extent { blocks, seconds: SECONDS, seed: number(&arguments, "--seed", 1)? };
    if std::thread::available_parallelism()?.get() < 2 {
        println!("skipped: generator and server need a CPU each");
        return Ok(());
    }
    println!("{blocks} blocks of {SECONDS} s each, seed {}\n", extent.seed);
    println!(
        "| server | blocks | quantile | formula | due | seen | seen − formula | seen − due | goal \
         | by server | lag p50 | p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let even = |rate_per_s, clients| Load { rate_per_s, arrivals: Arrivals::Constant, clients };
    for (way, listen) in [("unix", unix()), ("TCP", Listen::loopback(0))] {
        let constant = scripted("service=constant:1ms", listen, even(500.0, 4), extent)?;
        line(&format!("serves 1 ms, {way}"), 0.5, 1e6, &constant, "50 µs");
    }
    for (service, rate_per_s, seconds) in [("100us", 8_000.0, SECONDS), ("1ms", 800.0, 20)] {
        let poisson = Load { arrivals: Arrivals::Poisson, ..even(rate_per_s, 300) };
        let script = format!("service=exponential:{service}");
        let queue = scripted(&script, unix(), poisson, Extent { seconds, ..extent })?;
        for q in [0.5, 0.99] {
            // μ − λ is a quarter of λ.
            let expected_ns = -(1.0_f64 - q).ln() / (rate_per_s / 4.0) * 1e9;
            line(&format!("exponential {service} at load 0.8"), q, expected_ns, &queue, "5 %");
        }
    }
    let stalls = scripted("stall=200ms/2s", unix(), even(1_000.0, 20), extent)?;
    for q in [0.99, 0.999] {
        line("stops for 200 ms every 2 s", q, 200e6 - (1.0 - q) * 2e9, &stalls, "1 %, 1 ms");
    }
    println!("\n| blocks | planned | reached | goal | lag p50 | p99 | goal |");
    println!("|---|---|---|---|---|---|---|");
    let null = null(even(50_000.0, 50), extent)?;
    for (blocks, seen) in null.named().into_iter().filter(|(_, seen)| seen.blocks > 0) {
        let rate = seen.response.count() as f64 / (seen.wall_ns as f64 / 1e9);
        let off = (rate / 50_000.0 - 1.0) * 100.0;
        println!(
            "| {} {blocks} | 50,000/s | {rate:.0}/s, {off:+.2} % | 0.5 % | {} | {} | 1,000 µs |",
            seen.blocks,
            us(&seen.lag, 0.5),
            us(&seen.lag, 0.99)
        );
    }
    Ok(())
}

fn us(histogram: &Histogram, q: f64) -> String {
    format!("{:.0} µs", histogram.quantile_ns(q) as f64 / 1e3)
}

fn line(server: &str, q: f64, expected_ns: f64, both: &Both, goal: &str) {
    let due_ns = both.due.quantile_ns(q) as f64;
    for (blocks, seen) in both.named().into_iter().filter(|(_, seen)| seen.blocks > 0) {
        let seen_ns = seen.response.quantile_ns(q) as f64;
        let off = |from_ns: f64| {
            // A stalled server reads late, so it has no planned time.
            if from_ns == 0.0 {
                return "–".to_string();
            }
            let (us, share) = ((seen_ns - from_ns) / 1e3, (seen_ns / from_ns - 1.0) * 100.0);
            format!("{us:+.0} µs, {share:+.1} %")
        };
        println!(
            "| {server} | {} {blocks} | {q} | {:.3} ms | {:.3} ms | {:.3} ms | {} | {} | {goal} \
             | {} | {} | {} |",
            seen.blocks,
            expected_ns / 1e6,
            due_ns / 1e6,
            seen_ns / 1e6,
            off(expected_ns),
            off(due_ns),
            us(&both.by_server, q),
            us(&seen.lag, 0.5),
            us(&seen.lag, 0.99)
        );
    }
}

fn unix() -> Listen {
    Listen::Unix(std::env::temp_dir().join(format!("cachedyno-accuracy-{}", std::process::id())))
}

fn scripted(
    script: &str,
    listen: Listen,
    load: Load,
    extent: Extent,
) -> Result<Both, Box<dyn Error>> {
    let settings = ScriptedSettings {
        listen,
        script: script.parse()?,
        spin: true,
        from_arrival: false,
        cpus: vec![1],
        ..ScriptedSettings::default()
    };
    let mut server = ScriptedServer::start(&settings)?;
    let mut both = offer(server.address(), load, extent)?;
    server.stop();
    for stamp in server.log() {
        if let Some(sent_ns) = stamp.sent_ns {
            both.by_server.record(sent_ns - stamp.received_ns);
            both.due.record(stamp.due_ns - stamp.received_ns);
        }
    }
    Ok(both)
}

fn null(load: Load, extent: Extent) -> Result<Both, Box<dyn Error>> {
    let settings = NullSettings { value_bytes: BYTES, cpus: vec![1], ..NullSettings::default() };
    let server = NullServer::start(&settings)?;
    offer(server.address(), load, extent)
}

fn offer(address: &Listen, load: Load, extent: Extent) -> Result<Both, Box<dyn Error>> {
    let mut both = Both::default();
    block_of(address, load, extent.seconds, extent.seed)?;
    for block in 1..=extent.blocks {
        let noise = NoiseRecorder::start(&[0], &[], &ProcessTree::default());
        let done = block_of(address, load, extent.seconds, extent.seed + block)?;
        let row = done.recorder.whole();
        both.all.add(&row, done.wall_ns);
        if noise.stop().steal_share == 0.0 {
            both.quiet.add(&row, done.wall_ns);
        }
    }
    Ok(both)
}

fn block_of(
    address: &Listen,
    load: Load,
    seconds: u64,
    seed: u64,
) -> Result<load::wire::Outcome, Box<dyn Error>> {
    let length_ns = seconds * 1_000_000_000;
    let stage =
        Stage { rate_from_per_s: load.rate_per_s, rate_to_per_s: load.rate_per_s, length_ns };
    let address = match address {
        Listen::Tcp(address) => Address::Tcp(*address),
        Listen::Unix(path) => Address::Unix(path.clone()),
    };
    Plain {
        operation: "set",
        bytes: BYTES,
        keys: (Distribution::Uniform, 1_000),
        seed,
        clients: load.clients,
        pipeline: 16,
        pacing: Pacing::Open { arrivals: load.arrivals, stages: vec![stage] },
        until: Until::AfterNs(length_ns),
        cpu: 0,
        spin: true,
    }
    .offer(address, None)
}
