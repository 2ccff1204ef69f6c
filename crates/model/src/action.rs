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
}

impl Act {
    /// What it makes the servers write in the background; `None` if nothing.
    pub fn writes(self) -> Option<BackgroundWrite> {
        match self {
            Self::Save => Some(BackgroundWrite::Save),
            Self::Rewrite => Some(BackgroundWrite::Rewrite),
            Self::KillPrimary => None,
        }
    }

    /// Reason why a product does not support it, as a predicate after the product's name.
    pub(crate) fn cannot(self) -> &'static str {
        match self {
            Self::Save => "cannot save its data in the background",
            Self::Rewrite => "has no log of changes to rewrite",
            Self::KillPrimary => "has no primary to kill",
        }
    }

    /// True if it interrupts service for a while.
    pub fn interrupts_service(self) -> bool {
        match self {
            Self::Save | Self::Rewrite => false,
            Self::KillPrimary => true,
        }
    }
}
