//! A control group of our own with a memory limit, for the processes of a target, and swap for what
//! is beyond.
//!
//! Page cache is charged to whom touches it first, so clients of files have to be in it as well:
//! our own process moves in for the time that they work ([`MemoryGroup::enter`]). What it had
//! allocated before stays charged where it was. Only groups that were made here are written to, but
//! for moving ourselves back to the group that we came from. A group's name
//! says who made it (see `owner.rs`). The guard knows of it before it is made, and removes it
//! when its processes have ended.
//!
//! - `place`: which version of control groups there is, and where a group can be made.
//! - `swap`: where what is beyond the limit goes.

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
    /// What the machine had read and written of swap before.
    swapped_before: (u64, u64),
    swap: Option<Swap>,
    guard: Guard,
}

impl MemoryGroup {
    /// Makes a group that takes at most that much memory, page cache included, and beyond it only
    /// the planned swap, in a file of its own on the disk of `disk`.
    ///
    /// Errors: control groups with a memory controller are missing or not ours to make; a group
    /// above allows less; there can be no swap. The text says what to do.
    pub fn new(guard: &Guard, plan: MemoryPlan, disk: &Path) -> Result<Self> {
        let place = Place::find(Path::new("/"), std::process::id())?;
        let bytes = Some(plan.swap_bytes).filter(|bytes| *bytes > 0);
        let swap = bytes.map(|bytes| Swap::on(guard, disk, bytes)).transpose()?;
        let owner = guard.owner().map_or_else(String::new, Owner::suffix);
        loop {
            let path = place.parent.join(new_name() + &owner);
            // Owned before it is there, so that `kill -9` in between leaves nothing.
            guard.own_directory(&path)?;
            let made = fs::create_dir(&path);
            if made.is_err() {
                guard.disown_directory(&path)?;
            }
            match made {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(place.refused(&e)),
                Ok(()) => {}
            }
            let swapped_before = place.swapped();
            // From here on, dropping it removes it.
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

    /// Moves this process into the group, until what is given back is dropped.
    pub fn enter(&self) -> Result<GroupMembership<'_>> {
        move_to(&self.path)?;
        Ok(GroupMembership { group: self, inside: true })
    }

    /// What was taken so far.
    pub fn usage(&self) -> Result<MemoryUse> {
        self.place.usage(&self.path, self.plan, self.swapped_before)
    }

    /// Removes it now, with a word when that fails; the guard then tries again in the end.
    pub fn remove(mut self) -> Result<()> {
        let removed = self.remove_now();
        // Its processes have ended, so that nothing has to be read back.
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
        // A guard that has ended needs no telling.
        let _ = self.guard.disown_directory(&self.path);
        Ok(())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // What cannot be removed stays owned, and the guard tries again.
        let _ = self.remove_now();
    }
}

/// This process is in a group.
#[derive(Debug)]
pub struct GroupMembership<'a> {
    group: &'a MemoryGroup,
    inside: bool,
}

impl GroupMembership<'_> {
    /// Moves this process back to where it came from.
    pub fn leave(mut self) -> Result<()> {
        self.inside = false;
        move_to(&self.group.place.own)
    }
}

impl Drop for GroupMembership<'_> {
    fn drop(&mut self) {
        if self.inside {
            // On the way of an error or a panic already; the group then stays until our end.
            let _ = move_to(&self.group.place.own);
        }
    }
}

/// Moves this process, all of its threads, to the group of that directory.
fn move_to(group: &Path) -> Result<()> {
    let file = procs(group);
    let moved = fs::OpenOptions::new().write(true).open(&file);
    // 0 stands for the process that writes.
    moved.and_then(|mut f| f.write_all(b"0")).map_err(RigError::io("move this process to", &file))
}
