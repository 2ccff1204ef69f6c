//! Where a group can be made, and how its limit is set and read, in both versions of control
//! groups. Sources: cgroups(7) and the kernel's pages "Memory Resource Controller" (version 1) and
//! "Control Group v2".
//!
//! Version 1: a group is made below our own. Version 2 forbids processes in a group that hands a
//! controller on to those below it (but for the root), so there a group is made beside our own,
//! below the parent that handed us the controller. To leave our own group is to leave its limit:
//! where it has one, that is refused.

use crate::error::{Result, RigError};
use crate::host::limits::{V1_MEMORY, V2, directories};
use crate::procfs::page_bytes;
use model::{ErrorClass, MemoryPlan, MemoryUse, SwapUse};
use stats::format_bytes;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The largest page of any machine that Linux runs on, bytes.
const PAGE_BYTES_MAX: u64 = 64 << 10;
/// The kernel's own default.
const SWAPPINESS: u64 = 60;

/// Version of control groups whose memory controller is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// Where groups are made.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) version: Version,
    /// Directory of the group that this process is in.
    pub(super) own: PathBuf,
    /// Directory in which groups are made.
    pub(super) parent: PathBuf,
    /// Where `/proc` is: `/`, or a directory in tests.
    root: PathBuf,
}

impl Place {
    /// Looks for the memory controller; `root` is where `/proc` and `/sys` are.
    pub(super) fn find(root: &Path, pid: u32) -> Result<Self> {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        // A group may be visible under another path than its own; the one that lists us is it.
        let lists_us = |directory: &String| {
            let list = fs::read_to_string(procs(&root.join(directory))).unwrap_or_default();
            list.lines().any(|line| line.parse() == Ok(pid))
        };
        let own_of = |controller, mounts: &[&str]| {
            directories(&groups, controller, mounts).into_iter().find(lists_us)
        };
        if let Some(own) = own_of("memory", &V1_MEMORY) {
            let own = root.join(own);
            let (version, parent) = (Version::V1, own.clone());
            return Ok(Self { version, own, parent, root: root.into() });
        }
        let Some(own) = own_of("", &V2) else {
            return Err(unfit(
                ErrorClass::Missing,
                "control groups are not there, or not visible from here (expected them at \
                 `/sys/fs/cgroup`)",
            ));
        };
        let above = Path::new(&own).parent().filter(|_| !V2.contains(&own.as_str()));
        let above = above.map(|above| root.join(above));
        let own = root.join(own);
        let parent = parent_of_version_2(&own, above)?;
        Ok(Self { version: Version::V2, own, parent, root: root.into() })
    }

    /// Sets the limits of a group that was made here: of memory, and of swap besides, which is
    /// forbidden where none is planned.
    pub(super) fn limit(&self, group: &Path, plan: MemoryPlan) -> Result<()> {
        let MemoryPlan { limit_bytes, swap_bytes } = plan;
        let (memory_above, swap_above) = match self.version {
            Version::V1 => limit_version_1(group, plan)?,
            Version::V2 => self.limit_version_2(group, plan)?,
        };
        // The kernel rounds a limit down to whole pages.
        let is_less = |above: u64, bytes: u64| above.saturating_add(PAGE_BYTES_MAX) <= bytes;
        for (what, bytes, above) in
            [("", limit_bytes, memory_above), (" of swap", swap_bytes, swap_above)]
        {
            if let Some(above) = above.filter(|above| is_less(*above, bytes)) {
                let (bytes, above) = (format_bytes(bytes), format_bytes(above));
                let why =
                    format!("{bytes}{what} is more than the {above} that a group above allows");
                return Err(unfit(ErrorClass::Full, &why));
            }
        }
        Ok(())
    }

