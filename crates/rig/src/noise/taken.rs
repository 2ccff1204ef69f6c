//! CPU time stolen from a measurement by other processes and the hypervisor.
//!
//! The kernel counts how long each runnable thread waits for a CPU (`schedstat`, second number:
//! Documentation/scheduler/sched-stats.rst). Part of that wait is self-inflicted: threads wait for
//! each other, and for a CPU to wake up. The wait attributed to other processes is therefore capped
//! at the time that these ran on the same CPUs: the busy time of the CPUs (`/proc/stat`, where idle
//! time is exact to a clock tick) minus the CPU time of generator and servers. Time stolen by the
//! hypervisor (`steal` in `/proc/stat`) is added, because no process can observe it; so is the time
//! for which the generator was [paused](super::pauses).

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use super::pauses::Pauses;
use crate::cpu::own_cpu_ns;
use crate::procfs::{SchedStat, ns_per_tick};
use crate::tree::ProcessTree;

/// Time that a thread waits for an otherwise idle CPU each time it wakes up, in nanoseconds.
const WAKE_NS: u64 = 10_000;

/// Stolen CPU time since the first reading, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StolenCpuTime {
    /// Time that the servers' threads waited while other processes ran on their CPUs, weighted by
    /// the work of each thread, plus the time stolen by the hypervisor; `None` without a server
    /// whose processes are visible.
    pub from_servers_ns: Option<u64>,
    /// Time that other processes ran on the generator's CPUs. The generator's threads measure their
    /// waits themselves.
    pub on_generator_ns: u64,
    /// CPU time of the generator's other processes on the same CPUs; 0 if there are none.
    pub by_siblings_ns: u64,
    /// Time stolen by the hypervisor from the generator's CPUs: the maximum over these CPUs. If the
    /// generator was paused for longer, that time.
    pub stolen_from_generator_ns: u64,
    /// Time for which the generator was paused.
    pub paused_ns: u64,
}

/// Accumulates stolen CPU time from one reading to the next.
#[derive(Debug)]
pub struct StolenCpuReader {
    generator: Vec<usize>,
    server: Vec<usize>,
    /// True if both can run on the same CPUs.
    is_shared: bool,
    servers: ProcessTree,
    /// True if these are other processes of the generator.
    are_siblings: bool,
    /// `None` if only servers are watched.
    pauses: Option<Pauses>,
    last: Option<Sample>,
    stolen: StolenCpuTime,
}

impl StolenCpuReader {
    /// A reader for a generator in this process, and for servers with their children. An empty list
    /// of CPUs means all of this machine. Its thread, which notices pauses of this process, uses
    /// about 0.1 % of a CPU.
    pub fn new(generator: &[usize], server: &[usize], servers: ProcessTree) -> Self {
        let pauses = Some(Pauses::watch());
        Self { pauses, ..Self::of_servers(generator, server, servers) }
    }

    /// The same without noticing pauses.
    pub fn of_servers(generator: &[usize], server: &[usize], servers: ProcessTree) -> Self {
        let overlaps = server.iter().any(|cpu| generator.contains(cpu));
        Self {
            generator: generator.to_vec(),
            server: server.to_vec(),
            is_shared: overlaps || generator.is_empty() || server.is_empty(),
            servers,
            are_siblings: false,
            pauses: None,
            last: None,
            stolen: StolenCpuTime::default(),
        }
    }

    /// A reader for a generator in this process, which other processes on the same CPUs belong to.
    pub fn beside(generator: &[usize], siblings: &[u32]) -> Self {
        // Without CPUs of their own, servers count as part of the generator.
        let reader = Self::new(generator, &[], ProcessTree::new(siblings));
        Self { are_siblings: true, ..reader }
    }

    /// Returns the CPU time stolen since the first reading. Once a server has ended, its value no
    /// longer grows.
    pub fn read(&mut self) -> StolenCpuTime {
        let since = self.last.as_ref().map_or_else(Instant::now, |last| last.at);
        let paused_ns = self.pauses.as_ref().map_or(0, |pauses| pauses.take_ns(since));
        let now = Sample::take(&self.servers);
        let has_servers = !self.servers.is_empty();
        let Some(before) = self.last.replace(now) else {
            self.stolen.from_servers_ns = has_servers.then_some(0);
            return self.stolen;
        };
        let Some(now) = &self.last else { return self.stolen };
        let own_ns = now.own_ns.saturating_sub(before.own_ns);
        let servers_ns = now.servers_ns.saturating_sub(before.servers_ns);
        let (on_generator_ns, on_server_ns) = if self.is_shared {
            (own_ns + servers_ns, own_ns + servers_ns)
        } else {
            (own_ns, servers_ns)
        };
        let generator = CpuSlice::of(&self.generator, (&before, now), on_generator_ns);
        self.stolen.on_generator_ns += generator.foreign_ns;
        self.stolen.by_siblings_ns += if self.are_siblings { servers_ns } else { 0 };
        self.stolen.paused_ns += paused_ns;
        self.stolen.stolen_from_generator_ns += generator.stolen_ns.max(paused_ns);
        let server = CpuSlice::of(&self.server, (&before, now), on_server_ns);
        let from_servers = self.stolen.from_servers_ns.as_mut();
        if let Some(from_servers_ns) = from_servers {
            let waited_ns = waited_ns(&before.threads, &now.threads);
            *from_servers_ns += waited_ns.min(server.foreign_ns) + server.stolen_ns;
        }
        self.stolen
    }
}

