//! Resource usage of server and generator during a trial, sampled ten times per second.
//!
//! Counters are stored cumulatively, as read; rates are differences of two samples, so a late or
//! missing sample does not distort them.

use crate::trial::BackgroundWrite;

/// Time from one sample to the next, nanoseconds.
pub const SAMPLE_NS: u64 = 100_000_000;

/// One reading of all counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Nanoseconds since the start of the trial.
    pub at_ns: u64,
    /// Total of the private server's processes; `None` if there are none.
    pub server: Option<ProcessUse>,
    /// CPU time of each of several private servers that run: process id and address.
    pub servers: Vec<ThreadCpu>,
    /// The part of it that is used by a proxy before the servers; `None` without one.
    pub proxy: Option<ProxyUse>,
    /// Usage of this process, the generator.
    pub generator: ProcessUse,
    /// Server statistics; `None` if the server did not report them in time.
    pub store: Option<StoreCounters>,
    /// Memory of the target's control group without page cache, bytes; `None` without a group.
    pub group_bytes: Option<u64>,
    /// Time for which the quota of the target's control group stopped its processes, nanoseconds,
    /// summed over CPUs; `None` without a quota.
    pub group_throttled_ns: Option<u64>,
    /// Traffic of the network interface towards the server; `None` for unix sockets.
    pub network: Option<NetworkUse>,
    /// Traffic of the disk with the target's data, of all processes; `None` without a block device.
    pub device: Option<DeviceUse>,
    /// Pressure on the whole machine; `None` if the kernel does not tell.
    pub pressure: Option<Pressure>,
    /// Pressure on the target's control group; also `None` without a group of version 2.
    pub group_pressure: Option<Pressure>,
}

/// An integer of a sample.
#[derive(Debug)]
pub struct Counter {
    /// Its name in files, such as `server_cpu_ns`.
    pub name: &'static str,
    /// Gets the number; `None` if it was not reported.
    pub read: fn(&Sample) -> Option<u64>,
    /// Sets the number.
    pub put: fn(&mut Sample, u64),
}

macro_rules! counter {
    (generator $field:ident) => {
        counter!("generator_", $field, |s| Some(s.generator.$field), |s, n| s.generator.$field = n)
    };
    (store $field:ident) => {
        counter!("store_", $field, |s| s.store.as_ref()?.$field, |s, n| {
            s.store.get_or_insert_default().$field = Some(n);
        })
    };
    ($side:ident $field:ident) => {
        counter!(
            concat!(stringify!($side), "_"),
            $field,
            |s| Some(s.$side.as_ref()?.$field),
            |s, n| {
                s.$side.get_or_insert_default().$field = n;
            }
        )
    };
    ($side:expr, $field:ident, $read:expr, $put:expr) => {
        Counter { name: concat!($side, stringify!($field)), read: $read, put: $put }
    };
}
macro_rules! counters {
    ($($side:ident: $($field:ident)+;)+) => {
        &[
            $($(counter!($side $field),)+)+
            Counter {
                name: "store_fragmentation_permille",
                read: |s| Some((s.store.as_ref()?.fragmentation? * 1e3).round() as u64),
                put: |s, n| s.store.get_or_insert_default().fragmentation = Some(n as f64 / 1e3),
            },
            Counter {
                name: "group_bytes",
                read: |s| s.group_bytes,
                put: |s, n| s.group_bytes = Some(n),
            },
            Counter {
                name: "group_throttled_ns",
                read: |s| s.group_throttled_ns,
                put: |s, n| s.group_throttled_ns = Some(n),
            },
        ]
    };
}

