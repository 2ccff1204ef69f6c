//! What a plan does to a store before and besides its phases.

use crate::action::{Act, Action};
use crate::load::FILL;
use crate::plan::{Kv, Workload};
use crate::trial::BackgroundWrite;

impl Workload {
    /// Actions on the target.
    pub fn actions(&self) -> &[Action] {
        match self {
            Self::Sessions(_) | Self::AppCache(_) | Self::CacheAside(_) => &[],
            Self::Kv(kv) => &kv.actions,
        }
    }

    /// True if an action makes the servers write this in the background.
    pub fn requests(&self, write: BackgroundWrite) -> bool {
        self.actions().iter().any(|action| action.what.writes() == Some(write))
    }

    /// Name of the fault that an action causes; empty if none does.
    pub fn fault_name(&self) -> &'static str {
        let mut faults = self.actions().iter().filter_map(|action| action.what.fault());
        faults.next().map_or("", |fault| fault.name)
    }

    /// The action that the user's command carries out; `None` without one.
    pub fn by_command(&self) -> Option<Act> {
        Some(self.actions().iter().find(|action| action.by_command)?.what)
    }

    /// True if it may be part of a full resync of a reattached replica: the plan kills servers and
    /// does not request it.
    pub fn may_be_resync(&self, write: BackgroundWrite) -> bool {
        self.actions().iter().any(|action| action.what.interrupts_service())
            && !self.requests(write)
    }

    /// True if its target gets swap beyond its memory limit.
    pub fn swaps(&self) -> bool {
        self.memory().is_some_and(|memory| memory.swap_bytes > 0)
    }
}

impl Kv {
    /// Number of keys that exist before the first phase.
    pub fn filled_keys(&self) -> u64 {
        (self.keys as f64 * self.filled_share).round() as u64
    }

    /// The command that fills a key: that of the operation [`FILL`]; `None` for a plain `set`.
    pub fn fill(&self) -> Option<&str> {
        self.operations.iter().find(|o| o.name == FILL)?.command.as_deref()
    }
}
