//! A private control group with a memory limit for the processes of a target, and optional swap
//! beyond that limit.
//!
//! Page cache is charged to the group that touches it first, so clients of files must be in the
//! group too: our own process joins while they work ([`MemoryGroup::enter`]). Its earlier
//! allocations stay charged to its previous group. Except for moving our process back, we write
//! only to groups created here. A group's name identifies its creator (see `owner.rs`). The guard
//! owns the group before it is created, and removes it when its processes have ended.
//!
//! - `place`: version of control groups, and the directory in which groups are created.
//! - `swap`: the swap file.

mod place;
mod swap;

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::owner::{Owner, new_name};
use model::{MemoryPlan, MemoryUse};
use place::Place;
pub use place::anonymous_bytes;
pub(crate) use place::procs;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use swap::Swap;

/// Time that a group may need to become empty after its last process was waited for.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);

/// A group with its limit. Dropping it removes it; its processes must have ended before.
#[derive(Debug)]
pub struct MemoryGroup {
    place: Place,
    path: PathBuf,
    plan: MemoryPlan,
    /// Pages that the machine had read from and written to swap before.
    swapped_before: (u64, u64),
    swap: Option<Swap>,
    guard: Guard,
}

impl MemoryGroup {
    /// Creates a group with the planned limit of memory, including page cache, and the planned swap
    /// in its own file on the disk of `disk`.
    ///
    /// Errors: the memory controller is missing, or we cannot create groups; a parent group has a
    /// lower limit; swap cannot be created. The message suggests a fix.
    pub fn new(guard: &Guard, plan: MemoryPlan, disk: &Path) -> Result<Self> {
        let place = Place::find(Path::new("/"), std::process::id())?;
        let bytes = Some(plan.swap_bytes).filter(|bytes| *bytes > 0);
        let swap = bytes.map(|bytes| Swap::on(guard, disk, bytes)).transpose()?;
        let owner = guard.owner().map_or_else(String::new, Owner::suffix);
        loop {
            let path = place.parent.join(new_name() + &owner);
            // Registers it before it exists, so `kill -9` in between leaves nothing behind.
            guard.own_directory(&path)?;
            let made = fs::create_dir(&path);
            if made.is_err() {
                guard.disown_directory(&path)?;
            }
            match made {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(place.creation_error(&e)),
                Ok(()) => {}
            }
            let swapped_before = place.swapped();
            // From here on, a drop removes it.
            let group = Self { place, path, plan, swapped_before, swap, guard: guard.clone() };
            group.place.limit(&group.path, plan)?;
            return Ok(group);
        }
    }

    /// Its directory in the file system of control groups.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its limits.
    pub fn plan(&self) -> MemoryPlan {
        self.plan
    }

    /// Moves this process into the group until the returned guard is dropped.
    pub fn enter(&self) -> Result<GroupMembership<'_>> {
        move_to(&self.path)?;
        Ok(GroupMembership { group: self, inside: true })
    }

    /// Memory used so far.
    pub fn usage(&self) -> Result<MemoryUse> {
        self.place.usage(&self.path, self.plan, self.swapped_before)
    }

    /// Removes it now and reports errors; after an error the guard tries again at the end.
    pub fn remove(mut self) -> Result<()> {
        let removed = self.remove_now();
        // Its processes have ended, so no page has to be read back.
        let swap = self.swap.take().map_or(Ok(()), Swap::remove);
        removed.and(swap)
    }

    fn remove_now(&self) -> Result<()> {
        let deadline = Instant::now() + EMPTY_WITHIN;
        loop {
            match fs::remove_dir(&self.path) {
                Err(e) if e.kind() == ErrorKind::NotFound => break,
                Err(e) if Instant::now() >= deadline => {
                    return Err(RigError::io("remove control group", &self.path)(e));
                }
                // A process that was killed leaves its group a moment after it was waited for.
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
                Ok(()) => break,
            }
        }
        // Fails only if the guard has ended.
        let _ = self.guard.disown_directory(&self.path);
        Ok(())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // On failure it stays owned, and the guard tries again.
        let _ = self.remove_now();
    }
}

/// Membership of this process in a group; ends on drop.
#[derive(Debug)]
pub struct GroupMembership<'a> {
    group: &'a MemoryGroup,
    inside: bool,
}

impl GroupMembership<'_> {
    /// Moves this process back to its previous group.
    pub fn leave(mut self) -> Result<()> {
        self.inside = false;
        move_to(&self.group.place.own)
    }
}

impl Drop for GroupMembership<'_> {
    fn drop(&mut self) {
        if self.inside {
            // After an error or panic; if this fails, the group stays until this process ends.
            let _ = move_to(&self.group.place.own);
        }
    }
}

/// Moves this process, all of its threads, to the group of that directory.
fn move_to(group: &Path) -> Result<()> {
    let file = procs(group);
    let moved = fs::OpenOptions::new().write(true).open(&file);
    // 0 means the writing process.
    moved.and_then(|mut f| f.write_all(b"0")).map_err(RigError::io("move this process to", &file))
}