    /// What the groups above allow, of memory and of swap; `None` for no limit.
    fn limit_version_2(
        &self,
        group: &Path,
        plan: MemoryPlan,
    ) -> Result<(Option<u64>, Option<u64>)> {
        let is_there = |name: &str| group.join(name).exists();
        set(group, "memory.max", plan.limit_bytes)?;
        if is_there("memory.swap.max") {
            set(group, "memory.swap.max", plan.swap_bytes)?;
        } else if plan.swap_bytes > 0 {
            return Err(unaccounted());
        } else if self.swaps() {
            return Err(unfit(
                ErrorClass::Other,
                "this kernel does not limit the swap of a group, which would hide the limit \
                 (expected no swap: `swapoff -a`)",
            ));
        }
        if plan.swap_bytes > 0 && number(&self.root.join("proc/sys/vm/swappiness")) == Some(0) {
            return Err(unfit(
                ErrorClass::Other,
                "vm.swappiness is 0, with which no group swaps (expected `sysctl \
                 vm.swappiness=60`)",
            ));
        }
        // Compressed pages would stay in memory, and the disk idle.
        if plan.swap_bytes > 0 && is_there("memory.zswap.max") {
            set(group, "memory.zswap.max", 0)?;
        }
        let least = |name: &str| {
            let above = self.parent.ancestors().take_while(|d| d.starts_with(&self.root));
            above.filter_map(|directory| number(&directory.join(name))).min()
        };
        Ok((least("memory.max"), least("memory.swap.max")))
    }

    fn swaps(&self) -> bool {
        // The first line is a heading.
        fs::read_to_string(self.root.join("proc/swaps")).is_ok_and(|s| s.lines().count() > 1)
    }

    /// What the machine has read and written of swap since it booted, pages.
    pub(super) fn swapped(&self) -> (u64, u64) {
        let text = fs::read_to_string(self.root.join("proc/vmstat")).unwrap_or_default();
        let pages = |name| word(&text, name).unwrap_or(0);
        (pages("pswpin"), pages("pswpout"))
    }

    /// What a group that was made here has taken; `before` is what [`Self::swapped`] gave then.
    pub(super) fn usage(
        &self,
        group: &Path,
        plan: MemoryPlan,
        before: (u64, u64),
    ) -> Result<MemoryUse> {
        let (peak, events) = match self.version {
            Version::V1 => ("memory.max_usage_in_bytes", "memory.oom_control"),
            Version::V2 => ("memory.peak", "memory.events"),
        };
        let file = group.join(events);
        let events = fs::read_to_string(&file).map_err(RigError::io("read", &file))?;
        let list = |name| stat(group, name).unwrap_or(0);
        Ok(MemoryUse {
            limit_bytes: plan.limit_bytes,
            peak_bytes: number(&group.join(peak)),
            page_cache_bytes: list("active_file") + list("inactive_file"),
            oom_kills: word(&events, "oom_kill").unwrap_or(0),
            swap: (plan.swap_bytes > 0).then(|| self.swap_usage(group, plan, before)),
        })
    }

    fn swap_usage(&self, group: &Path, plan: MemoryPlan, before: (u64, u64)) -> SwapUse {
        // Groups count since Linux 6.12, of version 2 only.
        let of_group = stat(group, "pswpin").zip(stat(group, "pswpout"));
        let of_machine = || {
            let (read, written) = self.swapped();
            (read.saturating_sub(before.0), written.saturating_sub(before.1))
        };
        let (read, written) = of_group.unwrap_or_else(of_machine);
        let now = match self.version {
            Version::V1 => stat(group, "swap"),
            Version::V2 => number(&group.join("memory.swap.current")),
        };
        SwapUse {
            limit_bytes: plan.swap_bytes,
            peak_bytes: number(&group.join("memory.swap.peak")),
            used_bytes: now.unwrap_or(0),
            read_bytes: read * page_bytes(),
            written_bytes: written * page_bytes(),
            of_machine: of_group.is_none(),
        }
    }