/// Every number of a sample except its time and those of threads, in column order.
pub const COUNTERS: &[Counter] = counters! {
    server: cpu_ns resident_bytes swapped_bytes voluntary_switches involuntary_switches
        run_delay_ns major_faults calls;
    generator: cpu_ns resident_bytes swapped_bytes voluntary_switches involuntary_switches
        run_delay_ns major_faults calls;
    store: used_bytes limit_bytes keys connections refused commands hits misses evicted expired
        saving rewriting received_bytes sent_bytes flash_hits;
    network: received_bytes sent_bytes received_packets sent_packets;
    device: read_bytes written_bytes reads writes;
    pressure: memory_some_ns memory_full_ns io_some_ns io_full_ns cpu_some_ns;
    group_pressure: memory_some_ns memory_full_ns io_some_ns io_full_ns cpu_some_ns;
    proxy: cpu_ns resident_bytes;
};

/// Resources used by a proxy before the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyUse {
    /// CPU time including ended threads, nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
}

/// Resources used by processes. Source: proc(5), `/proc/<pid>/task/<tid>/status` and `schedstat`,
/// `/proc/<pid>/stat` and `io`, and the process CPU clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// CPU time including ended threads, nanoseconds.
    pub cpu_ns: u64,
    /// Existing threads; empty if the kernel reports none. More than 32 threads are read and listed
    /// only in every second sample, more than 64 in every third, and so on. If there are many,
    /// threads with little CPU time are omitted.
    pub threads: Vec<ThreadCpu>,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Memory swapped out, bytes.
    pub swapped_bytes: u64,
    /// Voluntary context switches; ended threads count with their last reading.
    pub voluntary_switches: u64,
    /// Involuntary context switches; ended threads likewise.
    pub involuntary_switches: u64,
    /// Time for which threads were runnable and waited for a CPU, nanoseconds; likewise.
    pub run_delay_ns: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Calls of `read` and `write` and their variants, but not of `recv` and `send`; 0 if the
    /// kernel does not tell.
    pub calls: u64,
}

impl ProcessUse {
    /// Adds the resources and threads of another process.
    pub fn add(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.threads.extend(other.threads);
        self.resident_bytes += other.resident_bytes;
        self.swapped_bytes += other.swapped_bytes;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.run_delay_ns += other.run_delay_ns;
        self.major_faults += other.major_faults;
        self.calls += other.calls;
    }
}

/// Use of a whole disk since it was attached. Source: the kernel's page "Block layer statistics" on
/// `/sys/block/<dev>/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
}

/// Time in which tasks waited for something, since the machine or the group began: *some* if at
/// least one waited, *full* if none that could have run did anything else. Source: the kernel's
/// page "PSI - Pressure Stall Information".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Some task waited for memory, such as for a page on swap, nanoseconds.
    pub memory_some_ns: u64,
    /// All of them did.
    pub memory_full_ns: u64,
    /// Some task waited for a disk.
    pub io_some_ns: u64,
    /// All of them did.
    pub io_full_ns: u64,
    /// Some task waited for a CPU.
    pub cpu_some_ns: u64,
}

/// CPU time of a thread as last accounted by the kernel, at least at every timer tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadCpu {
    /// Thread id.
    pub id: u32,
    /// Thread name in the kernel.
    pub name: String,
    /// CPU time, nanoseconds.
    pub cpu_ns: u64,
}

/// Server statistics; each is `None` if the product does not report it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreCounters {
    /// Memory used by its data as the server reports it, bytes.
    pub used_bytes: Option<u64>,
    /// Limit of `used_bytes`, bytes; also `None` without a limit.
    pub limit_bytes: Option<u64>,
    /// Resident memory divided by used memory, to three decimals.
    pub fragmentation: Option<f64>,
    /// Number of keys.
    pub keys: Option<u64>,
    /// Open connections, including the one used for sampling.
    pub connections: Option<u64>,
    /// Connections refused because there were too many.
    pub refused: Option<u64>,
    /// Commands served.
    pub commands: Option<u64>,
    /// Reads that found their key.
    pub hits: Option<u64>,
    /// Reads that did not find their key.
    pub misses: Option<u64>,
    /// Keys removed because of the memory limit.
    pub evicted: Option<u64>,
    /// Keys removed because their TTL expired.
    pub expired: Option<u64>,
    /// Number of servers currently saving their data to disk.
    pub saving: Option<u64>,
    /// Number of servers currently rewriting their log of changes.
    pub rewriting: Option<u64>,
    /// Bytes received from clients.
    pub received_bytes: Option<u64>,
    /// Bytes sent to clients.
    pub sent_bytes: Option<u64>,
    /// Values that were read from the server's file of values, not from memory.
    pub flash_hits: Option<u64>,
}

