//! Files: one a session in one flat directory, or those of an application cache.
//!
//! - `plain`, `page`: sessions.
//! - `zend`, `cm`: application caches, by `tree` and `stream` as PHP sees files.
//! - `admin`: what is done around a run.
//!
//! Every file is opened relative to a descriptor of its directory, without following links, so
//! that no id leads out of it. Nothing is synced: neither PHP nor the 2019 script does.

mod admin;
mod cm;
mod lock;
mod page;
mod plain;
mod stream;
mod tree;
mod zend;

use std::fs::File;
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::Path;

use model::ErrorClass;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use workloads::store::{PageStore, SessionStore, StoreError};

use crate::{CacheOptions, SessionOptions, fault};

pub(crate) use admin::open_admin;
pub(crate) use cm::CmFile;
pub(crate) use zend::ZendFile;

/// Mode of session files and of Zend's cache files, as PHP sets it.
const FILE_MODE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

pub(crate) fn open_plain(options: &SessionOptions) -> Result<Box<dyn SessionStore>, StoreError> {
    let directory = Directory::open(&options.directory)?;
    Ok(Box::new(plain::Plain::new(directory, options.connections)))
}

pub(crate) fn open_page(options: &SessionOptions) -> Result<Box<dyn PageStore>, StoreError> {
    Ok(Box::new(page::Page::new(Directory::open(&options.directory)?, options.timeout)))
}

pub(crate) fn open_zend(options: &CacheOptions) -> Result<ZendFile, StoreError> {
    Ok(ZendFile::new(Directory::open(&options.directory)?, options.timeout))
}

pub(crate) fn open_cm(options: &CacheOptions) -> Result<CmFile, StoreError> {
    Ok(CmFile::new(Directory::open(&options.directory)?, options.timeout))
}

/// A directory that is held open.
struct Directory {
    fd: OwnedFd,
}

impl Directory {
    fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Self { fd }),
            Err(e) => Err(StoreError::fatal(
                fault::class(io::Error::from(e).kind()),
                format!(
                    "cannot use directory `{}`: {} (expected an existing directory)",
                    path.display(),
                    fault::text(&e.into())
                ),
            )),
        }
    }

    /// Opens a file of the directory; `name` has passed [`check_id`].
    fn file(&self, name: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(openat(&self.fd, name, flags, FILE_MODE)?))
    }
}

/// Refuses what is not a plain file name.
fn check_id(id: &str) -> Result<(), StoreError> {
    if id.is_empty() || id == "." || id == ".." || id.bytes().any(|b| b == b'/' || b == 0) {
        let message = format!("id `{}` is no file name", fault::words(id.as_bytes()));
        return Err(StoreError::soft(ErrorClass::Other, message));
    }
    Ok(())
}

/// Whether a layout of caches makes a directory of that name.
fn is_room(name: &str) -> bool {
    zend::is_room(name) || cm::is_room(name)
}

/// Closes a written file and tells what only closing finds out (quotas on network file systems).
fn close(file: File) -> io::Result<()> {
    Ok(nix::unistd::close(file.into_raw_fd())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_in_the_directory() {
        for id in ["", ".", "..", "a/b", "../x", "/etc/passwd", "a\0b"] {
            assert_eq!(check_id(id).unwrap_err().class, ErrorClass::Other, "{id:?}");
        }
        for id in ["1_0", "...", "a.b", "ü"] {
            check_id(id).unwrap();
        }
    }
}
