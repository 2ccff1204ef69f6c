//! Refuses runs that would take too long or need too much memory, before anything starts. The error
//! shows the calculation.

use model::{Cell, Kv, Load, Plan, Search, Stop};
use rig::memory_bytes;
use stats::search::A_ROUND;
use stats::{format_bytes, format_ns};
use workloads::kv::Sizes;

const DAY_NS: f64 = 86_400e9;
/// Longest plausible run, days.
const RUN_DAYS_MAX: f64 = 30.0;
/// Maximum requests in flight, since each uses memory.
pub(crate) const IN_FLIGHT_MAX: u64 = 10_000_000;

/// Refuses a `bench` that would take more than a month, or whose data is larger than memory.
/// `is_here` is true if a server on this machine would store the data.
pub(crate) fn bench(
    kv: &Kv,
    load: &Load,
    blocks: u32,
    targets: usize,
    is_here: bool,
) -> Result<(), String> {
    for phase in &kv.phases {
        let Stop::AfterNs(measured_ns) = phase.stop else { continue };
        let one_ns = measured_ns as f64 + phase.warmup_ns as f64;
        let days = one_ns * f64::from(blocks) * targets as f64 / DAY_NS;
        if days > RUN_DAYS_MAX {
            return Err(format!(
                "--duration {} and --warmup {}, times --blocks {blocks} and {targets} target(s), \
                 take `{days:.0}` days (expected at most {RUN_DAYS_MAX})",
                format_ns(measured_ns as f64),
                format_ns(phase.warmup_ns as f64),
            ));
        }
    }
    let Ok(sizes) = kv.value_bytes.parse::<Sizes>() else { return Ok(()) };
    let (mean, memory) = (sizes.mean(), memory_bytes());
    let (clients, pipeline) = (load.clients, load.pipeline);
    let sent = f64::from(clients) * f64::from(pipeline) * mean;
    if too_large(sent, memory) {
        return Err(format!(
            "--clients {clients} times --pipeline {pipeline} times {} per value is `{}` in flight \
             ({})",
            bytes(mean),
            bytes(sent),
            expected(memory)
        ));
    }
    let filled = kv.keys as f64 * kv.filled_share * mean;
    if is_here && too_large(filled, memory) {
        return Err(format!(
            "--keys {} times --hit-ratio {} times {} per value is `{}` of filled data ({}; use \
             fewer keys, smaller values, or --no-fill)",
            kv.keys,
            kv.filled_share,
            bytes(mean),
            bytes(filled),
            expected(memory)
        ));
    }
    Ok(())
}

/// Refuses a `find-max` whose confirmations alone would take more than a month.
pub(crate) fn search(
    search: &Search,
    warmup_ns: u64,
    (blocks, targets): (u32, usize),
) -> Result<(), String> {
    let (probe_ns, rounds) = (search.probe_ns as f64, search.rounds);
    let probes = f64::from(rounds) * A_ROUND as f64;
    let searches = f64::from(blocks) * targets as f64;
    let days = (probe_ns + warmup_ns as f64) * probes * searches / DAY_NS;
    if days <= RUN_DAYS_MAX {
        return Ok(());
    }
    Err(format!(
        "--probe {} and --warmup {}, times {probes} probes of --rounds {rounds}, --blocks {blocks} \
         and {targets} target(s), take `{days:.0}` days (expected at most {RUN_DAYS_MAX})",
        format_ns(probe_ns),
        format_ns(warmup_ns as f64),
    ))
}

/// Refuses more generator threads than clients or CPUs; `flag` sets the number of threads.
pub(crate) fn threads(flag: &str, threads: u32, clients: u32, cpus: usize) -> Result<(), String> {
    if threads > clients {
        return Err(format!(
            "{flag} `{threads}` exceeds the number of clients (expected at most {clients}: \
             each thread needs at least one)"
        ));
    }
    if threads as usize > cpus.max(1) {
        return Err(format!(
            "{flag} `{threads}` exceeds the number of generator CPUs: the threads would only \
             compete for them (expected at most {}; `cachedyno doctor` lists them)",
            cpus.max(1)
        ));
    }
    Ok(())
}

/// Like [`threads`], for a study; the number comes from the user or the study file.
pub(crate) fn study_threads(
    plan: &Plan,
    sets: &[(String, String)],
    cpus: usize,
) -> Result<(), String> {
    let of = |cell: &Cell| Some((plan.on_event_loops(cell)?.threads, cell.load.clients));
    let loads = plan.cells.iter().filter_map(of);
    let Some((planned, clients)) = loads.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))) else {
        return Ok(());
    };
    // A plan caps threads at the number of clients, so report what the user typed.
    let typed = sets.iter().rev().find(|(key, _)| key == "threads");
    let typed = typed.and_then(|(_, value)| value.parse().ok());
    threads("--set threads", typed.unwrap_or(planned), clients, cpus)
}

/// Refuses a `redis-benchmark` whose requests in flight would not fit in memory.
pub(crate) fn in_flight(
    (clients, pipeline): (u32, u32),
    requests: Option<u64>,
    value_bytes: usize,
) -> Result<(), String> {
    let product = u64::from(clients) * u64::from(pipeline);
    let count = product.min(requests.unwrap_or(u64::MAX));
    if count > IN_FLIGHT_MAX {
        return Err(format!(
            "-c {clients} times -P {pipeline} is `{count}` requests in flight (expected at most \
             {IN_FLIGHT_MAX})"
        ));
    }
    let (sent, memory) = (count as f64 * value_bytes as f64, memory_bytes());
    if too_large(sent, memory) {
        return Err(format!(
            "{count} requests in flight (-c {clients}, -P {pipeline}) of {value_bytes} bytes (-d) \
             need `{}` ({})",
            bytes(sent),
            expected(memory)
        ));
    }
    Ok(())
}

fn too_large(size: f64, memory: Option<u64>) -> bool {
    memory.is_some_and(|memory| size > memory as f64)
}

fn expected(memory: Option<u64>) -> String {
    let memory = memory.map_or_else(String::new, |bytes| format_bytes(bytes) + ", ");
    format!("expected at most {memory}the memory of this machine")
}

fn bytes(size: f64) -> String {
    format_bytes(size as u64)
}
