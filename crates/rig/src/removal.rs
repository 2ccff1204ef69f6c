//! Removes directories through file descriptors, so that nobody with write access to their parent
//! can redirect the removal: it follows no links, enters no other mounts, and removes only what it
//! inspected. A file in use as swap is switched off first.
//!
//! `remove_dir_all` of the standard library uses descriptors too, but accepts only a path and
//! enters mounts. The files driver's tree keeps directories open for a measured cache and checks
//! neither depth nor owners, so the two share no code.

use crate::owner::{MARK, MARK_BYTES_MAX, is_our_name};
use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum depth of a removal below an owned directory; servers' data has three levels.
const DEPTH_MAX: usize = 64;

/// How long a killed process can still hold a lock after its pipe was closed: the kernel closes its
/// files one after the other.
const LOCK_RELEASE_WITHIN: Duration = Duration::from_secs(2);

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// An open directory with its open parent.
pub(crate) struct Opened {
    parent: OwnedFd,
    name: OsString,
    directory: File,
    stat: FileStat,
}

/// The mark (the file [`MARK`]) of a directory.
pub(crate) enum Mark {
    /// The directory has no mark.
    None,
    /// An entry of that name that is not a regular file of the directory's owner.
    Foreign,
    /// Our own mark, open for locking, and its text.
    Ours(File, String),
}

impl Opened {
    /// Opens the directory at an absolute path; `None` if nothing is there, or a link, or anything
    /// but a directory, or if its parent is a link.
    ///
    /// Errors: it is a mount point.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = nix::fcntl::open(parent, flags, Mode::empty())
            .and_then(|parent| Ok((openat(&parent, name, DIRECTORY, Mode::empty())?, parent)));
        let (directory, parent) = match opened {
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(None),
            other => other?,
        };
        let stat = fstat(&directory)?;
        if mount_of(&parent)? != mount_of(&directory)? {
            return Err(other_mount());
        }
        Ok(Some(Self { parent, name: name.into(), directory: directory.into(), stat }))
    }

    /// The directory's metadata.
    pub(crate) fn stat(&self) -> &FileStat {
        &self.stat
    }

    /// The open directory.
    pub(crate) fn file(&self) -> &File {
        &self.directory
    }

    /// Name of the directory.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether the directory is empty.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        Ok(entries(&self.directory)?.is_empty())
    }

    /// Whether the directory contains nothing except its mark.
    pub(crate) fn has_mark_only(&self) -> io::Result<bool> {
        Ok(entries(&self.directory)?.iter().all(|(name, _)| name.to_bytes() == MARK.as_bytes()))
    }

    /// Reads the mark.
    pub(crate) fn mark(&self) -> io::Result<Mark> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mark = match openat(&self.directory, MARK, flags, Mode::empty()) {
            Ok(mark) => File::from(mark),
            Err(Errno::ENOENT) => return Ok(Mark::None),
            Err(Errno::ELOOP | Errno::ENXIO) => return Ok(Mark::Foreign),
            Err(e) => return Err(e.into()),
        };
        let stat = fstat(&mark)?;
        let is_file = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG;
        if !is_file || stat.st_uid != self.stat.st_uid {
            return Ok(Mark::Foreign);
        }
        let mut text = Vec::new();
        (&mark).take(MARK_BYTES_MAX).read_to_end(&mut text)?;
        Ok(Mark::Ours(mark, String::from_utf8_lossy(&text).into_owned()))
    }

    /// Removes the directory and everything in it. The mark is removed after all other entries, so
    /// an interrupted removal can be finished.
    pub(crate) fn remove_marked(&self) -> io::Result<()> {
        let tree = TreeIdentity { mount: mount_of(&self.directory)?, owner: self.stat.st_uid };
        remove_below(&self.directory, &tree, DEPTH_MAX, |name| name.to_bytes() == MARK.as_bytes())?;
        remove_at(&self.directory, MARK, UnlinkatFlags::NoRemoveDir)?;
        self.remove_empty()
    }

    /// Whether its name still refers to this directory.
    pub(crate) fn name_still_refers_to_it(&self) -> bool {
        fstatat(&self.parent, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
            .is_ok_and(|found| (found.st_dev, found.st_ino) == (self.stat.st_dev, self.stat.st_ino))
    }

    /// Removes the directory itself, unless it is gone or its name now refers to another.
    pub(crate) fn remove_empty(&self) -> io::Result<()> {
        if !self.name_still_refers_to_it() {
            return Ok(());
        }
        remove_at(&self.parent, self.name.as_os_str(), UnlinkatFlags::RemoveDir)
    }

    /// Disk blocks used by everything below it, in bytes; unreadable entries count as 0.
    pub(crate) fn bytes(&self) -> u64 {
        let Ok(mount) = mount_of(&self.directory) else { return 0 };
        bytes_below(&self.directory, mount, DEPTH_MAX)
    }
}

/// Removes a directory that has our name and our mark. Without a mark it removes only an empty
/// directory: one whose creation or removal was interrupted, or a control group, which can be
/// removed once its processes have ended. Leaves missing directories, symbolic links and
/// directories without a mark alone, without an error. Follows no symbolic links.
pub(crate) fn remove_owned(directory: &Path) -> io::Result<()> {
    let Some(opened) = Opened::open(directory)? else { return Ok(()) };
    let is_ours = opened.name().to_str().is_some_and(is_our_name);
    match opened.mark()? {
        Mark::None => remove_unlocked(&opened),
        Mark::Ours(..) if is_ours => opened.remove_marked(),
        Mark::Ours(..) | Mark::Foreign => Ok(()),
    }
}

