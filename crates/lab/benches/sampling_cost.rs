//! Cost of sampling: CPU time of a sample, by the sampling thread's clock, as a share of one core
//! at ten samples per second.
//!
//! Samples a private server under load (memcached with four worker threads, or `--product` redis or
//! mysql) and the two threads of this process that load it. The cost of asking the server for its
//! counters is measured separately, for this process and for an otherwise idle server.
//! `cargo bench -p cachedyno-lab --bench sampling_cost -- --samples 500 --product redis`

#![expect(clippy::print_stdout, reason = "a bench prints its result")]

mod common;

use common::{Outcome, arguments, error, number};
use drivers::Admin;
use model::{ProcessUse, Product, SAMPLE_NS};
use nix::time::{ClockId, clock_gettime};
use rig::{Guard, InterfaceReader, Pinning, Server, ServerSpec, Templates, UsageReader};
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

fn main() -> Outcome {
    let arguments = arguments();
    if arguments.first().map(String::as_str) == Some(rig::GUARD_ARGUMENT) {
        rig::guard_main(std::io::stdin().lock())?;
        return Ok(());
    }
    let samples = number(&arguments, "--samples", 300)?;
    let at = arguments.iter().position(|a| a == "--product");
    let product = at.and_then(|at| arguments.get(at + 1)).map_or("memcached", String::as_str);
    let product = match product {
        "memcached" => Product::Memcached,
        "redis" => Product::Redis,
        "mysql" => Product::Mysql,
        other => return Err(format!("`{other}` is not sampled (memcached, redis, mysql)").into()),
    };
    let (guard, disk) = (Guard::start()?, std::env::temp_dir());
    let mut spec = ServerSpec::new(&disk);
    spec.cpus = Some(Pinning::for_this_process().server);
    if product == Product::Memcached {
        spec.settings.insert("threads".into(), "4".into());
    }
    let mut templates = Templates::default();
    let started = rig::start_server(product, &guard, &mut templates, &spec)?;
    let (_, servers) = started.ok_or("a product without a server")?;
    let server = &servers[0].1;
    let mut admin = drivers::admin(server.endpoint(), TIMEOUT).map_err(error)?;
    asking(admin.as_mut(), server, samples)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // Any load will do: the samples come from kernel counters.
                let Ok(mut own) = drivers::admin(server.endpoint(), TIMEOUT) else { return };
                while !stop.load(Ordering::Relaxed) {
                    if own.facts().is_err() {
                        return;
                    }
                }
            });
        }
        let measured = sampling(server, samples);
        stop.store(true, Ordering::Relaxed);
        measured
    })
}

/// Reads processes and network interface like a sample.
fn sampling(server: &Server, samples: u64) -> Outcome {
    let mut servers = UsageReader::new(&[server.pid()]);
    let mut own = UsageReader::new(&[std::process::id()]);
    let mut network = InterfaceReader::toward("127.0.0.1:1".parse()?).ok_or("no loopback")?;
    let read = |servers: &mut UsageReader, own: &mut UsageReader| -> Result<_, Box<dyn Error>> {
        let server: ProcessUse = servers.read().ok_or("the server ended")?;
        let own = own.read().ok_or("this process cannot be read")?;
        Ok((server.threads.len(), own.threads.len()))
    };
    // The first reading opens the files.
    let first_ns = thread_cpu_ns()?;
    read(&mut servers, &mut own)?;
    let first_ns = thread_cpu_ns()? - first_ns;
    let (mut processes_ns, mut network_ns) = (0, 0);
    for _ in 0..samples {
        let before = thread_cpu_ns()?;
        read(&mut servers, &mut own)?;
        let between = thread_cpu_ns()?;
        network.read().ok_or("the loopback is gone")?;
        processes_ns += between - before;
        network_ns += thread_cpu_ns()? - between;
        // Let the kernel's data leave the CPU caches, as in a trial.
        thread::sleep(PAUSE);
    }
    let threads = read(&mut servers, &mut own)?;
    let (processes, network) =
        (processes_ns as f64 / samples as f64, network_ns as f64 / samples as f64);
    println!(
        "{samples} samples of {} active threads of the server and {} of the generator\n\
         processes: {}, the first {}; interface: {}\n\
         together {} of one core at {} samples a second",
        threads.0,
        threads.1,
        micros(processes),
        micros(first_ns as f64),
        micros(network),
        share(processes + network),
        1_000_000_000 / SAMPLE_NS
    );
    Ok(())
}

/// Asks an idle server for its counters repeatedly.
fn asking(admin: &mut dyn Admin, server: &Server, samples: u64) -> Outcome {
    let used = || rig::process_cpu_ns(server.pid()).ok_or("the server ended");
    let (own_before, before) = (thread_cpu_ns()?, used()?);
    for _ in 0..samples {
        admin.counters().map_err(error)?.ok_or("it has no counters")?;
    }
    let own = (thread_cpu_ns()? - own_before) as f64 / samples as f64;
    let of_server = (used()? - before) as f64 / samples as f64;
    println!(
        "counters of {}: {} of this process ({}), {} of the server ({} of one core)",
        server.name(),
        micros(own),
        share(own),
        micros(of_server),
        share(of_server)
    );
    Ok(())
}

fn thread_cpu_ns() -> Result<u64, Box<dyn Error>> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

fn micros(ns: f64) -> String {
    format!("{:.0} µs", ns / 1e3)
}

/// Share of one core at the sampling rate.
fn share(ns: f64) -> String {
    stats::format_percent(ns / SAMPLE_NS as f64)
}
