//! Sets and reads memory limits, for both versions of control groups. Sources: the kernel's pages
//! "Memory Resource Controller" (version 1) and "Control Group v2".

use crate::control_group::{Controller, Place, Version, set, word};
use crate::error::{Result, RigError};
use crate::host::limits::V1_MEMORY;
use crate::procfs::page_bytes;
use model::{ErrorClass, MemoryPlan, MemoryUse, SwapUse};
use stats::format_bytes;
use std::fs;
use std::path::Path;

/// Largest page size of all machines supported by Linux, bytes.
const PAGE_BYTES_MAX: u64 = 64 << 10;
/// The kernel's default.
const SWAPPINESS: u64 = 60;

/// The controller of memory.
pub(super) static MEMORY: Controller = Controller {
    v1: "memory",
    mounts: &V1_MEMORY,
    v2: "memory",
    limit: "memory.max",
    error: limit_error,
};

impl Place {
    /// Sets the memory limit of a group that was created here, and its swap limit; without planned
    /// swap, swapping is disabled.
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
                    format!("{bytes}{what} is more than the {above} that a parent group allows");
                return Err(limit_error(ErrorClass::Full, &why));
            }
        }
        Ok(())
    }

    /// Sets the limits, and returns those of the parent groups for memory and swap; `None` for no
    /// limit.
    fn limit_version_2(
        &self,
        group: &Path,
        plan: MemoryPlan,
    ) -> Result<(Option<u64>, Option<u64>)> {
        let has_file = |name: &str| group.join(name).exists();
        set(group, "memory.max", &plan.limit_bytes)?;
        if has_file("memory.swap.max") {
            set(group, "memory.swap.max", &plan.swap_bytes)?;
        } else if plan.swap_bytes > 0 {
            return Err(unaccounted());
        } else if self.swaps() {
            return Err(limit_error(
                ErrorClass::Other,
                "this kernel cannot limit the swap of a group, so the memory limit would have no \
                 effect (expected no swap: `swapoff -a`)",
            ));
        }
        if plan.swap_bytes > 0 && number(&self.root.join("proc/sys/vm/swappiness")) == Some(0) {
            return Err(limit_error(
                ErrorClass::Other,
                "vm.swappiness is 0, so no group swaps (expected `sysctl \
                 vm.swappiness=60`)",
            ));
        }
        // zswap would keep compressed pages in memory and leave the disk idle.
        if plan.swap_bytes > 0 && has_file("memory.zswap.max") {
            set(group, "memory.zswap.max", &0)?;
        }
        let least = |name: &str| {
            let above = self.parent.ancestors().take_while(|d| d.starts_with(&self.root));
            above.filter_map(|directory| number(&directory.join(name))).min()
        };
        Ok((least("memory.max"), least("memory.swap.max")))
    }

    fn swaps(&self) -> bool {
        // The first line is a header.
        fs::read_to_string(self.root.join("proc/swaps")).is_ok_and(|s| s.lines().count() > 1)
    }

    /// Pages that the machine has read from and written to swap since boot.
    pub(super) fn swapped(&self) -> (u64, u64) {
        let text = fs::read_to_string(self.root.join("proc/vmstat")).unwrap_or_default();
        let pages = |name| word(&text, name).unwrap_or(0);
        (pages("pswpin"), pages("pswpout"))
    }

    /// Memory usage of a group created here; `before` is the value of [`Self::swapped`] at its
    /// creation.
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
        // Counted per group since Linux 6.12, in version 2 only.
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
}

/// Sets the limits, and returns those of the parent groups: for memory, and for swap (memory and
/// swap combined, minus our memory limit).
fn limit_version_1(group: &Path, plan: MemoryPlan) -> Result<(Option<u64>, Option<u64>)> {
    let MemoryPlan { limit_bytes, swap_bytes } = plan;
    set(group, "memory.limit_in_bytes", &limit_bytes)?;
    // `memsw` limits memory and swap combined. Without swap accounting, swappiness 0 disables swap.
    if group.join("memory.memsw.limit_in_bytes").exists() {
        set(group, "memory.memsw.limit_in_bytes", &limit_bytes.saturating_add(swap_bytes))?;
    } else if swap_bytes > 0 {
        return Err(unaccounted());
    } else {
        set(group, "memory.swappiness", &0)?;
    }
    if swap_bytes > 0 && number(&group.join("memory.swappiness")) == Some(0) {
        set(group, "memory.swappiness", &SWAPPINESS)?;
    }
    let both = stat(group, "hierarchical_memsw_limit");
    let swap = both.map(|both| both.saturating_sub(limit_bytes));
    Ok((stat(group, "hierarchical_memory_limit"), swap))
}

fn unaccounted() -> RigError {
    limit_error(
        ErrorClass::Missing,
        "this kernel does not account swap per group (expected `swapaccount=1` on its \
         command line)",
    )
}

fn limit_error(class: ErrorClass, problem: &str) -> RigError {
    RigError::MemoryLimit { class, problem: problem.into() }
}

/// The number in a file; `None` if the file is missing or contains `max`.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn stat(group: &Path, name: &str) -> Option<u64> {
    word(&fs::read_to_string(group.join("memory.stat")).ok()?, name)
}

/// Processes of a group that the kernel killed because its limit was reached; 0 if that cannot be
/// read.
pub(super) fn oom_kills(group: &Path) -> u64 {
    // In versions 2 and 1.
    let mut files = ["memory.events", "memory.oom_control"].into_iter();
    let kills =
        files.find_map(|name| word(&fs::read_to_string(group.join(name)).ok()?, "oom_kill"));
    kills.unwrap_or(0)
}

/// Memory of a group's processes without the page cache, bytes; `None` if the kernel does not
/// report it.
pub fn anonymous_bytes(group: &Path) -> Option<u64> {
    let list = fs::read_to_string(group.join("memory.stat")).ok()?;
    // Names in versions 2 and 1.
    word(&list, "anon").or_else(|| word(&list, "rss"))
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
