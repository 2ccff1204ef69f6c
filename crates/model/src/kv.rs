//! The key-value workload of a cell.

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::memory::MemoryPlan;
use crate::phase::Phase;

/// The key-value workload of one cell, with texts as the user typed them. They are parsed by the
/// crate `workloads`, which has already checked them before planning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kv {
    /// Name of the workload in results, for example `ycsb-b`.
    pub profile: String,
    /// Name and command of each operation, with the product's command syntax.
    pub operations: Vec<KvOperation>,
    /// Keys that operations choose from.
    pub keys: u64,
    /// Distribution of accesses: `uniform`, `zipf:0.99`, …
    pub distribution: String,
    /// Prefix of every key.
    pub key_prefix: String,
    /// Length of a key's name in bytes; `None` for the prefix and twelve digits, `uuid` for the
    /// prefix and a UUID.
    pub key_bytes: Option<String>,
    /// Size of a value in bytes: `1024`, `64-4096`, `etc`, …; `json` for the JSON object of a user
    /// with UUIDs as names.
    pub value_bytes: String,
    /// TTL of written keys in seconds; 0 for none, or if operations have their own.
    pub ttl_s: u64,
    /// Share of the keys that exist before the first phase, 0 to 1.
    pub filled_share: f64,
    /// Keys filled per second; 0 for as many as the server takes.
    #[serde(default, skip_serializing_if = "crate::trial::is_zero")]
    pub fill_per_s: u64,
    /// One in this many values read is compared byte by byte; length is always checked.
    pub verify_one_in: u64,
    /// Threads of the generator.
    pub threads: u32,
    /// Pause of a client between its replies and its next operations, nanoseconds.
    pub think_ns: u64,
    /// True if each pause is uniformly random from 0 to `think_ns`, starting before a client's
    /// first operation.
    pub think_is_drawn: bool,
    /// True for chained operations: the load paces the first one, and the client sends the next
    /// ones in order on the same key, each after the successful reply to the one before.
    pub follows: bool,
    /// Memory limit of its private server; `None` for no limit.
    pub memory: Option<MemoryPlan>,
    /// Measured phases, in order.
    pub phases: Vec<Phase>,
    /// Actions on the target, by time within each phase.
    pub actions: Vec<Action>,
    /// Time after which a trial ends with a partial result, from when its store is ready; 0 for no
    /// limit.
    pub deadline_ns: u64,
    /// CPUs of each private server, the first of those that servers may use; `None` for all of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpus: Option<u32>,
}

impl Kv {
    /// Operations of a phase per paced one: itself and those chained to it.
    pub fn operations_of_one_paced(&self, phase: &Phase) -> usize {
        let all = if self.follows { self.operations.len() } else { 1 };
        phase.control.as_ref().map_or(all, |control| control.sequence.len()).max(1)
    }
}

/// One kind of key-value operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvOperation {
    /// Name in results: `get`, `set`, or the first word of the command.
    pub name: String,
    /// The command with its placeholders; `None` for the product's command of this name.
    pub command: Option<String>,
}
