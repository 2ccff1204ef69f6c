//! What a run needs besides its plan.

use model::{Endpoint, Plan, PlannedTarget};
use rig::{Guard, Pinning};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fleet::{Fleet, RigOn};

/// What a run needs besides its plan: directories, CPUs, and endpoints with credentials.
pub struct Setup {
    /// Cleans up every process and directory should this process die.
    pub guard: Guard,
    /// Directory on the disk under test: data of private servers and files, unless their target has
    /// its own directory.
    pub disk: PathBuf,
    /// CPUs of the generator and of the servers.
    pub pinning: Pinning,
    /// Endpoints of existing targets, by target name.
    pub endpoints: BTreeMap<String, Endpoint>,
    /// True if existing stores may contain data that is not ours.
    pub allow_shared: bool,
    /// True if an earlier process started this run; it may have left data in existing stores.
    pub resumes: bool,
    /// Protection of data on existing servers.
    pub protection: Protection,
    /// Workers that offer the loads; `None` if this process does.
    pub fleet: Option<Fleet>,
    /// The machine on which private servers run; `None` for this one.
    pub rig_on: Option<Arc<RigOn>>,
    /// The user's command that interrupts the service of servers at a URL; run by `sh -c`.
    pub fault_command: Option<String>,
}

/// Protection of data on existing servers against evictions and user-defined commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// All checks.
    #[default]
    Full,
    /// The same, except that a server without any keys may be filled beyond its memory.
    EmptyMayFill,
    /// No checks: the user confirms that the servers contain nobody else's data.
    Off,
}

impl Setup {
    /// Why no more trials can be measured; `None` while its workers and the servers' machine are
    /// there.
    pub(crate) fn lost(&self) -> Option<String> {
        let machine = || self.rig_on.as_ref().and_then(|rig| rig.lost());
        self.fleet.as_ref().and_then(Fleet::lost).or_else(machine)
    }

    /// Directory in which a private store of the target gets its own.
    pub fn disk_of<'a>(&'a self, target: &'a PlannedTarget) -> &'a Path {
        target.directory.as_deref().unwrap_or(&self.disk)
    }

    /// Directory for the swap of a target.
    pub(crate) fn swap_of<'a>(&'a self, plan: &'a Plan, target: &'a PlannedTarget) -> &'a Path {
        plan.swap_dir.as_deref().unwrap_or_else(|| self.disk_of(target))
    }

    /// Every directory in which a target has its data on this machine, by target: that of a private
    /// store, or the one that the user named by a URL. An A/A control is left out.
    pub fn disks<'a>(&'a self, plan: &'a Plan) -> Vec<(&'a str, &'a Path)> {
        let targets = plan.targets.iter().filter(|target| target.control_of.is_none());
        let disks = targets.filter_map(|target| match self.endpoints.get(&target.name) {
            Some(endpoint) => Some((&*target.name, endpoint.directory()?)),
            None => Some((&*target.name, self.disk_of(target))),
        });
        disks.collect()
    }
}
