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
    /// An operator asks for a failover, as with `SENTINEL FAILOVER`, `CLUSTER FAILOVER` or
    /// `FAILOVER`.
    FailOver,
    /// Slots move from the first shard of a cluster to the second.
    MigrateSlots,
    /// A killed server starts again and follows the new primary; one that hangs continues.
    Restore,
}

/// Property of each kind.
struct Properties {
    /// What it makes the servers write in the background.
    writes: Option<BackgroundWrite>,
    /// Reason why a product does not support it, as a predicate after the product's name.
    cannot: &'static str,
    /// True if clients may get no answers, or errors, for a while.
    interrupts: bool,
}

impl Act {
    /// Name of the fault, as in `[[profiles]]` of a study; empty for actions that are none.
    pub fn fault(self) -> &'static str {
        match self {
            Self::KillPrimary => "kill",
            Self::HangPrimary => "hang",
            Self::RestartPrimary => "restart",
            Self::FailOver => "failover",
            Self::MigrateSlots => "migration",
            Self::Save | Self::Rewrite | Self::Restore => "",
        }
    }

    fn properties(self) -> Properties {
        let (writes, cannot, interrupts) = match self {
            Self::Save => {
                (Some(BackgroundWrite::Save), "cannot save its data in the background", false)
            }
            Self::Rewrite => {
                (Some(BackgroundWrite::Rewrite), "has no log of changes to rewrite", false)
            }
            Self::KillPrimary => (None, "has no primary to kill", true),
            Self::HangPrimary => (None, "has no primary to stop", true),
            Self::RestartPrimary => (None, "has no primary to restart", true),
            Self::FailOver => (None, "has no failover", true),
            Self::MigrateSlots => (None, "has no slots to migrate", true),
            Self::Restore => (None, "has no server to restore", true),
        };
        Properties { writes, cannot, interrupts }
    }

    /// What it makes the servers write in the background; `None` if nothing.
    pub fn writes(self) -> Option<BackgroundWrite> {
        self.properties().writes
    }

    /// Reason why a product does not support it, as a predicate after the product's name.
    pub(crate) fn cannot(self) -> &'static str {
        self.properties().cannot
    }

    /// True if clients may get no answers, or errors, for a while.
    pub fn interrupts_service(self) -> bool {
        self.properties().interrupts
    }
}
