//! Control groups of our own, for both versions. Sources: cgroups(7) and the kernel's page "Control
//! Group v2".
//!
//! Version 1: groups are created below our own. Version 2 forbids processes in a group that
//! delegates a controller to its children (except the root), so groups are created next to our own,
//! below the parent that delegates the controller. Leaving our own group would escape its limits,
//! so that is refused if it has one.
//!
//! Except for moving our process back, we write only to groups created here. A group's name
//! identifies its creator (see `owner.rs`). The guard owns the group before it is created, and
//! removes it when its processes have ended.

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::host::limits::{V2, directories};
use crate::owner::{Owner, new_name};
use model::ErrorClass;
use stats::format_bytes;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time that a group may need to become empty after its last process was waited for.
const EMPTY_WITHIN: Duration = Duration::from_secs(5);

/// Version of control groups whose controller is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// A controller, by its names in both versions.
#[derive(Debug)]
pub(crate) struct Controller {
    /// Name in version 1.
    pub(crate) v1: &'static str,
    /// Usual mount points in version 1.
    pub(crate) mounts: &'static [&'static str],
    /// Name in version 2.
    pub(crate) v2: &'static str,
    /// File of a group's own limit in version 2.
    pub(crate) limit: &'static str,
    /// The error for a class and a problem.
    pub(crate) error: fn(ErrorClass, &str) -> RigError,
}

/// Location of new groups of a controller.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) version: Version,
    /// Directory of the group that this process is in.
    pub(crate) own: PathBuf,
    /// Directory in which groups are created.
    pub(crate) parent: PathBuf,
    /// Directory that contains `proc`: `/`, or another one in tests.
    pub(crate) root: PathBuf,
    controller: &'static Controller,
}

impl Place {
    /// Finds a controller; `root` is the directory that contains `proc` and `sys`.
    pub(crate) fn find(root: &Path, pid: u32, controller: &'static Controller) -> Result<Self> {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        // A group can be visible under a different path; take the one that lists our process.
        let lists_us = |directory: &String| {
            let list = fs::read_to_string(procs(&root.join(directory))).unwrap_or_default();
            list.lines().any(|line| line.parse() == Ok(pid))
        };
        let own_of = |controller, mounts: &[&str]| {
            directories(&groups, controller, mounts).into_iter().find(lists_us)
        };
        if let Some(own) = own_of(controller.v1, controller.mounts) {
            let own = root.join(own);
            let (version, parent) = (Version::V1, own.clone());
            return Ok(Self { version, own, parent, root: root.into(), controller });
        }
        let Some(own) = own_of("", &V2) else {
            return Err((controller.error)(
                ErrorClass::Missing,
                "control groups do not exist or are not visible from here (expected them at \
                 `/sys/fs/cgroup`)",
            ));
        };
        let above = Path::new(&own).parent().filter(|_| !V2.contains(&own.as_str()));
        let above = above.map(|above| root.join(above));
        let own = root.join(own);
        let parent = parent_of_version_2(controller, &own, above)?;
        Ok(Self { version: Version::V2, own, parent, root: root.into(), controller })
    }

    /// The error for a group that could not be created.
    pub(crate) fn creation_error(&self, error: &io::Error) -> RigError {
        let class = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ErrorClass::Missing
            }
            _ => ErrorClass::Other,
        };
        (self.controller.error)(
            class,
            &format!(
                "cannot create a control group in `{}`: {error} (expected root, or delegated \
                 groups as from `systemd-run --user --scope -p Delegate=yes`)",
                self.parent.display()
            ),
        )
    }
}

