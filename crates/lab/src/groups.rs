//! Control groups of a trial, and its network: limits of its target's memory, CPU time, disk and
//! bandwidth.

use model::{DiskLimit, Fact, Failure, MemoryPlan, MemoryUse};
use rig::{
    Cable, CpuGroup, DiskGroup, GroupMembership, Guard, MemoryGroup, Network, Purpose, SearchPath,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Limits that the kernel enforces; `None` for no limit.
pub(crate) struct Limits {
    pub(crate) memory: Option<MemoryPlan>,
    pub(crate) disk: Option<DiskLimit>,
    /// CPU time per time, in CPUs.
    pub(crate) quota: Option<f64>,
    /// Mbit/s in each direction.
    pub(crate) bandwidth_mbit: Option<f64>,
    /// True if the first server can be cut off from the others.
    pub(crate) is_partitioned: bool,
}

/// The groups that a target needs. Dropped after its servers.
#[derive(Default)]
pub(crate) struct Groups {
    // In the order of removal: in version 2, an earlier one can be a part of a later one.
    quota: Option<CpuGroup>,
    disk: Option<DiskGroup>,
    pub(crate) memory: Option<MemoryGroup>,
    network: Option<Arc<Network>>,
    /// The network of all servers but the first, and its connection with that of the first.
    others: Option<(Arc<Network>, Arc<Cable>)>,
}

impl Groups {
    /// Creates the groups for a target with its data in `disk` and its swap in `swap`. Errors: a
    /// limit cannot be enforced here.
    pub(crate) fn new(
        guard: &Guard,
        limits: &Limits,
        (disk, swap): (&Path, &Path),
        search: &SearchPath,
    ) -> Result<Self, Failure> {
        let memory = limits.memory.map(|plan| MemoryGroup::new(guard, plan, swap)).transpose()?;
        let of_disk = limits.disk.map(|limit| DiskGroup::new(guard, limit, disk, memory.as_ref()));
        let disk = of_disk.transpose()?;
        let mut groups = Self { quota: None, disk, memory, network: None, others: None };
        if let Some(quota) = limits.quota {
            let joined = groups.memory_path().or_else(|| groups.disk_path());
            groups.quota = Some(CpuGroup::new(guard, quota, joined.as_deref())?);
        }
        let mbit = limits.bandwidth_mbit;
        if mbit.is_some() || limits.is_partitioned {
            let of_tier = mbit.map(|_| Purpose::Bandwidth);
            let purpose = of_tier.unwrap_or(Purpose::Partition);
            let network = Arc::new(Network::new(purpose, mbit, search)?);
            if limits.is_partitioned {
                let others = Arc::new(Network::new(purpose, mbit, search)?);
                let cable = Cable::new([network.clone(), others.clone()])?;
                groups.others = Some((others, Arc::new(cable)));
            }
            groups.network = Some(network);
        }
        Ok(groups)
    }

    /// Directory of the group with the memory limit.
    pub(crate) fn memory_path(&self) -> Option<PathBuf> {
        self.memory.as_ref().map(|group| group.path().to_path_buf())
    }

    fn disk_path(&self) -> Option<PathBuf> {
        self.disk.as_ref().and_then(DiskGroup::path).map(Path::to_path_buf)
    }

    /// Directories of the groups besides that with the memory limit.
    pub(crate) fn other_paths(&self) -> Vec<PathBuf> {
        let quota = self.quota.as_ref().and_then(CpuGroup::path).map(Path::to_path_buf);
        self.disk_path().into_iter().chain(quota).collect()
    }

    /// Directory of the group with the quota of CPU time, which can be that of another limit.
    pub(crate) fn quota_path(&self) -> Option<PathBuf> {
        self.quota.as_ref().map(|group| group.stat_path().to_path_buf())
    }

    /// The servers' own network.
    pub(crate) fn network(&self) -> Option<Arc<Network>> {
        self.network.clone()
    }

    /// The network of all servers but the first; `None` if they are in the same.
    pub(crate) fn network_of_others(&self) -> Option<Arc<Network>> {
        self.others.as_ref().map(|(network, _)| network.clone())
    }

    /// The connection of the first server with the others; `None` if it cannot be cut.
    pub(crate) fn cable(&self) -> Option<Arc<Cable>> {
        self.others.as_ref().map(|(_, cable)| cable.clone())
    }

    /// Moves this process into the groups of memory and disk until the memberships end.
    pub(crate) fn enter(&self) -> Result<Vec<GroupMembership<'_>>, Failure> {
        let memory = self.memory.as_ref().map(MemoryGroup::enter).transpose()?;
        let disk = self.disk.as_ref().map(DiskGroup::enter).transpose()?.flatten();
        Ok(memory.into_iter().chain(disk).collect())
    }

    /// Memory used under the limit so far; `None` if there is no limit.
    pub(crate) fn memory_use(&self) -> Result<Option<MemoryUse>, Failure> {
        Ok(self.memory.as_ref().map(MemoryGroup::usage).transpose()?)
    }

    /// What went through the throttles of disk and CPU time so far; empty without them.
    pub(crate) fn throttled(&self) -> Vec<Fact> {
        let disk = self.disk.as_ref().map_or_else(Vec::new, DiskGroup::usage);
        let quota = self.quota.as_ref().map_or_else(Vec::new, CpuGroup::usage);
        [disk, quota].concat()
    }

    /// Removes them once their processes have ended.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        let quota = self.quota.map_or(Ok(()), CpuGroup::remove);
        let disk = self.disk.map_or(Ok(()), DiskGroup::remove);
        let memory = self.memory.map_or(Ok(()), MemoryGroup::remove);
        Ok(quota.and(disk).and(memory)?)
    }
}
