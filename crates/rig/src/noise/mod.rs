//! Disturbances of a measurement: other processes, the hypervisor, pressure, late wake-ups.
//!
//! Sources: proc(5) for `/proc/stat` and `schedstat`, the kernel's "PSI" page for
//! `/proc/pressure`.

mod disturbers;
mod hiccup;
mod others;
mod pauses;
mod taken;

pub(crate) use disturbers::is_permitted;
pub use taken::{StolenCpuReader, StolenCpuTime};

use crate::cpu::own_cpu_ns;
use crate::pressure::total_us;
use crate::procfs::ns_per_tick;
use crate::tree::ProcessTree;
use disturbers::Watch;
use hiccup::Hiccups;
use model::Noise;
use others::OtherProcesses;
use std::fs;
use std::time::Instant;

/// Records disturbances from [`NoiseRecorder::start`] to [`NoiseRecorder::stop`]. Dropping it also
/// ends its thread.
#[derive(Debug)]
pub struct NoiseRecorder {
    before: Sample,
    servers: ProcessTree,
    hiccups: Hiccups,
    /// `None` if the kernel does not permit it.
    watch: Option<Watch>,
}

impl NoiseRecorder {
    /// Starts recording. The thread that measures late wake-ups runs on `generator`'s CPUs (on any
    /// if the list is empty) and uses less than 0.5 % of one CPU. CPU time of the processes
    /// `servers` and their children does not count as other processes. Other processes are sampled
    /// on the CPUs of the generator and of `server`; an empty list means all CPUs of the machine.
    pub fn start(generator: &[usize], server: &[usize], servers: &ProcessTree) -> Self {
        let hiccups = Hiccups::start(generator);
        let watch = Watch::start(generator, server, servers);
        Self { before: Sample::take(servers), servers: servers.clone(), hiccups, watch }
    }

    /// Stops recording and returns the noise; `run_delay_share` is 0, for the caller to fill in. If
    /// a server has exited since the start, its CPU time counts as other processes.
    pub fn stop(self) -> Noise {
        let after = Sample::take(&self.servers);
        let (hiccup_ns_max, hiccup_ns_p99) = self.hiccups.stop();
        let disturbers = self.watch.and_then(Watch::stop);
        Noise { hiccup_ns_max, hiccup_ns_p99, disturbers, ..self.before.until(&after) }
    }
}

/// CPU times of the whole host since boot, in clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    /// Spent in processes: user, nice and system. Interrupts are excluded, because the process CPU
    /// clocks that are subtracted may exclude them too.
    processes: u64,
    /// Stolen by the hypervisor.
    steal: u64,
    /// Total, including idle time.
    all: u64,
}

impl CpuTicks {
    /// Parses the first line of `/proc/stat`; `None` if its format is unknown.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields: Vec<u64> =
            line.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // user nice system idle iowait irq softirq steal; guest times are within user and nice.
        let fields = fields.get(..8)?;
        Some(Self {
            processes: fields[..3].iter().sum(),
            steal: fields[7],
            all: fields.iter().sum(),
        })
    }

    /// Share of all CPU time since boot that the hypervisor gave to others.
    pub(crate) fn steal_share(self) -> f64 {
        share(self.steal as f64, self.all as f64)
    }
}

#[derive(Clone, Debug)]
struct Sample {
    at: Instant,
    ticks: CpuTicks,
    /// Microseconds of `some` pressure since boot: cpu, io, memory.
    pressure_us: [Option<u64>; 3],
    own_ns: u64,
    server_ns: u64,
    others: OtherProcesses,
}

impl Sample {
    fn take(servers: &ProcessTree) -> Self {
        Self {
            at: Instant::now(),
            ticks: fs::read_to_string("/proc/stat")
                .ok()
                .and_then(|text| CpuTicks::parse(&text))
                .unwrap_or_default(),
            pressure_us: ["cpu", "io", "memory"].map(|kind| {
                total_us(&fs::read_to_string(format!("/proc/pressure/{kind}")).ok()?, "some ")
            }),
            own_ns: own_cpu_ns(),
            server_ns: servers.cpu_ns().unwrap_or(0),
            others: OtherProcesses::now(&servers.pids()),
        }
    }

    fn until(&self, after: &Self) -> Noise {
        let wall_us = after.at.saturating_duration_since(self.at).as_micros() as f64;
        let pressure = |kind: usize| {
            let spent = after.pressure_us[kind]?.saturating_sub(self.pressure_us[kind]?);
            Some(share(spent as f64, wall_us))
        };
        let ticks =
            |get: fn(&CpuTicks) -> u64| get(&after.ticks).saturating_sub(get(&self.ticks)) as f64;
        let ours_ns = after.own_ns.saturating_sub(self.own_ns)
            + after.server_ns.saturating_sub(self.server_ns);
        let others = ticks(|t| t.processes) - ours_ns as f64 / ns_per_tick();
        Noise {
            steal_share: share(ticks(|t| t.steal), ticks(|t| t.all)),
            psi_cpu_some_share: pressure(0),
            psi_io_some_share: pressure(1),
            psi_memory_some_share: pressure(2),
            other_cpu_share: share(others, ticks(|t| t.all)),
            busiest: self.others.busiest_until(&after.others),
            ..Noise::default()
        }
    }
}

/// `part / whole`, clamped to 0..=1; 0 if `whole` is 0. Ticks are coarse, so their difference to
/// exact clocks can be slightly negative.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests;
