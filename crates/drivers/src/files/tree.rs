//! The directory of a cache as PHP sees it: files in it and in directories of it, one level deep.
//!
//! Paths are relative to descriptors: of the directory itself and of each directory in it, which
//! is opened once and without following links, so that no call leads out of it. PHP names whole
//! paths instead; the kernel finds the same file for both. Where another client has removed a
//! directory and made it again, its descriptor is renewed.
//!
//! PHP remembers the state of the path that it looked at last (`clearstatcache` in its manual):
//! looking twice costs one system call, and what was found stays found until something is removed.

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

/// Where a file is: the name of a directory, empty for the cache's own, and its name in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At<'a> {
    pub(super) room: &'a str,
    pub(super) name: &'a str,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    /// Nothing, a link, or something that is neither a file nor a directory.
    Other,
}

pub(super) struct Tree {
    top: Directory,
    /// Open directories by name.
    rooms: HashMap<String, OwnedFd>,
    /// The path whose state is remembered, and what it was.
    looked_at: Option<(String, String, Kind)>,
    /// System calls that named a path.
    files: u64,
}

impl Tree {
    pub(super) fn new(top: Directory) -> Self {
        Self { top, rooms: HashMap::new(), looked_at: None, files: 0 }
    }

    /// Files opened, listed, looked at or removed, each time counted.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// `clearstatcache()`.
    pub(super) fn forget(&mut self) {
        self.looked_at = None;
    }

    pub(super) fn is_file(&mut self, at: At<'_>) -> bool {
        self.kind(at) == Kind::File
    }

    pub(super) fn is_directory(&mut self, at: At<'_>) -> bool {
        self.kind(at) == Kind::Directory
    }

    fn kind(&mut self, at: At<'_>) -> Kind {
        if let Some((room, name, kind)) = &self.looked_at
            && room == at.room
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
        match &mut self.looked_at {
            Some((room, name, last)) => {
                room.replace_range(.., at.room);
                name.replace_range(.., at.name);
                *last = kind;
            }
            None => self.looked_at = Some((at.room.into(), at.name.into(), kind)),
        }
        kind
    }

    fn stat(&mut self, at: At<'_>) -> nix::Result<FileStat> {
        self.call(at, |fd, name| fstatat(fd, name, AtFlags::AT_SYMLINK_NOFOLLOW))
    }

    /// `file_exists` of a path that is not remembered, which PHP asks by `access`.
    pub(super) fn exists(&mut self, at: At<'_>) -> bool {
        let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
        self.call(at, |fd, name| faccessat(fd, name, AccessFlags::F_OK, flags)).is_ok()
    }

    /// `filesize`; 0 where there is none.
    pub(super) fn bytes(&mut self, at: At<'_>) -> u64 {
        self.stat(at).map_or(0, |stat| stat.st_size.max(0) as u64)
    }

    /// `is_writable` of a directory.
    pub(super) fn is_writable(&mut self, room: &str) -> bool {
        let flags = AtFlags::AT_SYMLINK_NOFOLLOW;
        let at = At { room: "", name: room };
        self.call(at, |fd, name| faccessat(fd, name, AccessFlags::W_OK, flags)).is_ok()
    }

    /// Makes a directory where there is none, with the mode that `umask` leaves, and then gives it
    /// `mode` where that is given; whether it succeeded, `is_writable` tells.
    pub(super) fn make_room(&mut self, room: &str, mode: Option<Mode>) {
        let at = At { room: "", name: room };
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

    /// Opens a file. PHP looks at a path before it opens it for the first time (its realpath
    /// cache), `is_known` tells that it has done so.
    pub(super) fn open(&mut self, at: At<'_>, flags: OFlag, is_known: bool) -> io::Result<File> {
        if !is_known {
            let _ = self.stat(at);
        }
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(0o666);
        let file = File::from(self.call(at, |fd, name| openat(fd, name, flags, mode))?);
        // A pipe or a device under one of our names would block or act.
        if !file.metadata()?.is_file() {
            return Err(io::Error::from(Errno::ELOOP));
        }
        Ok(file)
    }

    /// Removes a file; false where there was none.
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
    pub(super) fn remove_room(&mut self, room: &str) {
        let at = At { room: "", name: room };
        let _ = self.call(at, |fd, name| unlinkat(fd, name, UnlinkatFlags::RemoveDir));
        self.rooms.remove(room);
        self.forget();
    }

    /// Names in a directory, empty for the cache's own, that begin with `prefix`, sorted; none
    /// where it cannot be listed. Names that are no UTF-8 are nobody's of ours and left out.
    pub(super) fn glob(&mut self, room: &str, prefix: &str) -> Vec<String> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = if room.is_empty() {
            self.files += 1;
            openat(&self.top.fd, ".", flags, Mode::empty())
        } else {
            let at = At { room: "", name: room };
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
        if at.room.is_empty() {
            return call(&self.top.fd, at.name);
        }
        let fd = self.room(at.room)?;
        match call(fd, at.name) {
            // A directory that was removed has no links left.
            Err(Errno::ENOENT) if fstat(fd).is_ok_and(|stat| stat.st_nlink == 0) => {
                self.rooms.remove(at.room);
                call(self.room(at.room)?, at.name)
            }
            result => result,
        }
    }

    fn room(&mut self, room: &str) -> nix::Result<&OwnedFd> {
        if !self.rooms.contains_key(room) {
            let flags = OFlag::O_DIRECTORY | OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            let fd = openat(&self.top.fd, room, flags, Mode::empty())?;
            self.rooms.insert(room.into(), fd);
        }
        Ok(&self.rooms[room])
    }
}

/// An error of a file of the cache; what is not a file of ours is told apart.
pub(super) fn wrong(what: &str, at: At<'_>, e: &io::Error) -> StoreError {
    let path = if at.room.is_empty() { at.name.into() } else { [at.room, at.name].join("/") };
    let mut error = fault::file(&format!("cannot {what} file `{path}`"), e);
    let foreign = [nix::libc::ELOOP, nix::libc::ENOTDIR, nix::libc::EISDIR];
    if e.raw_os_error().is_some_and(|code| foreign.contains(&code)) {
        error.class = ErrorClass::NotOurs;
        error.message = format!("`{path}` is no file of the cache (expected a plain file)");
    }
    error
}
