//! Directories for the session files of one trial each, in fresh places of the disk.
//!
//! Where ext4 has no journal, it does not use an inode again for some minutes after its file was
//! deleted, and looks through all of these for each new file in their group (`recently_deleted` in
//! the kernel's `fs/ext4/ialloc.c`): creating sessions where those of the last trial were deleted
//! was measured to be ten to twenty times slower than in a fresh place. So the trials' directories
//! are spread over the disk by ext4's flag for tops of directory hierarchies (`chattr +T`), and of
//! a few the one is taken in which files are made quickest. Other file systems do not know the
//! flag; there the first directory is taken.

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::scratch::{Scratch, random};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Places looked at for each trial.
const PLACES: usize = 8;
/// Files made to try a place.
const PROBES: usize = 16;

/// An owned directory that holds those of the trials; removed with all of them on drop.
#[derive(Debug)]
pub struct Shelf {
    scratch: Scratch,
    spreads: bool,
}

impl Shelf {
    /// Makes a new one in `parent`, which must exist.
    pub fn new(guard: &Guard, parent: &Path) -> Result<Self> {
        let scratch = Scratch::new(guard, parent)?;
        let status = Command::new("chattr")
            .arg("+T")
            .arg(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        Ok(Self { scratch, spreads: status.is_ok_and(|s| s.success()) })
    }

    /// A new directory for one trial, which removes it.
    pub fn directory(&self) -> Result<PathBuf> {
        let mut best: Option<(Duration, PathBuf)> = None;
        for _ in 0..if self.spreads { PLACES } else { 1 } {
            // The name decides where on the disk the flag puts it.
            let path = self.scratch.subdirectory(&format!("{:08x}", random()))?;
            let took = probe(&path).map_err(RigError::io("try directory", &path))?;
            let other = match best.take() {
                Some((least, other)) if least <= took => {
                    best = Some((least, other));
                    Some(path)
                }
                worse => {
                    best = Some((took, path));
                    worse.map(|(_, path)| path)
                }
            };
            if let Some(other) = other {
                fs::remove_dir(&other).map_err(RigError::io("remove directory", &other))?;
            }
        }
        let path = self.scratch.path();
        best.map(|(_, path)| path).ok_or_else(|| {
            RigError::io("find a place in", path)(std::io::ErrorKind::NotFound.into())
        })
    }
}

/// How long it takes to make a few files there; they are removed again.
fn probe(directory: &Path) -> std::io::Result<Duration> {
    let files: Vec<PathBuf> = (0..PROBES).map(|n| directory.join(format!("probe{n}"))).collect();
    let begun = Instant::now();
    for file in &files {
        File::create_new(file)?;
    }
    let took = begun.elapsed();
    for file in &files {
        fs::remove_file(file)?;
    }
    Ok(took)
}