/// Removes an empty directory, unless a process holds its lock for longer than
/// [`LOCK_RELEASE_WITHIN`]: then another run is using that path.
fn remove_unlocked(opened: &Opened) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_RELEASE_WITHIN;
    while matches!(opened.directory.try_lock(), Err(TryLockError::WouldBlock)) {
        if Instant::now() > deadline {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    match opened.remove_empty() {
        Err(e) if e.kind() != io::ErrorKind::DirectoryNotEmpty => Err(e),
        _ => Ok(()),
    }
}

/// Mount and owner that all directories of a tree must have.
struct TreeIdentity {
    mount: u64,
    owner: u32,
}

fn remove_below(
    directory: impl AsFd,
    tree: &TreeIdentity,
    depth: usize,
    is_kept: fn(&CStr) -> bool,
) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(|| io::Error::other("it is nested too deeply"))?;
    for (name, kind) in entries(&directory)?.into_iter().filter(|(name, _)| !is_kept(name)) {
        let name = name.as_c_str();
        if kind != Some(Type::Directory) {
            match remove_at(&directory, name, UnlinkatFlags::NoRemoveDir) {
                // The kernel protects active swap files with this error.
                Err(e) if e.raw_os_error() == Some(Errno::EPERM as i32) => {
                    swap_off(&directory, name, tree)?;
                    remove_at(&directory, name, UnlinkatFlags::NoRemoveDir)?;
                    continue;
                }
                // Some file systems do not report the kind in a listing.
                Err(e) if e.kind() == io::ErrorKind::IsADirectory => {}
                done => {
                    done?;
                    continue;
                }
            }
        }
        let below = match openat(&directory, name, DIRECTORY, Mode::empty()) {
            Err(Errno::ENOENT) => continue,
            below => below?,
        };
        if mount_of(&below)? != tree.mount {
            return Err(other_mount());
        }
        if fstat(&below)?.st_uid != tree.owner {
            return Err(io::Error::other("it contains a directory of another user"));
        }
        remove_below(&below, tree, depth, |_| false)?;
        remove_at(&directory, name, UnlinkatFlags::RemoveDir)?;
    }
    Ok(())
}

/// Stops using a file as swap, after reading its pages back; does nothing if it is not in use.
/// Refuses files of other owners and files with other hard links, which can be foreign swap.
#[expect(unsafe_code, reason = "swapoff has no safe wrapper")]
fn swap_off(directory: impl AsFd, name: &CStr, tree: &TreeIdentity) -> io::Result<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = openat(&directory, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if stat.st_uid != tree.owner || stat.st_nlink != 1 {
        return Err(Errno::EPERM.into());
    }
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    // SAFETY: the path is NUL-terminated and lives until the call returns.
    still_on(Errno::result(unsafe { libc::swapoff(path.as_ptr()) }).map(drop))
}

/// Whether a file is still used as swap, by the result of `swapoff`.
fn still_on(result: nix::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::ENOMEM) => Err(io::Error::other(
            "its swapped-out pages do not fit into memory (close programs that use much memory)",
        )),
        // Not in use.
        Err(Errno::EINVAL) | Ok(()) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

fn bytes_below(directory: impl AsFd, mount: u64, depth: usize) -> u64 {
    let (Some(depth), Ok(entries)) = (depth.checked_sub(1), entries(&directory)) else { return 0 };
    let mut bytes = 0;
    for (name, _) in entries {
        let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
        let Ok(stat) = fstatat(&directory, name.as_c_str(), flags) else { continue };
        bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * crate::size::BLOCK_BYTES;
        if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFDIR
            && let Ok(below) = openat(&directory, name.as_c_str(), DIRECTORY, Mode::empty())
            && mount_of(&below).is_ok_and(|found| found == mount)
        {
            bytes += bytes_below(&below, mount, depth);
        }
    }
    bytes
}

/// Names and kinds of a directory's entries, without `.` and `..`.
fn entries(directory: impl AsFd) -> io::Result<Vec<(std::ffi::CString, Option<Type>)>> {
    let mut listed = Dir::from_fd(openat(directory, ".", DIRECTORY, Mode::empty())?)?;
    let mut found = Vec::new();
    for entry in listed.iter() {
        let entry = entry?;
        if ![&b"."[..], b".."].contains(&entry.file_name().to_bytes()) {
            found.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}

fn remove_at<P: nix::NixPath + ?Sized>(
    directory: impl AsFd,
    name: &P,
    flag: UnlinkatFlags,
) -> io::Result<()> {
    match unlinkat(directory, name, flag) {
        Err(Errno::ENOENT) | Ok(()) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// The mount of an open file (proc(5), `mnt_id` in `/proc/<pid>/fdinfo`). A device number cannot
/// distinguish two mounts of one file system.
fn mount_of(file: impl AsFd) -> io::Result<u64> {
    let info = format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd());
    let text = fs::read_to_string(info)?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    id.ok_or_else(|| io::Error::other("/proc does not show its mount"))
}

fn other_mount() -> io::Error {
    io::Error::other("it contains another mounted file system")
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
