//! What the machine and the generator can do, beside what servers do on it.
//!
//! A [`NullRate`] is measured in a run, with the load of one of its own cells. A [`Calibration`] is
//! measured once a machine, and a copy of it is in every later record.

use serde::{Deserialize, Serialize};

/// Version of the stored calibration that this code writes and reads.
pub const CALIBRATION_FORMAT: u32 = 1;

/// How many times the target's rate the generator must reach on a server that does nothing. Below
/// it, more than half of the time of a request may be the generator's and the kernel's.
pub const NULL_FACTOR_MIN: f64 = 2.0;

/// How far from that limit one measurement of the null server may be by chance, as a share of it.
/// So near to it the rule decides nothing.
pub const NULL_FACTOR_CHANCE: f64 = 0.1;

/// What the generator reached on the null server with the load of one phase of a key-value cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NullRate {
    /// Id of the cell.
    pub cell: String,
    /// Name of the phase.
    pub phase: String,
    /// Requests answered per second, of a closed load without thinking; `None` when not measured.
    pub rate_per_s: Option<f64>,
    /// Why it was not measured; `None` when it was.
    pub not_checked: Option<String>,
    /// CPUs that the run gives to the target, when it starts it; at least 1.
    pub server_cpus: u32,
}

/// Which machine, as far as a calibration depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// A number that follows from the machine's id but does not tell it: 16 hexadecimal characters.
    pub machine: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the CPU.
    pub cpu: String,
    /// Numbers of the CPUs of the generator.
    pub generator_cpus: Vec<usize>,
    /// Numbers of the CPUs of the server.
    pub server_cpus: Vec<usize>,
}

impl Host {
    /// What differs from `other`, in words; `None` for the same host with the same pinning.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let cpus = |host: &Self| format!("{:?} and {:?}", host.generator_cpus, host.server_cpus);
        let pairs = [
            ("machine", self.machine.clone(), other.machine.clone()),
            ("kernel", self.kernel.clone(), other.kernel.clone()),
            ("CPU", self.cpu.clone(), other.cpu.clone()),
            ("pinning to CPUs", cpus(self), cpus(other)),
        ];
        let (name, own, theirs) = pairs.into_iter().find(|(_, own, theirs)| own != theirs)?;
        Some(format!("{name} `{own}`, not `{theirs}`"))
    }
}

/// CPU time by request and thread, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Requests answered per second.
    pub rate_per_s: f64,
    /// CPU time of the generator by request in user mode, nanoseconds.
    pub user_ns_per_op: f64,
    /// CPU time of the generator by request in the kernel, nanoseconds.
    pub system_ns_per_op: f64,
}

impl Cost {
    /// CPU time of the generator by request, nanoseconds.
    pub fn cpu_ns_per_op(&self) -> f64 {
        self.user_ns_per_op + self.system_ns_per_op
    }
}

/// Requests of one shape on the null server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapeCost {
    /// `unix` or `tcp`.
    pub socket: String,
    /// `get` or `set`.
    pub operation: String,
    /// Requests that a client sends at once.
    pub pipeline: u32,
    /// The wire engine, with one thread.
    pub engine: Cost,
    /// A loop that writes the same batch again and again and counts the bytes that come back.
    pub bare: Cost,
    /// CPU time of the engine by that of the bare loop.
    pub engine_to_bare: f64,
}

/// The clock that everything is timed by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Name of the kernel's clock source; empty where the kernel does not say.
    pub source: String,
    /// Resolution as the kernel states it, nanoseconds.
    pub resolution_ns: u64,
    /// What a reading costs, nanoseconds.
    pub reading_ns: f64,
}

/// A distribution of times, by three of its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// Median, nanoseconds.
    pub ns_p50: u64,
    /// 99th percentile, nanoseconds.
    pub ns_p99: u64,
    /// 99.9th percentile, nanoseconds.
    pub ns_p999: u64,
    /// The longest, nanoseconds.
    pub ns_max: u64,
}

/// What a thread suffered that only read the clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    /// Share of the time that lay in pauses of more than 1 ms.
    pub share_over_1ms: f64,
    /// The longest pause, nanoseconds.
    pub ns_max: u64,
}

/// How late requests left under an open load on the null server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadLag {
    /// Requests a second that were planned: half of what the null server reached.
    pub rate_per_s: f64,
    /// Sent − intended start.
    pub lag: Late,
}

/// What this machine can do, and what the generator costs on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`CALIBRATION_FORMAT`] of the writer.
    pub format: u32,
    /// Version and commit of cachedyno.
    pub tool: String,
    /// Wall-clock start, milliseconds since 1970-01-01 UTC.
    pub started_unix_ms: u64,
    /// Length of each measurement, nanoseconds.
    pub measured_ns: u64,
    /// Where it was measured.
    pub host: Host,
    /// Clients of every load.
    pub clients: u32,
    /// Bytes of every value.
    pub value_bytes: usize,
    /// Every shape that was measured.
    pub shapes: Vec<ShapeCost>,
    /// The clock.
    pub clock: Clock,
    /// By how much a thread that sleeps 1 ms wakes too late.
    pub timer: Late,
    /// Pauses of a thread that never sleeps.
    pub pauses: Pauses,
    /// Lag under load.
    pub load: LoadLag,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_differ_by_what_calibrations_depend_on() {
        let host = Host {
            machine: "0123456789abcdef".into(),
            kernel: "6.1".into(),
            cpu: "a".into(),
            generator_cpus: vec![0],
            server_cpus: vec![1],
        };
        assert_eq!(host.difference(&host.clone()), None);
        let other = Host { cpu: "b".into(), ..host.clone() };
        assert_eq!(other.difference(&host).as_deref(), Some("CPU `b`, not `a`"));
        let other = Host { server_cpus: vec![0], ..host.clone() };
        let text = other.difference(&host).unwrap();
        assert_eq!(text, "pinning to CPUs `[0] and [0]`, not `[0] and [1]`");
    }
}
