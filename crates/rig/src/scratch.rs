//! Owned temporary directories: `cachedyno-<8 hex>`, mode 0700, with a mark that says who owns them
//! (see `owner.rs`), known to the guard, removed on drop.
//!
//! Sockets live in a short scratch under `$TMPDIR` or `/tmp`, because a socket's path fits
//! 107 bytes only; data lives in a scratch on the disk under test.

use crate::error::{Result, RigError, SOCKET_PATH_BYTES_MAX};
use crate::guard::Guard;
use crate::owner::{FIRST_LINE, MARK, Owner, new_name};
use crate::removal::remove_owned;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// What a directory's name and the longest socket's name in it add to the parent's path.
const SOCKET_NAME_BYTES: usize = "/cachedyno-01234567/server.sock".len();

/// A private directory that is removed after the run.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    guard: Guard,
    /// Keeps the lock of the mark: where process ids say nothing, as among containers, the lock
    /// still says that the owner lives.
    mark: Option<File>,
}

impl Scratch {
    /// Creates a new directory in `parent`, which must exist.
    pub fn new(guard: &Guard, parent: &Path) -> Result<Self> {
        let parent = parent.canonicalize().map_err(RigError::io("use directory", parent))?;
        loop {
            let path = parent.join(new_name());
            // Own it before it exists, so `kill -9` in between leaves nothing behind.
            guard.own_directory(&path)?;
            let made = DirBuilder::new().mode(0o700).create(&path);
            if made.is_err() {
                guard.disown_directory(&path)?;
            }
            match made {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                done => done.map_err(RigError::io("create directory", &path))?,
            }
            // From now on, dropping it removes it.
            let mut scratch = Self { path, guard: guard.clone(), mark: None };
            let mark = scratch.path.join(MARK);
            match write_mark(&mark, guard) {
                Ok(file) => scratch.mark = Some(file),
                Err(e) => {
                    // Without its mark it would stay; it is empty or holds a torn mark only.
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

    /// The path of a socket in it, or an error if the path is too long for the kernel.
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

/// Writes the mark and locks it. It is on the disk before data is, so that it says whose the data
/// was after a crash of the system as well.
fn write_mark(path: &Path, guard: &Guard) -> io::Result<File> {
    let mut file = File::create_new(path)?;
    // Some network file systems have no locks; the rest of the mark counts all the same.
    let _ = file.try_lock();
    let text = guard.owner().map_or_else(|| FIRST_LINE.into(), Owner::mark);
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
}
