//! Directories for the session files of trials: one per trial, on unused parts of the disk.
//!
//! Without a journal, ext4 does not reuse an inode for some minutes after its file was deleted, and
//! skips over all such inodes for each new file in their block group (`recently_deleted` in the
//! kernel's `fs/ext4/ialloc.c`). Creating sessions where those of the last trial were deleted was
//! measured to be ten to twenty times slower than elsewhere. Therefore ext4's flag for tops of
//! directory hierarchies (`chattr +T`) spreads the trials' directories over the disk, and of a few
//! candidates the one with the fastest file creation is used. Other file systems do not support
//! the flag; there the first directory is used.
//!
//! The files of a large trial (hundreds of thousands) span many block groups and would overlap with
//! those of earlier trials. Therefore files are kept until the run ends if there is enough room
//! ([`TrialDirs::has_room`]): without deletions there is no slowdown.

use crate::child;
use crate::error::{Result, RigError};
use crate::free::FreeSpace;
use crate::guard::Guard;
use crate::random::random;
use crate::scratch::Scratch;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Number of candidate directories per trial.
const CANDIDATES: usize = 8;
/// Number of files created to test a candidate.
const PROBE_FILES: usize = 16;
/// Files are kept while the free space is at least this multiple of the space used so far.
const FREE_FACTOR: u64 = 3;

/// An owned directory that contains the directories of all trials; all are removed on drop.
#[derive(Debug)]
pub struct TrialDirs {
    scratch: Scratch,
    /// Whether the file system spreads new subdirectories over the disk (`chattr +T`).
    spreads: bool,
    /// Free space when it was created.
    free: FreeSpace,
}

/// Counts the remaining files while the directories of trials are removed.
#[derive(Clone, Debug)]
pub struct FilesLeft {
    parent: PathBuf,
    /// Free inodes before the first trial.
    before: u64,
}

impl FilesLeft {
    /// Approximate number, because files of other programs on the same disk count as well. `None`
    /// if the file system does not report it.
    pub fn count(&self) -> Option<u64> {
        Some(self.before.saturating_sub(FreeSpace::on(&self.parent).files?))
    }
}

/// Whether at least [`FREE_FACTOR`] times the space used since `before` is still free.
fn is_ample(now: FreeSpace, before: FreeSpace) -> bool {
    let ample =
        |now: u64, before: u64| now >= before.saturating_sub(now).saturating_mul(FREE_FACTOR);
    let disk = now.disk_bytes.zip(before.disk_bytes);
    let files = now.files.zip(before.files);
    disk.is_some_and(|(now, before)| ample(now, before))
        && files.is_none_or(|(now, before)| ample(now, before))
}

impl TrialDirs {
    /// Creates a new one in `parent`, which must exist.
    pub fn new(guard: &Guard, parent: &Path) -> Result<Self> {
        let scratch = Scratch::new(guard, parent)?;
        let status = child::command("chattr")
            .arg("+T")
            .arg(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let free = FreeSpace::on(scratch.path());
        Ok(Self { scratch, spreads: status.is_ok_and(|s| s.success()), free })
    }

    /// A counter of the remaining files, which also works after this is dropped; `None` if the
    /// file system does not count files.
    pub fn files_left(&self) -> Option<FilesLeft> {
        let parent = self.scratch.path().parent()?.to_path_buf();
        Some(FilesLeft { parent, before: self.free.files? })
    }

    /// Whether there is enough room to keep the trials' files until the run ends.
    pub fn has_room(&self) -> bool {
        is_ample(FreeSpace::on(self.scratch.path()), self.free)
    }

    /// Creates a directory for one trial. If there is no room, the trial has to remove it.
    pub fn directory(&self) -> Result<PathBuf> {
        let mut best: Option<(Duration, PathBuf)> = None;
        for _ in 0..if self.spreads { CANDIDATES } else { 1 } {
            // With the flag, ext4 derives the location on the disk from the name.
            let path = self.scratch.subdirectory(&format!("{:08x}", random()))?;
            let took = probe(&path).map_err(RigError::io("create files in", &path))?;
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
            RigError::io("create a trial directory in", path)(std::io::ErrorKind::NotFound.into())
        })
    }
}

/// Time to create a few files in the directory; removes them afterwards.
fn probe(directory: &Path) -> std::io::Result<Duration> {
    let files: Vec<PathBuf> =
        (0..PROBE_FILES).map(|n| directory.join(format!("probe{n}"))).collect();
    let started = Instant::now();
    for file in &files {
        File::create_new(file)?;
    }
    let took = started.elapsed();
    for file in &files {
        fs::remove_file(file)?;
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_while_three_times_their_space_is_free() {
        let free = |disk_bytes, files| FreeSpace {
            memory_bytes: None,
            disk_bytes: Some(disk_bytes),
            files: Some(files),
        };
        let before = free(1000, 1000);
        assert!(is_ample(free(1000, 1000), before) && is_ample(free(750, 750), before));
        assert!(!is_ample(free(749, 1000), before) && !is_ample(free(1000, 749), before));
        assert!(is_ample(free(2000, 2000), before), "other programs removed files");
        // Some file systems have no limit on the number of files.
        let uncounted = FreeSpace { files: None, ..free(900, 0) };
        assert!(is_ample(uncounted, FreeSpace { files: None, ..before }));
        assert!(!is_ample(FreeSpace { disk_bytes: None, ..uncounted }, before), "missing disk");
    }
}
