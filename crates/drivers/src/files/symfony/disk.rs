//! The namespace's directory as PHP accesses it (observed with `strace` on PHP 8.2).
//!
//! PHP uses full paths. It resolves a path before it opens the file or creates a link: it checks
//! the path and each directory above it, and caches those that are no links. It also caches the
//! status of the last path checked. A removal or a rename empties both caches. Not modelled: the
//! first cache holds 4 MiB and forgets paths after 120 s.
//!
//! So that no call leads outside, files and directories are opened with `RESOLVE_NO_SYMLINKS`, and
//! before anything is created or removed the directory is opened so: in place of PHP's check where
//! it has one, otherwise as one more call.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use model::ErrorClass;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat, openat2, readlinkat, renameat};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, fstatat, lstat, mkdirat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, symlinkat, unlinkat};
use workloads::store::StoreError;

use super::layout::{NAMESPACE, parent};
use crate::fault;
use crate::files::directory::Directory;
use crate::files::stream::Stream;
use crate::files::tree::{At, wrong};

const DIRECTORY: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

pub(super) struct Disk {
    root: OwnedFd,
    /// Path of `root`, without links.
    path: String,
    /// Paths that PHP has resolved.
    resolved: HashSet<String>,
    /// The last path checked, and whether it is a file.
    checked: Option<(String, bool)>,
    /// System calls with a path.
    files: u64,
}

/// A listed directory.
pub(super) struct Listed {
    pub(super) directory: Dir,
    /// In the order of the file system.
    pub(super) names: Vec<String>,
}

fn at(path: &str) -> At<'_> {
    let dir = parent(path);
    At { dir, name: path.rsplit_once('/').map_or(path, |(_, name)| name) }
}

/// Opens a path below a directory that contains no links.
fn open_below(root: &OwnedFd, path: &str, flags: OFlag) -> nix::Result<OwnedFd> {
    let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let resolve = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS;
    match openat2(root, path, OpenHow::new().flags(flags).resolve(resolve)) {
        // Linux before 5.6, and containers that hide the call.
        Err(Errno::ENOSYS | Errno::EPERM) => {}
        opened => return opened,
    }
    let mut directory = root.try_clone().map_err(|_| Errno::EMFILE)?;
    let At { dir, name } = at(path);
    for name in dir.split('/').filter(|name| !name.is_empty()) {
        directory = openat(&directory, name, OFlag::O_PATH | DIRECTORY, Mode::empty())?;
    }
    openat(&directory, name, flags, Mode::empty())
}

impl Disk {
    /// Opens the namespace's directory and creates it if necessary.
    pub(super) fn open(directory: &Path) -> Result<Self, StoreError> {
        let top = Directory::open(directory)?;
        let made = mkdirat(&top.fd, NAMESPACE, Mode::from_bits_truncate(0o777));
        let flags = OFlag::O_PATH | DIRECTORY;
        let root = match made {
            Err(e) if e != Errno::EEXIST => Err(e),
            _ => openat(&top.fd, NAMESPACE, flags, Mode::empty()),
        };
        let root = root.map_err(|e| wrong("open", at(NAMESPACE), &e.into()))?;
        let real = fs::canonicalize(directory).map(|real| real.join(NAMESPACE));
        let real = real.map_err(|e| fault::file("cannot resolve the cache's directory", &e))?;
        let Some(path) = real.to_str().map(String::from) else {
            let message = format!("path `{}` is not valid UTF-8", real.display());
            return Err(StoreError::soft(ErrorClass::Other, message));
        };
        Ok(Self { root, path, resolved: HashSet::new(), checked: None, files: 0 })
    }

    /// Number of calls that opened, listed, checked or changed a file.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// The absolute path of a file, as links contain it.
    fn full(&self, path: &str) -> String {
        [&self.path, "/", path].concat()
    }

    /// `is_file`.
    pub(super) fn is_file(&mut self, path: &str) -> bool {
        if let Some((checked, is_file)) = &self.checked
            && checked == path
        {
            return *is_file;
        }
        let Ok(kind) = self.kind(path) else { return false };
        self.checked = Some((path.into(), kind == SFlag::S_IFREG));
        kind == SFlag::S_IFREG
    }

