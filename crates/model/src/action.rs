//! Planned actions on a target during a phase, in addition to the load.

use serde::{Deserialize, Serialize};

use crate::trial::BackgroundWrite;

/// A planned action on a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Name of the phase.
    pub phase: String,
    /// Time since the start of the phase's measurement, nanoseconds.
    pub at_ns: u64,
    /// Kind of action.
    pub what: Act,
    /// True if the user's command carries it out, on a server that cachedyno did not start.
    #[serde(default)]
    pub by_command: bool,
}

/// Kind of action on a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Each server saves its data to disk in the background, as with `BGSAVE`.
    Save,
    /// Each server rewrites its log of changes in the background, as with `BGREWRITEAOF`.
    Rewrite,
    /// The primary is killed, as with `kill -9`.
    KillPrimary,
    /// The primary hangs, as with `kill -STOP`.
    HangPrimary,
    /// The primary shuts down, and starts again as soon as it has.
    RestartPrimary,
    /// The primary and the other servers no longer reach each other; clients reach both.
    PartitionPrimary,
    /// An operator asks for a failover, as with `SENTINEL FAILOVER`, `CLUSTER FAILOVER` or
    /// `FAILOVER`.
    FailOver,
    /// Slots move from the first shard of a cluster to the second.
    MigrateSlots,
    /// A killed server starts again and follows the new primary; one that hangs continues; a
    /// partition ends.
    Restore,
}

/// What a fault is called, and how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name in study files and tables.
    pub name: &'static str,
    /// What happens, to follow "through" in a sentence.
    pub phrase: &'static str,
    /// True if [`Act::Restore`] ends it.
    pub is_restored: bool,
}

/// Properties of a kind.
struct Properties {
    /// What it makes the servers write in the background.
    writes: Option<BackgroundWrite>,
    /// Reason why a product does not support it, as a predicate after the product's name.
    cannot: &'static str,
    /// The fault that it causes.
    fault: Option<Fault>,
}

impl Act {
    /// Kinds that cause a fault.
    const FAULTS: [Self; 6] = [
        Self::KillPrimary,
        Self::HangPrimary,
        Self::RestartPrimary,
        Self::PartitionPrimary,
        Self::FailOver,
        Self::MigrateSlots,
    ];

    fn properties(self) -> Properties {
        let writing = |writes, cannot| Properties { writes: Some(writes), cannot, fault: None };
        let fault = |cannot, name, phrase, is_restored| {
            let fault = Some(Fault { name, phrase, is_restored });
            Properties { writes: None, cannot, fault }
        };
        match self {
            Self::Save => writing(BackgroundWrite::Save, "cannot save its data in the background"),
            Self::Rewrite => writing(BackgroundWrite::Rewrite, "has no log of changes to rewrite"),
            Self::KillPrimary => {
                fault("has no primary to kill", "kill", "the death of its primary", true)
            }
            Self::HangPrimary => {
                fault("has no primary to stop", "hang", "a hang of its primary", true)
            }
            Self::RestartPrimary => {
                fault("has no primary to restart", "restart", "a restart of its primary", false)
            }
            Self::PartitionPrimary => fault(
                "has no primary to partition",
                "partition",
                "a partition between its primary and the other servers",
                true,
            ),
            Self::FailOver => fault("has no failover", "failover", "a failover on request", false),
            Self::MigrateSlots => {
                fault("has no slots to migrate", "migration", "a migration of slots", false)
            }
            Self::Restore => {
                Properties { writes: None, cannot: "has no server to restore", fault: None }
            }
        }
    }

    /// The kind that causes the fault of this name.
    pub fn of_fault(name: &str) -> Option<Self> {
        Self::FAULTS.into_iter().find(|act| act.fault().is_some_and(|fault| fault.name == name))
    }

    /// Names of all faults.
    pub fn fault_names() -> Vec<&'static str> {
        Self::FAULTS.iter().filter_map(|act| Some(act.fault()?.name)).collect()
    }

    /// What it makes the servers write in the background; `None` if nothing.
    pub fn writes(self) -> Option<BackgroundWrite> {
        self.properties().writes
    }

    /// Reason why a product does not support it, as a predicate after the product's name.
    pub(crate) fn cannot(self) -> &'static str {
        self.properties().cannot
    }

    /// The fault that it causes; `None` if it causes none.
    pub fn fault(self) -> Option<Fault> {
        self.properties().fault
    }

    /// Name of the fault that it causes; empty if it causes none.
    pub fn fault_name(self) -> &'static str {
        self.fault().map_or("", |fault| fault.name)
    }

    /// True if clients may get no answers, or errors, for a while.
    pub fn interrupts_service(self) -> bool {
        self.fault().is_some() || self == Self::Restore
    }
}
