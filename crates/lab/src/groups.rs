//! Control groups of a trial: a memory limit of its target, and a limit of its disk.

use model::{DiskLimit, Fact, Failure, MemoryPlan, MemoryUse};
use rig::{DiskGroup, GroupMembership, Guard, MemoryGroup};
use std::path::{Path, PathBuf};

/// The groups that a target needs. Dropped after its servers.
#[derive(Default)]
pub(crate) struct Groups {
    // Removed first, since it can be a part of the other.
    disk: Option<DiskGroup>,
    pub(crate) memory: Option<MemoryGroup>,
}

impl Groups {
    /// Creates the groups for a target with its data in `disk` and its swap in `swap`. Errors: a
    /// limit cannot be enforced here.
    pub(crate) fn new(
        guard: &Guard,
        (memory, limit): (Option<MemoryPlan>, Option<DiskLimit>),
        (disk, swap): (&Path, &Path),
    ) -> Result<Self, Failure> {
        let memory = memory.map(|plan| MemoryGroup::new(guard, plan, swap)).transpose()?;
        let of_disk = limit.map(|limit| DiskGroup::new(guard, limit, disk, memory.as_ref()));
        Ok(Self { disk: of_disk.transpose()?, memory })
    }

    /// Directory of the group with the memory limit.
    pub(crate) fn memory_path(&self) -> Option<PathBuf> {
        self.memory.as_ref().map(|group| group.path().to_path_buf())
    }

    /// Directory of the group with the disk limit, unless it is that of the memory limit.
    pub(crate) fn disk_path(&self) -> Option<PathBuf> {
        self.disk.as_ref().and_then(DiskGroup::path).map(Path::to_path_buf)
    }

    /// Moves this process into all groups until the memberships end.
    pub(crate) fn enter(&self) -> Result<Vec<GroupMembership<'_>>, Failure> {
        let memory = self.memory.as_ref().map(MemoryGroup::enter).transpose()?;
        let disk = self.disk.as_ref().map(DiskGroup::enter).transpose()?.flatten();
        Ok(memory.into_iter().chain(disk).collect())
    }

    /// Memory used under the limit so far; `None` if there is no limit.
    pub(crate) fn memory_use(&self) -> Result<Option<MemoryUse>, Failure> {
        Ok(self.memory.as_ref().map(MemoryGroup::usage).transpose()?)
    }

    /// What went through the throttle of the disk so far; empty without one.
    pub(crate) fn disk_use(&self) -> Vec<Fact> {
        self.disk.as_ref().map_or_else(Vec::new, DiskGroup::usage)
    }

    /// Removes them once their processes have ended.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        let disk = self.disk.map_or(Ok(()), DiskGroup::remove);
        let memory = self.memory.map_or(Ok(()), MemoryGroup::remove);
        Ok(disk.and(memory)?)
    }
}
