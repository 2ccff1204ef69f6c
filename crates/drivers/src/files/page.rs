//! PHP's files handler (`ext/session/mod_files.c` of php-src): `sess_<id>`, mode 0600, created if
//! it is missing, locked with flock from open to close; read with fstat and pread, written with
//! ftruncate to 0 and pwrite at 0, unlocked by close. PHP 8.2 makes its system calls in this order
//! under strace, whether the new value is longer, shorter or as long as the old one.
//!
//! A request that PHP chose to collect first lists the directory, and removes each file whose
//! modification time is more than the lifetime before the start of the listing, in whole seconds.
//! The file of another request's open session is removed like any other: what that request writes
//! is lost.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, SystemTime};

use model::ErrorClass;
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{Uid, UnlinkatFlags, unlinkat};
use workloads::store::{Closed, Collected, Collects, Found, Opened, PageStore, StoreError};

use super::directory::{Directory, check_id, close};
use super::lock;
use crate::clock::now_s;
use crate::fault;

const PREFIX: &str = "sess_";

pub(super) struct Page {
    directory: Directory,
    timeout: Duration,
    ttl_s: u64,
    /// Age of a session when it is closed, seconds.
    age_s: u64,
    name: String,
    /// The locked file.
    open: Option<File>,
}

impl Page {
    pub(super) fn new(directory: Directory, timeout: Duration, ttl_s: u64) -> Self {
        Self { directory, timeout, ttl_s, age_s: 0, name: String::new(), open: None }
    }

    /// Whether a file, which may just have been removed by another collection, is to be removed.
    fn is_expired(&self, name: &CStr, now_s: u64) -> bool {
        let found = fstatat(&self.directory.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let age_s = found.map_or(0, |found| now_s.cast_signed() - found.st_mtime);
        age_s > self.ttl_s.cast_signed()
    }

    fn wrong(&self, what: &str, e: &io::Error) -> StoreError {
        fault::file(&format!("cannot {what} file `{}`", self.name), e)
    }

    /// PHP rejects files of other users unless it runs as root.
    fn check_owner(&self, file: &File) -> Result<(), StoreError> {
        let owner = file.metadata().map_err(|e| self.wrong("stat", &e))?.uid();
        let me = Uid::current();
        if owner == 0 || owner == me.as_raw() || owner == Uid::effective().as_raw() || me.is_root()
        {
            return Ok(());
        }
        let message = format!("file `{}` belongs to user {owner}", self.name);
        Err(StoreError::soft(ErrorClass::NotOurs, message))
    }
}

impl PageStore for Page {
    fn open(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Opened, StoreError> {
        self.open = None;
        check_id(id)?;
        self.name.clear();
        self.name.push_str(PREFIX);
        self.name.push_str(id);
        let file = self
            .directory
            .file(&self.name, OFlag::O_CREAT | OFlag::O_RDWR)
            .map_err(|e| self.wrong("open", &e))?;
        self.check_owner(&file)?;
        let lock = lock::exclusive(&file, self.timeout)?;
        let size = file.metadata().map_err(|e| self.wrong("stat", &e))?.len();
        value.resize(size as usize, 0);
        if size > 0 {
            file.read_exact_at(value, 0).map_err(|e| self.wrong("read", &e))?;
        }
        self.open = Some(file);
        Ok(Opened { found: if size == 0 { Found::No } else { Found::Yes }, lock })
    }

    fn close(&mut self, value: &[u8]) -> Result<Closed, StoreError> {
        let Some(file) = self.open.take() else {
            return Err(StoreError::soft(ErrorClass::Other, "no session is open"));
        };
        file.set_len(0).map_err(|e| self.wrong("truncate", &e))?;
        file.write_all_at(value, 0).map_err(|e| self.wrong("write", &e))?;
        if self.age_s > 0 {
            let visited = SystemTime::now() - Duration::from_secs(self.age_s);
            file.set_modified(visited).map_err(|e| self.wrong("date", &e))?;
        }
        close(file).map_err(|e| self.wrong("close", &e))?;
        Ok(Closed::Kept)
    }

    fn set_lifetime(&mut self, lifetime_s: u64) {
        self.age_s = self.ttl_s.saturating_sub(lifetime_s);
    }

    fn collects(&self) -> Collects {
        Collects::BeforeOpen
    }

    fn collect(&mut self) -> Result<Collected, StoreError> {
        let now_s = now_s();
        let unlisted = |e: Errno| fault::file("cannot list the directory of sessions", &e.into());
        let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let mut listed = Dir::openat(&self.directory.fd, ".", flags, Mode::empty());
        let mut collected = Collected::default();
        for entry in listed.as_mut().map_err(|e| unlisted(*e))?.iter() {
            let entry = entry.map_err(unlisted)?;
            let name = entry.file_name();
            if !name.to_bytes().starts_with(PREFIX.as_bytes()) {
                continue;
            }
            collected.files += 1;
            let is_removed = self.is_expired(name, now_s)
                && unlinkat(&self.directory.fd, name, UnlinkatFlags::NoRemoveDir).is_ok();
            collected.deleted += u64::from(is_removed);
        }
        Ok(collected)
    }
}
