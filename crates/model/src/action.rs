//! What a run does to a target in the course of a phase, besides its load.

use serde::{Deserialize, Serialize};

/// Something that is done to a target at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Name of the phase.
    pub phase: String,
    /// When, nanoseconds since the phase's measurement began.
    pub at_ns: u64,
    /// What is done.
    pub what: Act,
}

/// What can be done to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// Each server saves its data to disk in the background, as `BGSAVE` does.
    Save,
    /// The server that is the primary ends at once, as by `kill -9`.
    KillPrimary,
}

impl Act {
    /// What a product is without to which it cannot be done, behind its name.
    pub(crate) fn cannot(self) -> &'static str {
        match self {
            Self::Save => "does not save its data while it serves",
            Self::KillPrimary => "has no primary to be killed",
        }
    }

    /// True where clients cannot be served for a while.
    pub fn takes_service_away(self) -> bool {
        match self {
            Self::Save => false,
            Self::KillPrimary => true,
        }
    }
}
