//! The directory of a cache as PHP sees it: its files and its subdirectories, one level deep.
//!
//! Paths are relative to descriptors of the directory and of each subdirectory, which is opened
//! once and without following links, so that no call leads outside. PHP uses full paths instead;
//! the kernel finds the same file either way. If another client has removed and recreated a
//! subdirectory, its descriptor is renewed.
//!
//! PHP caches the status of the last path it checked (`clearstatcache` in its manual): checking it
//! again costs no system call, and a file that was found counts as existing until something is
//! removed.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use model::ErrorClass;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, SFlag, fchmodat, fstat, fstatat, mkdirat};
use nix::unistd::{AccessFlags, UnlinkatFlags, faccessat, unlinkat};
use workloads::store::StoreError;

use super::directory::Directory;
use crate::fault;

/// The location of a file: the name of its subdirectory, empty for the cache's own directory, and
/// its name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At<'a> {
    pub(super) dir: &'a str,
    pub(super) name: &'a str,
}

/// The type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    /// Missing, a link, or neither a file nor a directory.
    Other,
}

pub(super) struct Tree {
    top: Directory,
    /// Open directories by name.
    dirs: HashMap<String, OwnedFd>,
    /// The last path checked, and its type.
    checked: Option<(String, String, Kind)>,
    /// System calls with a path.
    files: u64,
}

impl Tree {
    pub(super) fn new(top: Directory) -> Self {
        Self { top, dirs: HashMap::new(), checked: None, files: 0 }
    }

    /// Number of calls that opened, listed, checked or removed a file.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// `clearstatcache()`.
    pub(super) fn forget(&mut self) {
        self.checked = None;
    }

    pub(super) fn is_file(&mut self, at: At<'_>) -> bool {
        self.kind(at) == Kind::File
    }

    pub(super) fn is_directory(&mut self, at: At<'_>) -> bool {
        self.kind(at) == Kind::Directory
    }

