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
use model::{ErrorClass, MemoryUse};
use stats::format_bytes;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The largest page of any machine that Linux runs on, bytes.
const PAGE_BYTES_MAX: u64 = 64 << 10;

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

    /// Sets the limit of a group that was made here, and forbids it to swap.
    pub(super) fn limit(&self, group: &Path, limit_bytes: u64) -> Result<()> {
        let set = |name: &str, value: &str| {
            let file = group.join(name);
            fs::write(&file, value).map_err(RigError::io("set", &file))
        };
        let bytes = limit_bytes.to_string();
        let above = match self.version {
            Version::V1 => {
                set("memory.limit_in_bytes", &bytes)?;
                // The second limit is that of memory and swap together. Where swap is not
                // accounted for, no swappiness means no swap.
                if group.join("memory.memsw.limit_in_bytes").exists() {
                    set("memory.memsw.limit_in_bytes", &bytes)?;
                } else {
                    set("memory.swappiness", "0")?;
                }
                stat(group, "hierarchical_memory_limit")
            }
            Version::V2 => {
                set("memory.max", &bytes)?;
                if group.join("memory.swap.max").exists() {
                    set("memory.swap.max", "0")?;
                } else if self.swaps() {
                    return Err(unfit(
                        ErrorClass::Other,
                        "this kernel does not limit the swap of a group, which would hide the \
                         limit (expected no swap: `swapoff -a`)",
                    ));
                }
                let above = self.parent.ancestors().take_while(|d| d.starts_with(&self.root));
                above.filter_map(|directory| number(&directory.join("memory.max"))).min()
            }
        };
        // The kernel rounds a limit down to whole pages.
        let less = |above: &u64| above / PAGE_BYTES_MAX < limit_bytes / PAGE_BYTES_MAX;
        match above.filter(less) {
            None => Ok(()),
            Some(above) => {
                let (limit, above) = (format_bytes(limit_bytes), format_bytes(above));
                let what = format!("{limit} is more than the {above} that a group above allows");
                Err(unfit(ErrorClass::Full, &what))
            }
        }
    }

    fn swaps(&self) -> bool {
        // The first line is a heading.
        fs::read_to_string(self.root.join("proc/swaps")).is_ok_and(|s| s.lines().count() > 1)
    }

    /// What a group that was made here has taken.
    pub(super) fn usage(&self, group: &Path, limit_bytes: u64) -> Result<MemoryUse> {
        let (peak, events) = match self.version {
            Version::V1 => ("memory.max_usage_in_bytes", "memory.oom_control"),
            Version::V2 => ("memory.peak", "memory.events"),
        };
        let file = group.join(events);
        let events = fs::read_to_string(&file).map_err(RigError::io("read", &file))?;
        let list = |name| stat(group, name).unwrap_or(0);
        Ok(MemoryUse {
            limit_bytes,
            peak_bytes: number(&group.join(peak)),
            page_cache_bytes: list("active_file") + list("inactive_file"),
            oom_kills: word(&events, "oom_kill").unwrap_or(0),
        })
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