impl StoreCounters {
    /// Number of servers currently writing this in the background.
    pub fn writing(&self, write: BackgroundWrite) -> Option<u64> {
        match write {
            BackgroundWrite::Save => self.saving,
            BackgroundWrite::Rewrite => self.rewriting,
        }
    }

    /// Combines the statistics of two servers: sums the numbers, and weights fragmentation by used
    /// memory.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (one, other) => one.or(other),
        };
        let resident = |c: &Self| Some(c.fragmentation? * c.used_bytes? as f64);
        let fragmentation = match (resident(self), resident(other)) {
            (Some(a), Some(b)) => {
                let used_bytes = sum(self.used_bytes, other.used_bytes).unwrap_or_default();
                Some(thousandths((a + b) / used_bytes as f64)).filter(|f| f.is_finite())
            }
            _ => self.fragmentation.or(other.fragmentation),
        };
        Self {
            used_bytes: sum(self.used_bytes, other.used_bytes),
            limit_bytes: sum(self.limit_bytes, other.limit_bytes),
            fragmentation,
            keys: sum(self.keys, other.keys),
            connections: sum(self.connections, other.connections),
            refused: sum(self.refused, other.refused),
            commands: sum(self.commands, other.commands),
            hits: sum(self.hits, other.hits),
            misses: sum(self.misses, other.misses),
            evicted: sum(self.evicted, other.evicted),
            expired: sum(self.expired, other.expired),
            saving: sum(self.saving, other.saving),
            rewriting: sum(self.rewriting, other.rewriting),
            received_bytes: sum(self.received_bytes, other.received_bytes),
            sent_bytes: sum(self.sent_bytes, other.sent_bytes),
            flash_hits: sum(self.flash_hits, other.flash_hits),
        }
    }

    /// Computes [`StoreCounters::fragmentation`]; `None` if no memory is used.
    pub fn fragmentation_of(resident_bytes: u64, used_bytes: u64) -> Option<f64> {
        (used_bytes > 0).then(|| thousandths(resident_bytes as f64 / used_bytes as f64))
    }
}

fn thousandths(ratio: f64) -> f64 {
    (ratio * 1e3).round() / 1e3
}

/// Traffic of a network interface as seen from the host. Source: proc(5), `/proc/net/dev`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkUse {
    /// Name of the interface; `lo` counts all traffic as both received and sent.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_two_servers_are_combined() {
        let one = StoreCounters {
            used_bytes: Some(1000),
            fragmentation: Some(1.5),
            hits: Some(3),
            keys: Some(1),
            ..StoreCounters::default()
        };
        let other = StoreCounters {
            used_bytes: Some(3000),
            fragmentation: Some(1.1),
            hits: Some(4),
            evicted: Some(2),
            ..StoreCounters::default()
        };
        let both = one.and(&other);
        // 1500 and 3300 bytes resident.
        assert_eq!(both.fragmentation, Some(1.2));
        assert_eq!((both.used_bytes, both.hits), (Some(4000), Some(7)));
        assert_eq!((both.keys, both.evicted, both.misses), (Some(1), Some(2), None));
        assert_eq!(one.and(&StoreCounters::default()), one);
        assert_eq!(StoreCounters::fragmentation_of(5, 0), None);
        assert_eq!(StoreCounters::fragmentation_of(2000, 1500), Some(1.333));
    }
}
