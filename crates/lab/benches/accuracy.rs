//! How true the wire engine's times are: an open load on servers whose times are known.
//!
//! The scripted server computes when each reply is due, by the queue that the text books describe;
//! what the engine reports is set against the closed formula. One thread and one CPU each.
//!
//! | server | load | formula |
//! |---|---|---|
//! | serves 1 ms | 100/s, even | p50 is 1 ms |
//! | serves exponential times, mean 1/μ | Poisson, λ = 0.8 μ | quantile q is −ln(1 − q)/(μ − λ) |
//! | stops for S every T | 1,000/s, even | quantile q is S − (1 − q)·T |
//! | answers at once | 50,000/s, even | the rate, and the lag |
//!
//! `cargo bench -p cachedyno-lab --bench accuracy -- --seconds 20 --seed 7` changes the defaults.

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

mod common;

use common::{Outcome, arguments, number, told};
use drivers::wire::Dialect;
use load::Meter;
use load::wire::pacer::{Arrivals, Stage};
use load::wire::{Address, Offer, Pacing, Servers, Until, Work, route::Single};
use rig::reference::{Listen, NullServer, NullSettings, ScriptedServer, ScriptedSettings};
use stats::Histogram;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use workloads::kv::{Distribution, KeyChoice, KeyNames, Mix, Sizes, Values};

/// Bytes of a value.
const BYTES: usize = 100;

/// What is offered.
#[derive(Clone, Copy)]
struct Load {
    rate_per_s: f64,
    arrivals: Arrivals,
    clients: u32,
    seconds: u64,
    seed: u64,
}

/// What came of it.
struct Seen {
    response: Histogram,
    lag: Histogram,
    rate_per_s: f64,
}

struct NoMeter;

impl Meter for NoMeter {
    fn server_cpu_ns(&mut self) -> Option<u64> {
        None
    }
}

fn main() -> Outcome {
    let arguments = arguments();
    let seconds = number(&arguments, "--seconds", 20)?;
    let seed = number(&arguments, "--seed", 1)?;
    if std::thread::available_parallelism()?.get() < 2 {
        println!("skipped: generator and server need a CPU each");
        return Ok(());
    }
    println!("{seconds} s each, seed {seed}\n");
    println!("| server | quantile | formula | seen | difference | goal |");
    println!("|---|---|---|---|---|---|");
    let even = |rate_per_s, clients| Load {
        rate_per_s,
        arrivals: Arrivals::Constant,
        clients,
        seconds,
        seed,
    };
    let constant = scripted("service=constant:1ms", even(100.0, 4))?;
    line("serves 1 ms", 0.5, 1e6, &constant, "50 µs");
    let poisson = Load { arrivals: Arrivals::Poisson, ..even(8_000.0, 300) };
    let queue = scripted("service=exponential:100us", poisson)?;
    for q in [0.5, 0.99] {
        // μ − λ is 2,000 a second.
        let expected_ns = -(1.0_f64 - q).ln() / 2_000.0 * 1e9;
        line("exponential at load 0.8", q, expected_ns, &queue, "5 %");
    }
    let stalls = scripted("stall=200ms/2s", even(1_000.0, 20))?;
    for q in [0.99, 0.999] {
        line("stops for 200 ms every 2 s", q, 200e6 - (1.0 - q) * 2e9, &stalls, "1 %, 1 ms");
    }
    let null = null(even(50_000.0, 50))?;
    let (rate, lag_us) = (null.rate_per_s, null.lag.quantile_ns(0.99) as f64 / 1e3);
    println!(
        "\nplanned 50,000/s: {rate:.0}/s ({:+.2} %; goal ±0.5 %), lag p99 {lag_us:.0} µs \
              (goal 1,000 µs)",
        (rate / 50_000.0 - 1.0) * 100.0
    );
    Ok(())
}

fn line(server: &str, q: f64, expected_ns: f64, seen: &Seen, goal: &str) {
    let seen_ns = seen.response.quantile_ns(q) as f64;
    println!(
        "| {server} | {q} | {:.3} ms | {:.3} ms | {:+.0} µs, {:+.1} % | {goal} |",
        expected_ns / 1e6,
        seen_ns / 1e6,
        (seen_ns - expected_ns) / 1e3,
        (seen_ns / expected_ns - 1.0) * 100.0
    );
}

fn scripted(script: &str, load: Load) -> Result<Seen, Box<dyn Error>> {
    let settings = ScriptedSettings {
        script: script.parse()?,
        log: false,
        spin: true,
        cpus: vec![1],
        ..ScriptedSettings::default()
    };
    let server = ScriptedServer::start(&settings)?;
    offer(server.address(), load)
}

fn null(load: Load) -> Result<Seen, Box<dyn Error>> {
    let settings = NullSettings { value_bytes: BYTES, cpus: vec![1], ..NullSettings::default() };
    let server = NullServer::start(&settings)?;
    offer(server.address(), load)
}

fn offer(address: &Listen, load: Load) -> Result<Seen, Box<dyn Error>> {
    let (names, sizes) = (KeyNames::default(), Sizes::all(BYTES));
    let work = Work {
        operations: vec![Dialect::Redis.operation("set", None, None, &names, &sizes)?],
        mix: Mix::new(&[1.0])?,
        keys: KeyChoice::new(Distribution::Uniform, 1_000)?,
        names,
        sizes,
        values: Arc::new(Values::new(1)),
        seed: load.seed,
        verify_one_in: 0,
    };
    let length_ns = load.seconds * 1_000_000_000;
    let stage =
        Stage { rate_from_per_s: load.rate_per_s, rate_to_per_s: load.rate_per_s, length_ns };
    let offer = Offer {
        threads: 1,
        clients: load.clients,
        pipeline: 16,
        pacing: Pacing::Open { arrivals: load.arrivals, stages: vec![stage] },
        until: Until::AfterNs(length_ns),
        warmup_ns: 0,
        timeout_ns: 10_000_000_000,
        cpus: vec![0],
        spin: true,
        reconnects: false,
        errors_end_it: true,
    };
    let address = match address {
        Listen::Tcp(address) => Address::Tcp(*address),
        Listen::Unix(path) => Address::Unix(path.clone()),
    };
    let servers = Servers {
        nodes: vec![address],
        tls: None,
        hello: Vec::new(),
        hello_replies: Vec::new(),
        route: Box::new(Single),
    };
    let stop = AtomicBool::new(false);
    let done = Dialect::Redis.run(&offer, &work, &servers, &stop, &mut NoMeter, &mut |_| {});
    if let Some(failure) = done.failure {
        return Err(told(failure));
    }
    let whole = done.recorder.whole();
    Ok(Seen {
        response: whole.response().clone(),
        lag: whole.lag().cloned().unwrap_or_default(),
        rate_per_s: whole.answered() as f64 / (done.wall_ns as f64 / 1e9),
    })
}
