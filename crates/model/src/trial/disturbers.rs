//! Who else ran on the CPUs of a measurement.

use serde::{Deserialize, Serialize};

/// Who else ran on the CPUs of generator and servers, by samples of what runs there. It explains a
/// disturbance; no figure and no rule depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbers {
    /// At most five, those that ran most first.
    pub most: Vec<Disturber>,
    /// True where the kernel has dropped samples.
    pub incomplete: bool,
}

/// Processes of one name, or a thread of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturber {
    /// As the kernel names it, at most 15 bytes; `None` for a process that ended unnamed.
    pub name: Option<String>,
    /// Id of the process; where there are several of the name, of the one that ran most.
    pub pid: u32,
    /// How many processes of the name there were.
    pub processes: u32,
    /// True for a thread of the kernel.
    pub is_kernel: bool,
    /// How long they ran on these CPUs, nanoseconds, in steps of the time between two samples.
    pub cpu_ns: u64,
}
