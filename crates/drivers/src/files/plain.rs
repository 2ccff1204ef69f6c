//! The 2019 script's layout: the file's name is the session's, written by open with truncation,
//! write and close (`file_put_contents`), read by open, fstat, read and close
//! (`file_get_contents`); no lock and no rename.

use std::io::{self, Read, Write};

use model::ErrorClass;
use nix::fcntl::OFlag;
use workloads::store::{Found, SessionStore, StoreError};

use super::{Directory, check_id, close};
use crate::fault;

pub(super) struct Plain {
    directory: Directory,
}

impl Plain {
    pub(super) fn new(directory: Directory) -> Self {
        Self { directory }
    }

    fn put(&self, id: &str, value: &[u8]) -> io::Result<()> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC;
        let mut file = self.directory.file(id, flags)?;
        file.write_all(value)?;
        close(file)
    }

    fn get(&self, id: &str, value: &mut Vec<u8>) -> io::Result<()> {
        let mut file = self.directory.file(id, OFlag::O_RDONLY)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // A value of the same length as the last one is read without clearing the buffer first.
        value.resize(metadata.len() as usize, 0);
        let mut filled = 0;
        while filled < value.len() {
            match file.read(&mut value[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        // Shorter than fstat said: somebody is writing it, and nothing protects readers.
        value.truncate(filled);
        Ok(())
    }
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
        self.create(id, value)?;
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