    fn kind(&mut self, path: &str) -> nix::Result<SFlag> {
        self.files += 1;
        let stat = fstatat(&self.root, path, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT)
    }

    /// `is_link`.
    pub(super) fn is_link(&mut self, path: &str) -> bool {
        self.kind(path).is_ok_and(|kind| kind == SFlag::S_IFLNK)
    }

    /// `is_dir` of a directory of the layout, which no link leads to.
    pub(super) fn is_dir(&mut self, path: &str) -> bool {
        self.directory(path).is_some()
    }

    /// A directory of the layout.
    pub(super) fn directory(&mut self, path: &str) -> Option<OwnedFd> {
        self.files += 1;
        open_below(&self.root, path, OFlag::O_PATH | OFlag::O_DIRECTORY).ok()
    }

    /// Makes a directory and those above it if they are missing, with the mode that `umask` leaves.
    pub(super) fn ensure_dir(&mut self, path: &str) -> Result<(), StoreError> {
        if self.is_dir(path) {
            return Ok(());
        }
        let mut missing = vec![path];
        while let Some(above) = missing.last().map(|path| parent(path))
            && !above.is_empty()
        {
            match self.kind(above) {
                Ok(SFlag::S_IFDIR) => break,
                Ok(_) => return Err(wrong("open", at(above), &Errno::ELOOP.into())),
                Err(_) => missing.push(above),
            }
        }
        for dir in missing.iter().rev() {
            self.files += 1;
            match mkdirat(&self.root, *dir, Mode::from_bits_truncate(0o777)) {
                // Another client was faster, or removes the directories of a tag that it cleans;
                // then nothing can be created below, which is noticed there.
                Ok(()) | Err(Errno::EEXIST | Errno::ENOENT) => {}
                Err(e) => return Err(wrong("make", at(dir), &e.into())),
            }
        }
        Ok(())
    }

    /// Resolves a path as PHP does before it opens a file or creates a link: checks the directories
    /// above it as well if it is missing.
    fn expand(&mut self, path: &str) {
        if self.realpath(path).is_none() {
            let full = self.full(path);
            self.check_above(&full);
        }
    }

    /// `realpath`: what a path refers to, relative to the namespace's directory: the path itself or
    /// the target of a link; `None` if it does not exist or is outside.
    pub(super) fn realpath(&mut self, path: &str) -> Option<String> {
        let full = self.full(path);
        if !self.is_link_itself(&full)? {
            self.check_above(&full);
            return Some(path.into());
        }
        self.files += 1;
        let target = readlinkat(&self.root, path).ok()?.into_string().ok()?;
        let inside = target.strip_prefix(&self.path)?.strip_prefix('/')?;
        if self.is_link_itself(&target)? {
            return None;
        }
        self.check_above(&target);
        Some(inside.into())
    }

    /// Whether an absolute path is that of a link; `None` if nothing is there.
    fn is_link_itself(&mut self, full: &str) -> Option<bool> {
        if self.resolved.contains(full) {
            return Some(false);
        }
        self.files += 1;
        let stat = lstat(full).ok()?;
        let is_link = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK;
        if !is_link {
            self.resolved.insert(full.into());
        }
        Some(is_link)
    }

    fn check_above(&mut self, full: &str) {
        let mut above = parent(full);
        while !above.is_empty() && !self.resolved.contains(above) {
            self.files += 1;
            if lstat(above).is_ok() {
                self.resolved.insert(above.into());
            }
            above = parent(above);
        }
    }

