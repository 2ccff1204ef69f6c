//! Statistics of a store or its host.

use serde::{Deserialize, Serialize};

use super::happened::BackgroundWrite;

/// A statistic of a store or its host that is not part of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// A stable name like those of metrics, for example `fork_ns`.
    pub name: String,
    /// Value in the unit of the name's suffix (`_bytes`, `_ns`, `_share`), otherwise a count.
    pub value: f64,
    /// Source: `INFO`, `memory group`.
    pub source: String,
}

impl Fact {
    /// Time that a server was blocked by its last fork for a save or a rewrite.
    pub const FORK_NS: &str = "fork_ns";
    /// Entries of tag indexes that refer to missing records, after the last phase.
    pub const STALE_MEMBERS: &str = "stale_members";
    /// File system blocks used by the files after the fill and before the first phase, bytes; 0
    /// without files.
    pub const STORE_BYTES: &str = "store_bytes";
    /// Resident memory of the private servers' processes after the fill and before the first phase.
    pub const SERVER_MEMORY_BYTES: &str = "server_memory_bytes";
    /// Memory of the private servers' processes in transparent huge pages after the fill and before
    /// the first phase, bytes.
    pub const HUGE_PAGE_BYTES: &str = "huge_page_bytes";
    /// Memory copied while a server sent its data to one that was restored.
    pub const RESYNC_COPIED_BYTES: &str = "resync_copied_bytes";
    /// Memory of a key on a server that reports it, at the end of the trial.
    pub const BYTES_PER_KEY: &str = "bytes_per_key";
    /// Memory of a key whose value is in the server's file, at the end of the trial.
    pub const FLASH_KEY_BYTES: &str = "flash_key_bytes";
    /// Growth of the memory that private servers report as used during the fill, by sessions
    /// filled.
    pub const SESSION_MEMORY_BYTES: &str = "session_memory_bytes";
    /// Growth of the resident memory of the private servers' processes during the fill, by sessions
    /// filled.
    pub const SESSION_RESIDENT_BYTES: &str = "session_resident_bytes";
    /// Growth of the files or of the table with its indexes during the fill, by sessions filled.
    pub const SESSION_DISK_BYTES: &str = "session_disk_bytes";

    /// Read from a throttled disk by the target's clients and servers, bytes.
    pub const DISK_READ_BYTES: &str = "disk_read_bytes";
    /// Written to a throttled disk through the throttle, bytes.
    pub const DISK_WRITTEN_BYTES: &str = "disk_written_bytes";
    /// Reads from a throttled disk.
    pub const DISK_READS: &str = "disk_reads";
    /// Writes to a throttled disk through the throttle.
    pub const DISK_WRITES: &str = "disk_writes";

    /// Periods of a quota of CPU time, from the start of the servers to the end of the trial.
    pub const CPU_PERIODS: &str = "cpu_periods";
    /// Those in which the servers used up the quota.
    pub const CPU_PERIODS_THROTTLED: &str = "cpu_periods_throttled";
    /// Time for which the quota stopped them, summed over CPUs.
    pub const CPU_THROTTLED_NS: &str = "cpu_throttled_ns";

    /// What it is about, if servers write that in the background, at any time; empty if nothing.
    pub fn about(&self) -> Vec<BackgroundWrite> {
        let is_own = |write: &BackgroundWrite| {
            self.name == Self::FORK_NS || self.name == write.copied_bytes()
        };
        BackgroundWrite::ALL.into_iter().filter(is_own).collect()
    }
}