    /// Why a group could not be made.
    pub(super) fn refused(&self, error: &io::Error) -> RigError {
        let class = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ErrorClass::Denied
            }
            _ => ErrorClass::Other,
        };
        unfit(
            class,
            &format!(
                "no control group can be made in `{}`: {error} (expected root, or groups handed \
                 over as by `systemd-run --user --scope -p Delegate=yes`)",
                self.parent.display()
            ),
        )
    }
}

/// The group that hands the memory controller on to those below it: our own, or the one above.
fn parent_of_version_2(own: &Path, above: Option<PathBuf>) -> Result<PathBuf> {
    let hands_on = |group: &Path| {
        let list = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        list.split_ascii_whitespace().any(|controller| controller == "memory")
    };
    if hands_on(own) {
        return Ok(own.into());
    }
    let Some(above) = above.filter(|above| hands_on(above)) else {
        return Err(unfit(
            ErrorClass::Denied,
            &format!(
                "neither the control group `{}`, which holds processes, nor the one above hands \
                 the memory controller on (expected cachedyno in a group of its own, as by \
                 `systemd-run --scope -p Delegate=yes`)",
                own.display()
            ),
        ));
    };
    if let Some(limit) = number(&own.join("memory.max")) {
        return Err(unfit(
            ErrorClass::Denied,
            &format!(
                "the control group `{}` has a limit of {} itself, which a group beside it would \
                 leave (expected cachedyno in a group without `memory.max`)",
                own.display(),
                format_bytes(limit)
            ),
        ));
    }
    Ok(above)
}

/// What the groups above allow, of memory and of memory and swap together less our memory.
fn limit_version_1(group: &Path, plan: MemoryPlan) -> Result<(Option<u64>, Option<u64>)> {
    let MemoryPlan { limit_bytes, swap_bytes } = plan;
    set(group, "memory.limit_in_bytes", limit_bytes)?;
    // The second limit is that of memory and swap together. Where swap is not accounted for, no
    // swappiness means no swap.
    if group.join("memory.memsw.limit_in_bytes").exists() {
        set(group, "memory.memsw.limit_in_bytes", limit_bytes.saturating_add(swap_bytes))?;
    } else if swap_bytes > 0 {
        return Err(unaccounted());
    } else {
        set(group, "memory.swappiness", 0)?;
    }
    if swap_bytes > 0 && number(&group.join("memory.swappiness")) == Some(0) {
        set(group, "memory.swappiness", SWAPPINESS)?;
    }
    let both = stat(group, "hierarchical_memsw_limit");
    let swap = both.map(|both| both.saturating_sub(limit_bytes));
    Ok((stat(group, "hierarchical_memory_limit"), swap))
}

fn set(group: &Path, name: &str, value: u64) -> Result<()> {
    let file = group.join(name);
    fs::write(&file, value.to_string()).map_err(RigError::io("set", &file))
}

fn unaccounted() -> RigError {
    unfit(
        ErrorClass::Missing,
        "this kernel does not account for the swap of a group (expected `swapaccount=1` on its \
         command line)",
    )
}

fn unfit(class: ErrorClass, problem: &str) -> RigError {
    RigError::MemoryLimit { class, problem: problem.into() }
}

/// The only number of a file; `None` without the file, or where it says `max`.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn stat(group: &Path, name: &str) -> Option<u64> {
    word(&fs::read_to_string(group.join("memory.stat")).ok()?, name)
}

/// What the processes of a group have in memory besides the page cache, bytes; `None` where the
/// kernel does not tell.
pub fn anonymous_bytes(group: &Path) -> Option<u64> {
    let list = fs::read_to_string(group.join("memory.stat")).ok()?;
    // As versions 2 and 1 call it.
    word(&list, "anon").or_else(|| word(&list, "rss"))
}

/// The number after `name` at the start of a line.
fn word(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// The file that lists the processes of a group, and moves those whose ids are written to it.
pub(crate) fn procs(group: &Path) -> PathBuf {
    group.join("cgroup.procs")
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
