//! Numbers about a store or its host.

use serde::{Deserialize, Serialize};

/// A number about a store or its host that is no time or count of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// A stable name, as metrics have it, for example `copied_bytes`.
    pub name: String,
    /// In the unit of the name's ending: `_bytes`, `_ns`, `_share`; else a count.
    pub value: f64,
    /// Who says so: `INFO`, `memory group`.
    pub source: String,
}

impl Fact {
    /// Name of what the kernel copied while servers saved.
    pub const COPIED_BYTES: &str = "copied_bytes";
    /// Name of how long a server stood still to begin a save.
    pub const FORK_NS: &str = "fork_ns";
    /// Name of the entries of tags' indexes that named a record which was gone, after the last
    /// phase.
    pub const STALE_MEMBERS: &str = "stale_members";
    /// Name of the blocks of the file system that the files take, once filled and before the first
    /// phase; 0 without files.
    pub const STORE_BYTES: &str = "store_bytes";
    /// Name of the resident memory of the private servers' processes, likewise.
    pub const SERVER_MEMORY_BYTES: &str = "server_memory_bytes";

    /// True where it is about the last save of a server, whenever that was.
    pub fn is_of_a_save(&self) -> bool {
        [Self::COPIED_BYTES, Self::FORK_NS].contains(&self.name.as_str())
    }
}
