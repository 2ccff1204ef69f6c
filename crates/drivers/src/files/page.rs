//! PHP's files handler (`ext/session/mod_files.c` of php-src): `sess_<id>`, mode 0600, created if
//! it is missing, locked with flock from open to close; read with fstat and pread, written with
//! ftruncate to 0 and pwrite at 0, unlocked by close. PHP 8.2 makes its system calls in this order
//! under strace, whether the new value is longer, shorter or as long as the old one.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use model::ErrorClass;
use nix::fcntl::OFlag;
use nix::unistd::Uid;
use workloads::store::{Closed, Found, Opened, PageStore, StoreError};

use super::directory::{Directory, check_id, close};
use super::lock;
use crate::fault;

const PREFIX: &str = "sess_";

pub(super) struct Page {
    directory: Directory,
    timeout: Duration,
    name: String,
    /// The locked file.
    open: Option<File>,
}

impl Page {
    pub(super) fn new(directory: Directory, timeout: Duration) -> Self {
        Self { directory, timeout, name: String::new(), open: None }
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
        close(file).map_err(|e| self.wrong("close", &e))?;
        Ok(Closed::Kept)
    }
}
