//! Template data directories. A server's installer takes seconds, so it runs once per run, and its
//! result is copied for each server.

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::scratch::Scratch;
use nix::unistd::syncfs;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Template data directories by server program and the disk of its data; removed on drop.
#[derive(Debug, Default)]
pub struct Templates(BTreeMap<(&'static str, PathBuf), Scratch>);

impl Templates {
    /// The template data directory of a server with data in `parent`; the first call creates it
    /// there with `install`, so that the file system can copy by reference.
    pub(crate) fn of(
        &mut self,
        server: &'static str,
        (guard, parent): (&Guard, &Path),
        install: impl FnOnce(&Scratch) -> Result<()>,
    ) -> Result<PathBuf> {
        let template = match self.0.entry((server, parent.into())) {
            Entry::Occupied(existing) => existing.into_mut(),
            Entry::Vacant(vacant) => {
                let scratch = Scratch::new(guard, parent)?;
                install(&scratch)?;
                vacant.insert(scratch)
            }
        };
        Ok(data_of(template))
    }
}

/// Path of the data within an owned directory.
pub(crate) fn data_of(scratch: &Scratch) -> PathBuf {
    scratch.path().join("data")
}

/// Copies directories and regular files. The standard library uses `copy_file_range`, so file
/// systems that support it copy by reference.
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

/// Flushes the directory's file system to the disk.
pub(crate) fn flush(directory: &Path) -> Result<()> {
    let file = File::open(directory).map_err(RigError::io("open directory", directory))?;
    syncfs(file).map_err(|e| RigError::io("flush", directory)(e.into()))
}
