//! Other processes on the CPUs of a measurement.

use serde::{Deserialize, Serialize};

/// Other processes on the CPUs of generator and servers, by sampling. They explain a disturbance;
/// no figure and no rule depends on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbers {
    /// At most five, in descending order of CPU time.
    pub most: Vec<Disturber>,
    /// True if the kernel dropped samples.
    pub incomplete: bool,
}

/// Processes with the same name, or a kernel thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturber {
    /// Name in the kernel, at most 15 bytes; `None` for a process that exited before it was named.
    pub name: Option<String>,
    /// Process id; of several processes, that of the busiest.
    pub pid: u32,
    /// Number of processes with this name.
    pub processes: u32,
    /// True for a kernel thread.
    pub is_kernel: bool,
    /// CPU time on these CPUs, nanoseconds, in multiples of the sampling interval.
    pub cpu_ns: u64,
}