    /// Opens a file for reading; `None` if that is not possible.
    pub(super) fn read<'a>(&mut self, path: &'a str) -> Result<Option<Stream<'a>>, StoreError> {
        self.expand(path);
        self.files += 1;
        // A pipe or a device with one of our names could block or cause side effects.
        let opened = open_below(&self.root, path, OFlag::O_RDONLY | OFlag::O_NONBLOCK);
        let Ok(file) = opened.map(File::from) else { return Ok(None) };
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Ok(None);
        }
        Stream::new(file, at(path), false).map(Some)
    }

    /// Creates a file in the namespace's directory.
    pub(super) fn create(&mut self, name: &str) -> io::Result<File> {
        self.expand(name);
        self.files += 1;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o666);
        let file = File::from(openat(&self.root, name, flags, mode)?);
        file.metadata()?;
        Ok(file)
    }

    /// Writes and closes a created file, and sets its time of modification, seconds since 1970.
    pub(super) fn fill(
        &mut self,
        file: File,
        name: &str,
        content: &[u8],
        mtime: i64,
    ) -> Result<(), StoreError> {
        let mut stream = Stream::new(file, at(name), false)?;
        stream.write(content)?;
        stream.close()?;
        self.files += 2;
        let time = TimeSpec::new(mtime, 0);
        faccessat(&self.root, name, AccessFlags::F_OK, AtFlags::empty())
            .and_then(|()| utimensat(&self.root, name, &time, &time, UtimensatFlags::FollowSymlink))
            .map_err(|e| wrong("touch", at(name), &e.into()))?;
        self.checked = None;
        Ok(())
    }

    /// Renames a file or directory. The directories of both names are ours.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> nix::Result<()> {
        self.files += 1;
        renameat(&self.root, from, &self.root, to).inspect(|()| self.forget())
    }

    /// `symlink`: a link from a directory of ours to an item, which need not exist.
    pub(super) fn link(&mut self, item: &str, link: &str) -> nix::Result<()> {
        self.expand(link);
        self.expand(item);
        self.files += 1;
        symlinkat(self.full(item).as_str(), &self.root, link)
    }

    /// Removes a file or link; true if that succeeded.
    pub(super) fn unlink(&mut self, path: &str) -> bool {
        let dir = parent(path);
        if !dir.is_empty() && !self.is_dir(dir) {
            return false;
        }
        self.unlink_checked(path)
    }

    /// Removes a file or link of a directory that is ours.
    pub(super) fn unlink_checked(&mut self, path: &str) -> bool {
        self.files += 1;
        let removed = unlinkat(&self.root, path, UnlinkatFlags::NoRemoveDir).is_ok();
        if removed {
            self.forget();
        }
        removed
    }

    /// Removes a file or link of an open directory.
    pub(super) fn unlink_in(&mut self, directory: impl AsFd, name: &str) {
        self.files += 1;
        if unlinkat(directory, name, UnlinkatFlags::NoRemoveDir).is_ok() {
            self.forget();
        }
    }

    /// Removes an empty directory whose parent is ours.
    pub(super) fn remove_dir(&mut self, path: &str) {
        self.files += 1;
        if unlinkat(&self.root, path, UnlinkatFlags::RemoveDir).is_ok() {
            self.forget();
        }
    }

    /// Removes an empty directory below an open one.
    pub(super) fn remove_dir_in(&mut self, directory: impl AsFd, path: &str) {
        self.files += 1;
        if unlinkat(directory, path, UnlinkatFlags::RemoveDir).is_ok() {
            self.forget();
        }
    }

    /// Opens a directory below an open one.
    pub(super) fn directory_in(&mut self, above: impl AsFd, name: &str) -> nix::Result<OwnedFd> {
        self.files += 1;
        openat(above, name, OFlag::O_PATH | DIRECTORY, Mode::empty())
    }

    /// Lists a directory below an open one, if it is one. Names that are not UTF-8 are not ours and
    /// are skipped.
    pub(super) fn list_in(&mut self, above: impl AsFd, name: &str) -> Option<Listed> {
        self.files += 1;
        let stat = fstatat(&above, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT != SFlag::S_IFDIR {
            return None;
        }
        self.files += 1;
        let opened = openat(&above, name, OFlag::O_RDONLY | DIRECTORY, Mode::empty()).ok()?;
        let mut directory = Dir::from_fd(opened).ok()?;
        let names = directory.iter().filter_map(|entry| {
            let name = entry.ok()?.file_name().to_str().ok()?.to_string();
            (name != "." && name != "..").then_some(name)
        });
        let names = names.collect();
        Some(Listed { directory, names })
    }

    /// PHP empties both caches after a removal or a rename.
    fn forget(&mut self) {
        self.resolved.clear();
        self.checked = None;
    }
}
