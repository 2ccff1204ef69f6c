//! The adapter's loops over its directories: invalidation of tags, removal of everything and of
//! expired items. As in the adapter, each tries all 38 names of both levels of directories, and
//! errors are ignored.

use std::os::fd::{AsFd as _, OwnedFd};

use nix::errno::Errno;
use workloads::store::StoreError;

use super::disk::{Disk, Listed};
use super::layout::{LEVELS, TAGS, expires, renamed};
use crate::cache::now_s;

/// A directory of the second level.
struct Leaf<'a> {
    /// Its path.
    path: &'a str,
    /// The part of the path that names its levels.
    levels: &'a str,
    listed: &'a Listed,
}

/// What to remove from a tag's folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// All links.
    All,
    /// Links to items that do not exist.
    Stale,
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("").filter(|name| !name.is_empty())
}

/// Visits the directories of the second level in a folder, which was opened, and after those of
/// each first level its name. Returns the names of first levels that are neither directories nor
/// missing.
fn walk(
    disk: &mut Disk,
    (folder, path): (&OwnedFd, &str),
    mut visit: impl FnMut(&mut Disk, &OwnedFd, &Leaf<'_>),
    mut after: impl FnMut(&mut Disk, &str),
) -> Vec<&'static str> {
    let mut foreign = Vec::new();
    for first in names(LEVELS) {
        let directory = match disk.directory_in(folder, first) {
            Ok(directory) => directory,
            Err(Errno::ENOENT) => continue,
            Err(_) => {
                foreign.push(first);
                continue;
            }
        };
        for second in names(LEVELS) {
            let Some(listed) = disk.list_in(&directory, second) else { continue };
            let levels = format!("{first}/{second}");
            let path = if path.is_empty() { levels.clone() } else { format!("{path}/{levels}") };
            visit(disk, &directory, &Leaf { path: &path, levels: &levels, listed: &listed });
        }
        after(disk, first);
    }
    foreign
}

/// `scanHashDir`: visits the directories of the second level in a folder.
fn scan(disk: &mut Disk, path: &str, mut visit: impl FnMut(&mut Disk, &Leaf<'_>)) {
    let path_or_own = if path.is_empty() { "." } else { path };
    if let Some(folder) = disk.directory(path_or_own) {
        walk(disk, (&folder, path), |disk, _, leaf| visit(disk, leaf), |_, _| {});
    }
}

/// `doInvalidate` of one tag: removes the items that links in its folder lead to.
pub(super) fn invalidate(disk: &mut Disk, folder: &str, random: &str) {
    if !disk.is_dir(folder) {
        return;
    }
    let moved = renamed(folder, random);
    let is_moved = disk.rename(folder, &moved).is_ok();
    let path = if is_moved { &moved } else { folder };
    let Some(folder) = disk.directory(path) else { return };
    let visit = |disk: &mut Disk, _: &OwnedFd, leaf: &Leaf<'_>| {
        // A link has the name of its item, in directories with the names of its item's.
        let is_ours = disk.is_dir(leaf.levels);
        for name in &leaf.listed.names {
            let item = format!("{}/{name}", leaf.levels);
            if disk.realpath(&format!("{}/{name}", leaf.path)).is_some_and(|target| target == item)
                && is_ours
            {
                disk.unlink_checked(&item);
            } else {
                disk.unlink_in(leaf.listed.directory.as_fd(), name);
            }
            disk.unlink_in(leaf.listed.directory.as_fd(), name);
        }
    };
    let foreign = walk(disk, (&folder, path), visit, |_, _| {});
    if !is_moved {
        return;
    }
    for first in names(LEVELS).filter(|first| !foreign.contains(first)) {
        for second in names(LEVELS) {
            disk.remove_dir_in(&folder, &format!("{first}/{second}"));
        }
        disk.remove_dir_in(&folder, first);
    }
    disk.remove_dir(path);
}

/// `doClear`: removes all items and tags.
pub(super) fn clear(disk: &mut Disk, random: &str) {
    scan(disk, "", |disk, leaf| {
        for name in &leaf.listed.names {
            disk.unlink_in(leaf.listed.directory.as_fd(), name);
        }
    });
    scan(disk, TAGS, |disk, leaf| {
        for name in &leaf.listed.names {
            let path = format!("{}/{name}", leaf.path);
            let moved = renamed(&path, random);
            if disk.rename(&path, &moved).is_ok() {
                remove_links(disk, &moved, Links::All);
            } else {
                remove_links(disk, &path, Links::Stale);
            }
        }
    });
}

/// `prune`: removes expired items and links to missing ones.
pub(super) fn prune(disk: &mut Disk) -> Result<(), StoreError> {
    let mut result = Ok(());
    scan(disk, "", |disk, leaf| {
        for name in &leaf.listed.names {
            match is_expired(disk, &format!("{}/{name}", leaf.path)) {
                Ok(true) => disk.unlink_in(leaf.listed.directory.as_fd(), name),
                Ok(false) => {}
                Err(e) => result = Err(e),
            }
        }
    });
    scan(disk, TAGS, |disk, leaf| {
        for name in &leaf.listed.names {
            let path = format!("{}/{name}", leaf.path);
            let links = if name.ends_with('_') { Links::All } else { Links::Stale };
            remove_links(disk, &path, links);
        }
    });
    result
}

fn is_expired(disk: &mut Disk, path: &str) -> Result<bool, StoreError> {
    let Some(mut stream) = disk.read(path)? else { return Ok(false) };
    let expires = expires(&stream.line()?);
    Ok(expires != 0 && now_s() >= expires)
}

/// Removes links of a tag's folder, and its directories until one keeps a link.
fn remove_links(disk: &mut Disk, path: &str, links: Links) {
    let Some(folder) = disk.directory(path) else { return };
    let keeps = std::cell::Cell::new(false);
    let visit = |disk: &mut Disk, above: &OwnedFd, leaf: &Leaf<'_>| {
        for name in &leaf.listed.names {
            let path = format!("{}/{name}", leaf.path);
            if links == Links::Stale && disk.realpath(&path).is_some() {
                keeps.set(true);
            } else {
                disk.unlink_in(leaf.listed.directory.as_fd(), name);
            }
        }
        if !keeps.get() {
            disk.remove_dir_in(above, &leaf.levels[2..]);
        }
    };
    let after = |disk: &mut Disk, first: &str| {
        if !keeps.get() {
            disk.remove_dir_in(&folder, first);
        }
    };
    walk(disk, (&folder, path), visit, after);
    if !keeps.get() {
        disk.remove_dir(path);
    }
}

/// Number of links to items that do not exist.
pub(super) fn stale_links(disk: &mut Disk) -> u64 {
    let mut folders = Vec::new();
    scan(disk, TAGS, |_, leaf| {
        folders.extend(leaf.listed.names.iter().map(|name| format!("{}/{name}", leaf.path)));
    });
    let mut stale = 0;
    for folder in folders {
        scan(disk, &folder, |disk, leaf| {
            for name in &leaf.listed.names {
                stale += u64::from(disk.realpath(&format!("{}/{name}", leaf.path)).is_none());
            }
        });
    }
    stale
}
