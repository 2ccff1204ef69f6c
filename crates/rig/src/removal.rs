//! Removing directories by descriptors, so that nobody who can write beside them turns the removal
//! on something else: no link is followed, no other mount entered, and what is removed is what was
//! looked at. A file that holds swap is switched off before it goes.
//!
//! `remove_dir_all` of the standard library goes by descriptors as well, but takes a path only, and
//! enters mounts. The files driver's tree keeps open directories for a measured cache; it neither
//! knows depth nor owners, so the two share nothing.

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

/// Levels below an owned directory that are entered; servers' data has three.
const DEPTH_MAX: usize = 64;

/// How long a killed process may hold a lock after its pipe was closed: the kernel closes its files
/// one after the other.
const LOCKED_FOR: Duration = Duration::from_secs(2);

const DIRECTORY: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// An open directory with the open one that holds it.
pub(crate) struct Opened {
    parent: OwnedFd,
    name: OsString,
    directory: File,
    stat: FileStat,
}

/// The mark in a directory.
pub(crate) enum Mark {
    /// There is none.
    None,
    /// Something of that name that is no regular file of the directory's owner.
    Foreign,
    /// Our own, with its text; the file is open, so that its lock can be asked for.
    Ours(File, String),
}

impl Opened {
    /// Opens the directory of that absolute path; `None` where there is nothing, a link, or no
    /// directory. A link in place of its parent is refused.
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

    /// What the system says about the directory.
    pub(crate) fn stat(&self) -> &FileStat {
        &self.stat
    }

    /// The open directory.
    pub(crate) fn file(&self) -> &File {
        &self.directory
    }

    /// Its name.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether the directory holds nothing.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        Ok(entries(&self.directory)?.is_empty())
    }

    /// Whether the directory holds nothing but its mark.
    pub(crate) fn has_mark_only(&self) -> io::Result<bool> {
        Ok(entries(&self.directory)?.iter().all(|(name, _)| name.to_bytes() == MARK.as_bytes()))
    }

    /// Reads the mark. Errors: it cannot be read.
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

    /// Removes everything in the directory, the mark last, so that a removal that was broken off
    /// can be finished; then the directory.
    pub(crate) fn remove_marked(&self) -> io::Result<()> {
        let of = Of { mount: mount_of(&self.directory)?, owner: self.stat.st_uid };
        remove_below(&self.directory, &of, DEPTH_MAX, |name| name.to_bytes() == MARK.as_bytes())?;
        remove_at(&self.directory, MARK, UnlinkatFlags::NoRemoveDir)?;
        self.remove_empty()
    }

    /// Whether its name still leads to it.
    pub(crate) fn is_there(&self) -> bool {
        fstatat(&self.parent, self.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
            .is_ok_and(|there| (there.st_dev, there.st_ino) == (self.stat.st_dev, self.stat.st_ino))
    }

    /// Removes the directory itself, unless it has gone or another one has taken its name.
    pub(crate) fn remove_empty(&self) -> io::Result<()> {
        if !self.is_there() {
            return Ok(());
        }
        remove_at(&self.parent, self.name.as_os_str(), UnlinkatFlags::RemoveDir)
    }

    /// Blocks that everything below takes, in bytes; what cannot be looked at counts as nothing.
    pub(crate) fn bytes(&self) -> u64 {
        let Ok(mount) = mount_of(&self.directory) else { return 0 };
        bytes_below(&self.directory, mount, DEPTH_MAX)
    }
}

/// Removes a directory that has our name and our mark. Without a mark only an empty directory goes:
/// one whose making or removal was broken off, or a control group, which the kernel lets go when
/// its processes have ended. A missing directory, a symbolic link and whatever else has no mark are
/// left alone without an error. No symbolic link is followed.
pub(crate) fn remove_owned(directory: &Path) -> io::Result<()> {
    let Some(opened) = Opened::open(directory)? else { return Ok(()) };
    let is_ours = opened.name().to_str().is_some_and(is_our_name);
    match opened.mark()? {
        Mark::None => remove_unlocked(&opened),
        Mark::Ours(..) if is_ours => opened.remove_marked(),
        Mark::Ours(..) | Mark::Foreign => Ok(()),
    }
}

/// Removes an empty directory, but for one that a process has locked for longer than ours takes to
/// end: another run has taken over its place.
fn remove_unlocked(opened: &Opened) -> io::Result<()> {
    let deadline = Instant::now() + LOCKED_FOR;
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

/// What all directories of a tree have in common.
struct Of {
    mount: u64,
    owner: u32,
}

fn remove_below(
    directory: impl AsFd,
    of: &Of,
    depth: usize,
    stays: fn(&CStr) -> bool,
) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or_else(|| io::Error::other("it is nested too deeply"))?;
    for (name, kind) in entries(&directory)?.into_iter().filter(|(name, _)| !stays(name)) {
        let name = name.as_c_str();
        if kind != Some(Type::Directory) {
            match remove_at(&directory, name, UnlinkatFlags::NoRemoveDir) {
                // So the kernel protects a file that holds swap.
                Err(e) if e.raw_os_error() == Some(Errno::EPERM as i32) => {
                    switch_off(&directory, name, of)?;
                    remove_at(&directory, name, UnlinkatFlags::NoRemoveDir)?;
                    continue;
                }
                // Some file systems do not tell the kind while they list.
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
        if mount_of(&below)? != of.mount {
            return Err(other_mount());
        }
        if fstat(&below)?.st_uid != of.owner {
            return Err(io::Error::other("a directory of another user is in it"));
        }
        remove_below(&below, of, depth, |_| false)?;
        remove_at(&directory, name, UnlinkatFlags::RemoveDir)?;
    }
    Ok(())
}

/// Switches a file off that holds swap; nothing where it holds none. What is still swapped out is
/// read back first. Only a file of the directory's owner, without another name elsewhere: swap that
/// is none of ours stays.
#[expect(unsafe_code, reason = "swapoff has no safe form")]
fn switch_off(directory: impl AsFd, name: &CStr, of: &Of) -> io::Result<()> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = openat(&directory, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if stat.st_uid != of.owner || stat.st_nlink != 1 {
        return Err(Errno::EPERM.into());
    }
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    // SAFETY: the path ends with a zero and lives until the call returns.
    match Errno::result(unsafe { libc::swapoff(path.as_ptr()) }) {
        Err(Errno::ENOMEM) => Err(io::Error::other(
            "what is swapped out to it does not fit into memory (end programs that use much of it)",
        )),
        // Not in use.
        Err(Errno::EINVAL) | Ok(_) => Ok(()),
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
            && mount_of(&below).is_ok_and(|there| there == mount)
        {
            bytes += bytes_below(&below, mount, depth);
        }
    }
    bytes
}

/// Names and kinds in a directory, but for itself and its parent.
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

/// The mount of an open file (proc(5), `mnt_id` in `/proc/<pid>/fdinfo`): a device number does not
/// tell two mounts of one file system apart.
fn mount_of(file: impl AsFd) -> io::Result<u64> {
    let info = format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd());
    let text = fs::read_to_string(info)?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    id.ok_or_else(|| io::Error::other("/proc does not tell its mount"))
}

fn other_mount() -> io::Error {
    io::Error::other("another file system is mounted in it")
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
