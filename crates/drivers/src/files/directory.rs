//! An open directory, its files and their names.

use std::fs::File;
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::Path;

use model::ErrorClass;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use workloads::store::StoreError;

use crate::fault;

/// Mode of session files and Zend cache files, as set by PHP.
pub(super) const FILE_MODE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

/// An open directory.
pub(super) struct Directory {
    pub(super) fd: OwnedFd,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
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

    /// Opens a file in the directory; `name` has passed [`check_id`].
    pub(super) fn file(&self, name: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(File::from(openat(&self.fd, name, flags, FILE_MODE)?))
    }
}

/// Rejects anything but a plain file name.
pub(super) fn check_id(id: &str) -> Result<(), StoreError> {
    if id.is_empty() || id == "." || id == ".." || id.bytes().any(|b| b == b'/' || b == 0) {
        let message = format!("id `{}` is not a file name", fault::printable(id.as_bytes()));
        return Err(StoreError::soft(ErrorClass::Other, message));
    }
    Ok(())
}

/// Closes a written file and returns errors that only closing detects (quotas on network file
/// systems).
pub(super) fn close(file: File) -> io::Result<()> {
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