/// The group that delegates a controller to its children: our own, or its parent.
fn parent_of_version_2(
    controller: &Controller,
    own: &Path,
    above: Option<PathBuf>,
) -> Result<PathBuf> {
    let Controller { v2, limit, error, .. } = controller;
    let delegates = |group: &Path| {
        let list = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
        list.split_ascii_whitespace().any(|name| name == *v2)
    };
    if delegates(own) {
        return Ok(own.into());
    }
    let Some(above) = above.filter(|above| delegates(above)) else {
        return Err(error(
            ErrorClass::Missing,
            &format!(
                "neither the control group `{}`, which contains processes, nor its parent \
                 delegates the {v2} controller (expected cachedyno in its own group, as with \
                 `systemd-run --scope -p Delegate=yes`)",
                own.display()
            ),
        ));
    };
    let own_limit = fs::read_to_string(own.join(limit)).unwrap_or_default();
    let own_limit = own_limit.trim();
    // A quota of CPU time has its period after it.
    if !own_limit.is_empty() && !own_limit.starts_with("max") {
        let shown = own_limit.parse().map_or_else(|_| own_limit.into(), format_bytes);
        return Err(error(
            ErrorClass::Missing,
            &format!(
                "the control group `{}` has its own limit of {shown}, which a group next to it \
                 would escape (expected cachedyno in a group without `{limit}`)",
                own.display()
            ),
        ));
    }
    Ok(above)
}

/// A group that was created here. Dropping it removes it; its processes must have ended before.
#[derive(Debug)]
pub(crate) struct OwnGroup {
    pub(crate) place: Place,
    pub(crate) path: PathBuf,
    guard: Guard,
}

impl OwnGroup {
    /// Creates a group at a place.
    pub(crate) fn new(guard: &Guard, place: Place) -> Result<Self> {
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
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(place.creation_error(&e)),
                // From here on, a drop removes it.
                Ok(()) => return Ok(Self { place, path, guard: guard.clone() }),
            }
        }
    }

    /// Moves this process into the group until the returned membership ends.
    pub(crate) fn enter(&self) -> Result<GroupMembership<'_>> {
        move_to(&self.path)?;
        Ok(GroupMembership { group: self, inside: true })
    }

    /// Removes it now and reports errors; after an error the guard tries again at the end.
    pub(crate) fn remove(self) -> Result<()> {
        self.remove_now()
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

impl Drop for OwnGroup {
    fn drop(&mut self) {
        // On failure it stays owned, and the guard tries again.
        let _ = self.remove_now();
    }
}

/// A group for a controller: its own, or in version 2, where a process is in one group only, that
/// which the same processes are in for another controller.
#[derive(Debug)]
pub(crate) struct ControllerGroup {
    pub(crate) path: PathBuf,
    pub(crate) version: Version,
    own: Option<OwnGroup>,
}

impl ControllerGroup {
    /// Creates a group at a place, or uses the `joined` one.
    pub(crate) fn new(guard: &Guard, place: Place, joined: Option<&Path>) -> Result<Self> {
        let version = place.version;
        if let (Version::V2, Some(joined)) = (version, joined) {
            return Ok(Self { path: joined.into(), version, own: None });
        }
        let own = OwnGroup::new(guard, place)?;
        Ok(Self { path: own.path.clone(), version, own: Some(own) })
    }

    /// Its directory; `None` if it is the joined one.
    pub(crate) fn own_path(&self) -> Option<&Path> {
        self.own.as_ref().map(|own| own.path.as_path())
    }

    /// Moves this process into the group until the returned membership ends; `None` if it is the
    /// joined one.
    pub(crate) fn enter(&self) -> Result<Option<GroupMembership<'_>>> {
        self.own.as_ref().map(OwnGroup::enter).transpose()
    }

    /// Removes it now and reports errors; after an error the guard tries again at the end.
    pub(crate) fn remove(self) -> Result<()> {
        self.own.map_or(Ok(()), OwnGroup::remove)
    }
}

/// Membership of this process in a group; ends on drop.
#[derive(Debug)]
pub struct GroupMembership<'a> {
    group: &'a OwnGroup,
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

/// The number after `name` at the start of a line.
pub(crate) fn word(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// Writes a value to a file of a group.
pub(crate) fn set(group: &Path, name: &str, value: &impl ToString) -> Result<()> {
    let file = group.join(name);
    fs::write(&file, value.to_string()).map_err(RigError::io("set", &file))
}

/// The file that lists a group's processes; writing a process id to it moves the process there.
pub(crate) fn procs(group: &Path) -> PathBuf {
    group.join("cgroup.procs")
}
