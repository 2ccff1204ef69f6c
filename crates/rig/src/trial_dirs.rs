//! Directories for the session files of one trial each, in fresh places of the disk.
//!
//! Where ext4 has no journal, it does not use an inode again for some minutes after its file was
//! deleted, and looks through all of these for each new file in their group (`recently_deleted` in
//! the kernel's `fs/ext4/ialloc.c`): creating sessions where those of the last trial were deleted
//! was measured to be ten to twenty times slower than in a fresh place. So the trials' directories
//! are spread over the disk by ext4's flag for tops of directory hierarchies (`chattr +T`), and of
//! a few the one is taken in which files are made quickest. Other file systems do not know the
//! flag; there the first directory is taken.
//!
//! A trial of hundreds of thousands of files reaches over many groups, and no place is far enough
//! from those of the trials before it. So files stay where they are until the run ends, as long as
//! there is room ([`TrialDirs::has_room`]): what is not deleted slows nobody down.

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
const PLACES: usize = 8;
/// Number of files created to test a candidate.
const PROBES: usize = 16;
/// Multiple of what was used so far that must be free for files to stay.
const FREE: u64 = 3;

/// An owned directory that holds those of the trials; removed with all of them on drop.
#[derive(Debug)]
pub struct TrialDirs {
    scratch: Scratch,
    spreads: bool,
    /// Free space at its creation.
    free: FreeSpace,
}

/// Reports how many files remain while the directories of trials are removed.
#[derive(Clone, Debug)]
pub struct FilesLeft {
    parent: PathBuf,
    /// Free inodes before the first trial.
    before: u64,
}

impl FilesLeft {
    /// About so many: what others make or remove on the same disk counts as well. `None` where the
    /// file system does not tell.
    pub fn count(&self) -> Option<u64> {
        Some(self.before.saturating_sub(FreeSpace::on(&self.parent).files?))
    }
}

/// Whether so much is left of what was free `before` that the same can be used again, and again.
fn is_ample(now: FreeSpace, before: FreeSpace) -> bool {
    let ample = |now: u64, before: u64| now >= before.saturating_sub(now).saturating_mul(FREE);
    let disk = now.disk_bytes.zip(before.disk_bytes);
    let files = now.files.zip(before.files);
    disk.is_some_and(|(now, before)| ample(now, before))
        && files.is_none_or(|(now, before)| ample(now, before))
}

impl TrialDirs {
    /// Makes a new one in `parent`, which must exist.
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

    /// What tells how many files are left, also once this is dropped; `None` where the file system
    /// does not tell.
    pub fn files_left(&self) -> Option<FilesLeft> {
        let parent = self.scratch.path().parent()?.to_path_buf();
        Some(FilesLeft { parent, before: self.free.files? })
    }

    /// Whether there is room to keep the trials' files until the run ends.
    pub fn has_room(&self) -> bool {
        is_ample(FreeSpace::on(self.scratch.path()), self.free)
    }

    /// A new directory for one trial, which removes it where there is no room.
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

/// Time to create a few files there, which are then removed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_while_three_times_as_much_is_free() {
        let free = |disk_bytes, files| FreeSpace {
            memory_bytes: None,
            disk_bytes: Some(disk_bytes),
            files: Some(files),
        };
        let before = free(1000, 1000);
        assert!(is_ample(free(1000, 1000), before) && is_ample(free(750, 750), before));
        assert!(!is_ample(free(749, 1000), before) && !is_ample(free(1000, 749), before));
        assert!(is_ample(free(2000, 2000), before), "others removed something");
        // Some file systems set no limit of files.
        let uncounted = FreeSpace { files: None, ..free(900, 0) };
        assert!(is_ample(uncounted, FreeSpace { files: None, ..before }));
        assert!(
            !is_ample(FreeSpace { disk_bytes: None, ..uncounted }, before),
            "a disk that is gone"
        );
    }
}