    fn kind(&mut self, at: At<'_>) -> Kind {
        if let Some((dir, name, kind)) = &self.checked
            && dir == at.dir
            && name == at.name
        {
            return *kind;
        }
        let Ok(stat) = self.stat(at) else { return Kind::Other };
        let kind = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => Kind::File,
            SFlag::S_IFDIR => Kind::Directory,
            _ => Kind::Other,
        };
        match &mut self.checked {
            Some((dir, name, last)) => {
                dir.replace_range(.., at.dir);
                name.replace_range(.., at.name);
                *last = kind;
            }
            None => self.checked = Some((at.dir.into(), at.name.into(), kind)),
        }
        kind
    }

    fn stat(&mut self, at: At<'_>) -> nix::Result<FileStat> {
        self.call(at, |fd, name| fstatat(fd, name, AtFlags::AT_SYMLINK_NOFOLLOW))
    }

    /// `file_exists` of a path that is not cached, which PHP checks with `access`.
    pub(super) fn exists(&mut self, at: At<'_>) -> bool {
        let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
        self.call(at, |fd, name| faccessat(fd, name, AccessFlags::F_OK, flags)).is_ok()
    }

    /// `filesize`; 0 if the file does not exist.
    pub(super) fn bytes(&mut self, at: At<'_>) -> u64 {
        self.stat(at).map_or(0, |stat| stat.st_size.max(0) as u64)
    }

    /// `is_writable` of a directory.
    pub(super) fn is_writable(&mut self, dir: &str) -> bool {
        let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
        let at = At { dir: "", name: dir };
        self.call(at, |fd, name| faccessat(fd, name, AccessFlags::W_OK, flags)).is_ok()
    }

    /// Creates a missing directory with the mode that `umask` leaves and then, if given, sets
    /// `mode`. Check the result with `is_writable`.
    pub(super) fn make_dir(&mut self, dir: &str, mode: Option<Mode>) {
        let at = At { dir: "", name: dir };
        if self.is_directory(at) {
            return;
        }
        let result = self.call(at, |fd, name| mkdirat(fd, name, Mode::from_bits_truncate(0o777)));
        if let (Ok(()), Some(mode)) = (result, mode) {
            let follow = FchmodatFlags::FollowSymlink;
            let _ = self.call(at, |fd, name| fchmodat(fd, name, mode, follow));
        }
        self.forget();
    }

    /// Opens a file. PHP checks a path before opening it for the first time (its realpath cache);
    /// `is_known` means that it has done so.
    pub(super) fn open(&mut self, at: At<'_>, flags: OFlag, is_known: bool) -> io::Result<File> {
        if !is_known {
            let _ = self.stat(at);
        }
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o666);
        let file = File::from(self.call(at, |fd, name| openat(fd, name, flags, mode))?);
        // A pipe or a device with one of our names could block or cause side effects.
        if !file.metadata()?.is_file() {
            return Err(io::Error::from(Errno::ELOOP));
        }
        Ok(file)
    }

    /// Removes a file; false if it did not exist.
    pub(super) fn unlink(&mut self, at: At<'_>) -> Result<bool, StoreError> {
        let removed = self.call(at, |fd, name| unlinkat(fd, name, UnlinkatFlags::NoRemoveDir));
        self.forget();
        match removed {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(e) => Err(wrong("remove", at, &e.into())),
        }
    }

    /// Removes a directory of the cache if it is empty.
    pub(super) fn remove_dir(&mut self, dir: &str) {
        let at = At { dir: "", name: dir };
        let _ = self.call(at, |fd, name| unlinkat(fd, name, UnlinkatFlags::RemoveDir));
        self.dirs.remove(dir);
        self.forget();
    }

    /// Names in a subdirectory (empty for the cache's own directory) that start with `prefix`,
    /// sorted; none if it cannot be listed. Names that are not UTF-8 are not ours and are skipped.
    pub(super) fn glob(&mut self, dir: &str, prefix: &str) -> Vec<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = if dir.is_empty() {
            self.files += 1;
            openat(&self.top.fd, ".", flags, Mode::empty())
        } else {
            let at = At { dir: "", name: dir };
            self.call(at, |fd, name| openat(fd, name, flags, Mode::empty()))
        };
        let Ok(mut directory) = opened.and_then(Dir::from_fd) else { return Vec::new() };
        let names = directory.iter().filter_map(|entry| {
            let name = entry.ok()?.file_name().to_str().ok()?.to_string();
            name.starts_with(prefix).then_some(name)
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    fn call<T>(
        &mut self,
        at: At<'_>,
        call: impl Fn(&OwnedFd, &str) -> nix::Result<T>,
    ) -> nix::Result<T> {
        self.files += 1;
        if at.dir.is_empty() {
            return call(&self.top.fd, at.name);
        }
        let fd = self.dir(at.dir)?;
        match call(fd, at.name) {
            // A removed directory has no links left.
            Err(Errno::ENOENT) if fstat(fd).is_ok_and(|stat| stat.st_nlink == 0) => {
                self.dirs.remove(at.dir);
                call(self.dir(at.dir)?, at.name)
            }
            result => result,
        }
    }

    fn dir(&mut self, dir: &str) -> nix::Result<&OwnedFd> {
        if !self.dirs.contains_key(dir) {
            let flags = OFlag::O_DIRECTORY | OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let fd = openat(&self.top.fd, dir, flags, Mode::empty())?;
            self.dirs.insert(dir.into(), fd);
        }
        Ok(&self.dirs[dir])
    }
}

/// An error of a cache file. Anything that is not a plain file gets the class `NotOurs`.
pub(super) fn wrong(what: &str, at: At<'_>, e: &io::Error) -> StoreError {
    let path = if at.dir.is_empty() { at.name.into() } else { [at.dir, at.name].join("/") };
    let mut error = fault::file(&format!("cannot {what} file `{path}`"), e);
    let foreign = [nix::libc::ELOOP, nix::libc::ENOTDIR, nix::libc::EISDIR];
    if e.raw_os_error().is_some_and(|code| foreign.contains(&code)) {
        error.class = ErrorClass::NotOurs;
        error.message = format!("`{path}` is not a cache file (expected a plain file)");
    }
    error
}
