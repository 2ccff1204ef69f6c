//! Data directories that a server's installer makes, which takes seconds: once a run, and copied
//! for each server.

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::scratch::Scratch;
use nix::unistd::syncfs;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The data directories to copy from, by the server's program; removed with this.
#[derive(Debug, Default)]
pub struct Templates(BTreeMap<&'static str, Scratch>);

impl Templates {
    /// The data directory of a server, which `install` makes in its template's directory the first
    /// time. It lies in `parent`, best on the disk under test: there the file system may copy by
    /// reference.
    pub(crate) fn of(
        &mut self,
        server: &'static str,
        (guard, parent): (&Guard, &Path),
        install: impl FnOnce(&Scratch) -> Result<()>,
    ) -> Result<PathBuf> {
        let template = match self.0.entry(server) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(free) => {
                let scratch = Scratch::new(guard, parent)?;
                install(&scratch)?;
                free.insert(scratch)
            }
        };
        Ok(data_of(template))
    }
}

/// Path of the data within an owned directory.
pub(crate) fn data_of(scratch: &Scratch) -> PathBuf {
    scratch.path().join("data")
}

/// Copies directories and regular files; the standard library asks the kernel to copy file ranges,
/// which file systems that can do it serve by reference.
pub(crate) fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    let made = DirBuilder::new().mode(0o700).create(to);
    made.map_err(RigError::io("create directory", to))?;
    let entries = fs::read_dir(from).map_err(RigError::io("read directory", from))?;
    for entry in entries {
        let entry = entry.map_err(RigError::io("read directory", from))?;
        let kind = entry.file_type().map_err(RigError::io("read directory", from))?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).map_err(RigError::io("copy to", &target))?;
        }
    }
    Ok(())
}

/// Waits until what was written to the directory's file system is on the disk.
pub(crate) fn flush(directory: &Path) -> Result<()> {
    let file = File::open(directory).map_err(RigError::io("open directory", directory))?;
    syncfs(file).map_err(|e| RigError::io("flush", directory)(e.into()))
}
