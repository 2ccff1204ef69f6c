//! What a server and the generator used in the course of a trial: samples, ten times a second.
//!
//! Counters are kept as they are read, counting up from whenever they began; rates follow from two
//! samples. So a sample that is late or missing makes nothing wrong.

use serde::{Deserialize, Serialize};

/// Time from one sample to the next, nanoseconds.
pub const SAMPLE_NS: u64 = 100_000_000;

/// One reading of everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Nanoseconds since the trial began.
    pub at_ns: u64,
    /// The private server's processes, all together; `None` where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ProcessUse>,
    /// This process.
    pub generator: ProcessUse,
    /// What the server tells about itself; `None` where it told nothing in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreCounters>,
    /// Traffic of the network interface that leads to the server; `None` for unix sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUse>,
}

/// What processes have used. Source: proc(5), `/proc/<pid>/stat`, `status` and `task`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// CPU time, threads that have ended included, nanoseconds.
    pub cpu_ns: u64,
    /// The threads that there are.
    pub threads: Vec<ThreadCpu>,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Memory swapped out, bytes.
    pub swapped_bytes: u64,
    /// Context switches because a thread waited, over the threads that there are.
    pub voluntary_switches: u64,
    /// Context switches because a thread's time was over.
    pub involuntary_switches: u64,
    /// Time in which threads were ready to run and waited for a CPU, nanoseconds.
    pub run_delay_ns: u64,
}

/// CPU time of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCpu {
    /// Its id.
    pub id: u32,
    /// Its name, as the kernel tells.
    pub name: String,
    /// CPU time, nanoseconds.
    pub cpu_ns: u64,
}

/// What a server tells about itself; each is `None` where this product does not tell it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoreCounters {
    /// Memory that its data take by its own account, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Limit of that, bytes; `None` also where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// Resident by used memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragmentation: Option<f64>,
    /// Keys that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
    /// Connections that are open, ours for sampling included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<u64>,
    /// Connections that it refused because there were too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Commands served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<u64>,
    /// Reads that found their key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// Reads that did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<u64>,
    /// Keys removed because memory was short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<u64>,
    /// Keys removed because their lifetime was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired: Option<u64>,
    /// Bytes received from clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Bytes sent to clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
}

/// Traffic of a network interface, seen from the host. Source: proc(5), `/proc/net/dev`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkUse {
    /// Name of the interface; on `lo` everything is counted as received and as sent.
    pub interface: String,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
}
