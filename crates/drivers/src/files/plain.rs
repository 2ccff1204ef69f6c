//! The layout of the 2019 script: the file's name is the session's. It is written with open
//! (truncating), write and close, and read with open, fstat, read and close; no lock and no rename.
//!
//! With [`Connections::As2019`] a call makes the system calls of PHP's `file_put_contents` and
//! `file_get_contents`, which the script used, in the same order: PHP checks the path before it
//! reads it, gets the file's status twice and its position once, and reads until two reads return
//! end of file (observed with `strace` on PHP 8.2; php-src, `main/streams/plain_wrapper.c` and
//! `main/streams/streams.c`).

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Connections, ErrorClass};
use nix::fcntl::{AtFlags, OFlag, renameat};
use nix::sys::stat::fstatat;
use workloads::store::{Found, SessionStore, StoreError};

use super::directory::{Directory, check_id, close};
use crate::fault;

pub(super) struct Plain {
    directory: Directory,
    as_php: bool,
    /// The file that a value is written to before it replaces the old one; `None` if the file of
    /// the session itself is written.
    temporary: Option<String>,
}

/// Number of temporary files so far, for their names.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl Plain {
    pub(super) fn new(directory: Directory, connections: Connections) -> Self {
        Self { directory, as_php: connections == Connections::As2019, temporary: None }
    }

    /// A store whose files several clients write: a value is written to a temporary file, which
    /// then takes the name of the old one, so that readers never see a part of it.
    pub(super) fn renaming(directory: Directory) -> Self {
        let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        Self { directory, as_php: false, temporary: Some(format!("temporary.{number}")) }
    }

    fn replace_whole(&self, id: &str, value: &[u8]) -> io::Result<()> {
        let Some(temporary) = &self.temporary else { return self.put(id, value) };
        self.put(temporary, value)?;
        let directory = &self.directory.fd;
        Ok(renameat(directory, temporary.as_str(), directory, id)?)
    }

    fn put(&self, id: &str, value: &[u8]) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC;
        let mut file = self.directory.file(id, flags)?;
        if self.as_php {
            file.metadata()?;
            file.stream_position()?;
        }
        file.write_all(value)?;
        close(file)
    }

    fn get(&self, id: &str, value: &mut Vec<u8>) -> io::Result<()> {
        if self.as_php {
            fstatat(&self.directory.fd, id, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        }
        let mut file = self.directory.file(id, OFlag::O_RDONLY)?;
        let mut metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        if self.as_php {
            file.stream_position()?;
            metadata = file.metadata()?;
        }
        // A value of the same length as the previous one is read without clearing the buffer first.
        value.resize(metadata.len() as usize, 0);
        let filled = read_into(&mut file, value)?;
        // The file is shorter than fstat reported: another client is writing it, and readers are
        // not protected.
        value.truncate(filled);
        if self.as_php {
            // Data appended since fstat is ignored, as without these two calls.
            let _appended = file.read(&mut [0])? + file.read(&mut [0])?;
        }
        Ok(())
    }
}

/// Reads until `value` is full or the file ends; returns the number of bytes read.
fn read_into(file: &mut File, value: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < value.len() {
        match file.read(&mut value[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

impl SessionStore for Plain {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        check_id(id)?;
        self.put(id, value).map_err(|e| wrong("write", id, &e))
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        check_id(id)?;
        match self.get(id, value) {
            Ok(()) => Ok(Found::Yes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                value.clear();
                Ok(Found::No)
            }
            Err(e) => Err(wrong("read", id, &e)),
        }
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        check_id(id)?;
        self.replace_whole(id, value).map_err(|e| wrong("write", id, &e))?;
        Ok(Found::Yes)
    }
}

fn wrong(what: &str, id: &str, e: &io::Error) -> StoreError {
    let mut error = fault::file(&format!("cannot {what} file `{id}`"), e);
    if error.class == ErrorClass::Other && e.raw_os_error() == Some(nix::libc::ELOOP) {
        error.class = ErrorClass::NotOurs;
    }
    error
}
