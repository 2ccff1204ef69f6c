//! Owned temporary directories: `cachedyno-<8 hex>`, mode 0700, with a mark that identifies their
//! owner (see `owner.rs`), registered with the guard, removed on drop.
//!
//! Sockets are in a scratch with a short path in `$TMPDIR` or `/tmp`, because a socket's path is
//! limited to 107 bytes; data is in a scratch on the disk under test.

use crate::error::{Result, RigError, SOCKET_PATH_BYTES_MAX};
use crate::guard::Guard;
use crate::owner::{FIRST_LINE, MARK, Owner, new_name};
use crate::removal::remove_owned;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Length of a scratch directory's name plus that of the longest socket name.
const SOCKET_NAME_BYTES: usize = "/cachedyno-01234567/server.sock".len();

/// A private directory that is removed after the run.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    guard: Guard,
    /// Holds the lock of the mark. It shows that the owner is alive even if process ids cannot, for
    /// example across containers.
    mark: Option<File>,
}

impl Scratch {
    /// Creates a new directory in `parent`, which must exist.
    pub fn new(guard: &Guard, parent: &Path) -> Result<Self> {
        let parent = parent.canonicalize().map_err(RigError::io("use directory", parent))?;
        loop {
            let path = parent.join(new_name());
            // Registers it before it exists, so `kill -9` in between leaves nothing behind.
            guard.own_directory(&path)?;
            let made = DirBuilder::new().mode(0o700).create(&path);
            if made.is_err() {
                guard.disown_directory(&path)?;
            }
            match made {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                done => done.map_err(RigError::io("create directory", &path))?,
            }
            // From here on, a drop removes it.
            let mut scratch = Self { path, guard: guard.clone(), mark: None };
            let mark = scratch.path.join(MARK);
            match write_mark(&mark, guard) {
                Ok(file) => scratch.mark = Some(file),
                Err(e) => {
                    // Nothing else would remove it; it contains at most an incomplete mark.
                    let _ = fs::remove_file(&mark);
                    let _ = fs::remove_dir(&scratch.path);
                    return Err(RigError::io("write", &mark)(e));
                }
            }
            return Ok(scratch);
        }
    }

    /// Creates a new directory for sockets: in `$TMPDIR` if that is short enough, else in `/tmp`.
    pub fn for_sockets(guard: &Guard) -> Result<Self> {
        let preferred = std::env::temp_dir();
        let fits = |p: &Path| {
            p.canonicalize()
                .is_ok_and(|p| p.as_os_str().len() + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES_MAX)
        };
        let parent = if fits(&preferred) { &preferred } else { Path::new("/tmp") };
        Self::new(guard, parent)
    }

    /// The directory; absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a socket in it. Errors: the path is too long for the kernel.
    pub fn socket(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let bytes = path.as_os_str().as_bytes().len();
        if bytes > SOCKET_PATH_BYTES_MAX {
            return Err(RigError::SocketPath { path: path.display().to_string(), bytes });
        }
        Ok(path)
    }

    /// Creates a subdirectory, mode 0700.
    pub fn subdirectory(&self, name: &str) -> Result<PathBuf> {
        let path = self.path.join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(RigError::io("create directory", &path))?;
        Ok(path)
    }

    /// Removes it now and reports errors; after an error the guard tries again at the end.
    pub fn remove(self) -> Result<()> {
        self.remove_now()
    }

    fn remove_now(&self) -> Result<()> {
        remove_owned(&self.path).map_err(RigError::io("remove directory", &self.path))?;
        // Fails only if the guard has ended.
        let _ = self.guard.disown_directory(&self.path);
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // On failure it stays owned, and the guard tries again.
        let _ = self.remove_now();
    }
}

/// Writes the mark and locks it. The mark is flushed before any data is written, so it identifies
/// the data's owner even after a system crash.
fn write_mark(path: &Path, guard: &Guard) -> io::Result<File> {
    let mut file = File::create_new(path)?;
    // Some network file systems have no locks; the contents of the mark are valid without.
    let _ = file.try_lock();
    let text = guard.owner().map_or_else(|| FIRST_LINE.into(), Owner::mark);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
}
