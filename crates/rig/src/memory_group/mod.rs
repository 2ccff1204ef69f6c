//! A private control group with a memory limit for the processes of a target, and optional swap
//! beyond that limit.
//!
//! Page cache is charged to the group that touches it first, so clients of files must be in the
//! group too: our own process joins while they work ([`MemoryGroup::enter`]). Its earlier
//! allocations stay charged to its previous group.
//!
//! - `place`: the limits of a group, and what it used.
//! - `swap`: the swap file.

mod place;
mod swap;

use crate::control_group::{GroupMembership, OwnGroup, Place};
use crate::error::Result;
use crate::guard::Guard;
use crate::usage::UsageReader;
use model::{MemoryPlan, MemoryUse};
use place::MEMORY;
pub use place::anonymous_bytes;
use std::path::Path;
use swap::Swap;

/// True if the kernel killed processes of a group for its limit, and none of these servers runs any
/// more. A killed child, such as one that saves, leaves its server running.
pub fn killed_by_limit(group: &Path, servers: &[u32]) -> bool {
    let has_ended = |pid: &u32| UsageReader::new(&[*pid]).read().is_none();
    place::oom_kills(group) > 0 && servers.iter().all(has_ended)
}

/// A group with its limit. Dropping it removes it; its processes must have ended before.
#[derive(Debug)]
pub struct MemoryGroup {
    // Removed before the swap, so that no page has to be read back.
    group: OwnGroup,
    plan: MemoryPlan,
    /// Pages that the machine had read from and written to swap before.
    swapped_before: (u64, u64),
    swap: Option<Swap>,
}

impl MemoryGroup {
    /// Creates a group with the planned limit of memory, including page cache. The planned swap is
    /// a file in a new directory in `parent`.
    ///
    /// Errors: the memory controller is missing, or we cannot create groups; a parent group has a
    /// lower limit; swap cannot be created. The message suggests a fix.
    pub fn new(guard: &Guard, plan: MemoryPlan, parent: &Path) -> Result<Self> {
        let place = Place::find(Path::new("/"), std::process::id(), &MEMORY)?;
        let bytes = Some(plan.swap_bytes).filter(|bytes| *bytes > 0);
        let swap = bytes.map(|bytes| Swap::on(guard, parent, bytes)).transpose()?;
        let group = OwnGroup::new(guard, place)?;
        let swapped_before = group.place.swapped();
        group.place.limit(&group.path, plan)?;
        Ok(Self { group, plan, swapped_before, swap })
    }

    /// Its directory in the file system of control groups.
    pub fn path(&self) -> &Path {
        &self.group.path
    }

    /// Its limits.
    pub fn plan(&self) -> MemoryPlan {
        self.plan
    }

    /// Moves this process into the group until the returned guard is dropped.
    pub fn enter(&self) -> Result<GroupMembership<'_>> {
        self.group.enter()
    }

    /// Memory used so far.
    pub fn usage(&self) -> Result<MemoryUse> {
        self.group.place.usage(&self.group.path, self.plan, self.swapped_before)
    }

    /// Removes it now and reports errors; after an error the guard tries again at the end.
    pub fn remove(self) -> Result<()> {
        let removed = self.group.remove();
        // Its processes have ended, so no page has to be read back.
        let swap = self.swap.map_or(Ok(()), Swap::remove);
        removed.and(swap)
    }
}
