//! Limits of the machine and the generator, measured without a real server.
//!
//! A [`NullRate`] is measured in a run, with the load of one of its cells. A [`Calibration`] is
//! measured once per machine and copied into every later record.

use serde::{Deserialize, Serialize};

/// Version of the stored calibration that this code writes and reads.
pub const CALIBRATION_FORMAT: u32 = 1;

/// Minimum ratio of the generator's rate on the null server to the target's rate. Below it, more
/// than half of a request's time can be spent in the generator and the kernel.
pub const NULL_FACTOR_MIN: f64 = 2.0;

/// Random error of one null-server measurement, as a share of [`NULL_FACTOR_MIN`]. Within this
/// distance of the limit, the rule gives no verdict.
pub const NULL_FACTOR_CHANCE: f64 = 0.1;

/// Rate of the generator on the null server with the load of one phase of a key-value cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NullRate {
    /// Id of the cell.
    pub cell: String,
    /// Name of the phase.
    pub phase: String,
    /// Requests answered per second under a closed load without think time; `None` if not measured.
    pub rate_per_s: Option<f64>,
    /// Reason why it was not measured; `None` if it was.
    pub not_checked: Option<String>,
    /// CPUs that the run assigns to the target if it starts it; at least 1.
    pub server_cpus: u32,
}

/// Properties of the machine that a calibration depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Hash of the machine's id, from which the id cannot be recovered: 16 hexadecimal characters.
    pub machine: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the CPU.
    pub cpu: String,
    /// CPU numbers of the generator.
    pub generator_cpus: Vec<usize>,
    /// CPU numbers of the server.
    pub server_cpus: Vec<usize>,
}

impl Host {
    /// Describes the first difference from `other`; `None` for the same host and pinning.
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

/// Rate, and the generator's CPU time per request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Requests answered per second.
    pub rate_per_s: f64,
    /// CPU time of the generator per request in user mode, nanoseconds.
    pub user_ns_per_op: f64,
    /// CPU time of the generator per request in the kernel, nanoseconds.
    pub system_ns_per_op: f64,
}

impl Cost {
    /// CPU time of the generator per request, nanoseconds.
    pub fn cpu_ns_per_op(&self) -> f64 {
        self.user_ns_per_op + self.system_ns_per_op
    }
}

/// Cost of one shape of request on the null server.
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
    /// A loop that writes the same batch repeatedly and counts the reply bytes.
    pub bare: Cost,
    /// CPU time of the engine divided by that of the bare loop.
    pub engine_to_bare: f64,
}

/// The clock used for all timing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Name of the kernel's clock source; empty if the kernel does not report it.
    pub source: String,
    /// Resolution that the kernel reports, nanoseconds.
    pub resolution_ns: u64,
    /// Cost of one reading, nanoseconds.
    pub reading_ns: f64,
}

/// Percentiles and maximum of a distribution of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayPercentiles {
    /// Median, nanoseconds.
    pub ns_p50: u64,
    /// 99th percentile, nanoseconds.
    pub ns_p99: u64,
    /// 99.9th percentile, nanoseconds.
    pub ns_p999: u64,
    /// Maximum, nanoseconds.
    pub ns_max: u64,
}

/// Pauses of a thread that only reads the clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    /// Share of the time spent in pauses of more than 1 ms.
    pub share_over_1ms: f64,
    /// The longest pause, nanoseconds.
    pub ns_max: u64,
}

/// Lag of requests under an open load on the null server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadLag {
    /// Planned requests per second: half the rate reached on the null server.
    pub rate_per_s: f64,
    /// Sent − intended start.
    pub lag: DelayPercentiles,
}

/// Limits of this machine, and the cost of the generator on it.
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
    /// The machine it was measured on.
    pub host: Host,
    /// Clients in every load.
    pub clients: u32,
    /// Size of every value, bytes.
    pub value_bytes: usize,
    /// Measured shapes.
    pub shapes: Vec<ShapeCost>,
    /// The clock.
    pub clock: Clock,
    /// Wake-up delay of a thread that sleeps 1 ms.
    pub timer: DelayPercentiles,
    /// Pauses of a thread that never sleeps.
    pub pauses: Pauses,
    /// Lag under load.
    pub load: LoadLag,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_difference_names_the_first_differing_property() {
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
