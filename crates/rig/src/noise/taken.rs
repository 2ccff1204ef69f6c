//! What others took of the CPUs of a measurement: other processes, and the hypervisor.
//!
//! Threads that are ready to run and wait count that wait themselves (`schedstat`, its second
//! number: Documentation/scheduler/sched-stats.rst). Part of it is their own doing: they wait for
//! each other, and for a CPU that wakes up. So no more of it is put down to others than these ran
//! on the same CPUs: the time in which a CPU was busy (`/proc/stat`, where idle time is exact to a
//! clock tick) less the CPU time of generator and servers. Time that the hypervisor gave to others
//! (`steal` there) comes on top: no process can see it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use crate::cpu::own_cpu_ns;
use crate::procfs::{SchedStat, ns_per_tick};
use crate::tree::ProcessTree;

/// What a thread waits for its CPU each time it wakes up, with nobody else there, nanoseconds.
const WAKE_NS: u64 = 10_000;

/// What others took until now, nanoseconds since the first reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How long the servers' threads waited while others ran on their CPUs, those that worked more
    /// counting more, and how long the hypervisor had these; `None` where there is no server whose
    /// processes can be seen.
    pub from_servers_ns: Option<u64>,
    /// How long other processes ran on the generator's CPUs: its threads know themselves how long
    /// they waited.
    pub on_generator_ns: u64,
    /// How long the hypervisor had the generator's CPUs, the most of any of them.
    pub stolen_from_generator_ns: u64,
}

/// Reads it again and again.
#[derive(Debug)]
pub struct TakenReader {
    generator: Vec<usize>,
    server: Vec<usize>,
    /// True where both may run on the same CPUs.
    is_shared: bool,
    servers: ProcessTree,
    last: Option<Sample>,
    taken: Taken,
}

impl TakenReader {
    /// For a generator in this process, and servers with their children; empty lists of CPUs stand
    /// for all of this machine.
    pub fn new(generator: &[usize], server: &[usize], servers: ProcessTree) -> Self {
        let overlaps = server.iter().any(|cpu| generator.contains(cpu));
        Self {
            generator: generator.to_vec(),
            server: server.to_vec(),
            is_shared: overlaps || generator.is_empty() || server.is_empty(),
            servers,
            last: None,
            taken: Taken::default(),
        }
    }

    /// What was taken since the first reading. Where a server has ended, nothing more is taken from
    /// it.
    pub fn read(&mut self) -> Taken {
        let now = Sample::take(&self.servers);
        let has_servers = !self.servers.is_empty();
        let Some(before) = self.last.replace(now) else {
            self.taken.from_servers_ns = has_servers.then_some(0);
            return self.taken;
        };
        let Some(now) = &self.last else { return self.taken };
        let own_ns = now.own_ns.saturating_sub(before.own_ns);
        let servers_ns = now.servers_ns.saturating_sub(before.servers_ns);
        let (on_generator_ns, on_server_ns) = if self.is_shared {
            (own_ns + servers_ns, own_ns + servers_ns)
        } else {
            (own_ns, servers_ns)
        };
        let generator = Share::of(&self.generator, (&before, now), on_generator_ns);
        self.taken.on_generator_ns += generator.foreign_ns;
        self.taken.stolen_from_generator_ns += generator.stolen_ns;
        let server = Share::of(&self.server, (&before, now), on_server_ns);
        let from_servers = self.taken.from_servers_ns.as_mut();
        if let Some(from_servers_ns) = from_servers {
            let waited_ns = waited_ns(&before.threads, &now.threads);
            *from_servers_ns += waited_ns.min(server.foreign_ns) + server.stolen_ns;
        }
        self.taken
    }
}

/// What others had of some CPUs between two readings, nanoseconds.
struct Share {
    foreign_ns: u64,
    /// Of the CPU of which the hypervisor took most.
    stolen_ns: u64,
}

impl Share {
    /// `ours_ns` is what generator and servers used of them.
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
    /// By number.
    cpus: BTreeMap<usize, CpuTimes>,
    /// CPU time of this process, and of the servers with their children.
    own_ns: u64,
    servers_ns: u64,
    /// Of the servers, by id.
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

/// Of one CPU since boot, clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTimes {
    /// Without work, waiting for a disk included.
    idle: u64,
    stolen: u64,
}

/// The lines `cpuN user nice system idle iowait irq softirq steal …` of `/proc/stat`.
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

/// How long threads waited for a CPU between two readings, in the mean of all by what each of them
/// worked or would have worked: one that sleeps says nothing, and one that never gets a CPU says
/// most. Waking up is not counted.
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