/// Time that others used on a set of CPUs between two readings, in nanoseconds.
struct CpuSlice {
    /// Used by other processes, sum of the CPUs.
    foreign_ns: u64,
    /// Stolen by the hypervisor, maximum over the CPUs.
    stolen_ns: u64,
}

impl CpuSlice {
    /// `ours_ns` is the time that generator and servers used on these CPUs.
    fn of(cpus: &[usize], (before, now): (&Sample, &Sample), ours_ns: u64) -> Self {
        let wall_ns = now.at.saturating_duration_since(before.at).as_nanos() as f64;
        let (mut busy_ns, mut stolen_ns) = (0.0, 0.0_f64);
        for (cpu, times) in now.cpus.iter().filter(|(cpu, _)| cpus.is_empty() || cpus.contains(cpu))
        {
            let Some(earlier) = before.cpus.get(cpu) else { continue };
            let since = |get: fn(&CpuTimes) -> u64| {
                get(times).saturating_sub(get(earlier)) as f64 * ns_per_tick()
            };
            let stolen = since(|t| t.stolen);
            busy_ns += (wall_ns - since(|t| t.idle) - stolen).max(0.0);
            stolen_ns = stolen_ns.max(stolen);
        }
        let foreign_ns = (busy_ns - ours_ns as f64).max(0.0) as u64;
        Self { foreign_ns, stolen_ns: stolen_ns as u64 }
    }
}

/// One reading.
#[derive(Debug)]
struct Sample {
    at: Instant,
    /// By CPU number.
    cpus: BTreeMap<usize, CpuTimes>,
    /// CPU time of this process, and of the servers with their children.
    own_ns: u64,
    servers_ns: u64,
    /// Threads of the servers, by id.
    threads: BTreeMap<u32, SchedStat>,
}

impl Sample {
    fn take(servers: &ProcessTree) -> Self {
        Self {
            at: Instant::now(),
            cpus: cpu_times(&fs::read_to_string("/proc/stat").unwrap_or_default()),
            own_ns: own_cpu_ns(),
            servers_ns: servers.cpu_ns().unwrap_or(0),
            threads: servers.roots().iter().flat_map(|pid| threads_of(*pid)).collect(),
        }
    }
}

/// Times of one CPU since boot, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTimes {
    /// Idle, including waiting for I/O.
    idle: u64,
    stolen: u64,
}

/// Parses the lines `cpuN user nice system idle iowait irq softirq steal …` of `/proc/stat`.
fn cpu_times(text: &str) -> BTreeMap<usize, CpuTimes> {
    let line = |line: &str| {
        let (number, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
        let mut fields = fields.split_ascii_whitespace().skip(3).map(str::parse::<u64>);
        let mut next = || fields.next()?.ok();
        let idle = next()? + next()?;
        let (_irq, _softirq) = (next()?, next()?);
        Some((number.parse().ok()?, CpuTimes { idle, stolen: next()? }))
    };
    text.lines().filter_map(line).collect()
}

fn threads_of(pid: u32) -> Vec<(u32, SchedStat)> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let read = |entry: fs::DirEntry| {
        let times = SchedStat::parse(&fs::read(entry.path().join("schedstat")).ok()?)?;
        Some((entry.file_name().to_str()?.parse().ok()?, times))
    };
    entries.filter_map(read).collect()
}

/// Mean time that threads waited for a CPU between two readings, in nanoseconds. Each thread is
/// weighted by its CPU time plus its wait, so a sleeping thread counts for nothing and a starved
/// thread counts fully. Wake-up latency is excluded.
fn waited_ns(before: &BTreeMap<u32, SchedStat>, now: &BTreeMap<u32, SchedStat>) -> u64 {
    let (mut weights, mut sum) = (0.0, 0.0);
    for (id, times) in now {
        let earlier = before.get(id).copied().unwrap_or_default();
        let since = |get: fn(&SchedStat) -> u64| get(times).saturating_sub(get(&earlier));
        let waited_ns = since(|t| t.waited_ns).saturating_sub(since(|t| t.runs) * WAKE_NS) as f64;
        let weight = since(|t| t.cpu_ns) as f64 + waited_ns;
        weights += weight;
        sum += weight * waited_ns;
    }
    if weights > 0.0 { (sum / weights) as u64 } else { 0 }
}

#[cfg(test)]
#[path = "taken_tests.rs"]
mod tests;
