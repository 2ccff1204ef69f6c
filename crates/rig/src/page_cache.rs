//! Empties the page cache, so that files are read from the disk. Sources: proc(5) for
//! `/proc/sys/vm/drop_caches`, `posix_fadvise(2)`, `mincore(2)`.
//!
//! Root empties that of the whole machine, with names and inodes. Others can only ask for the data
//! of each of their files; the kernel keeps names and inodes, and says nothing where it keeps the
//! data too. So a sample of the files is looked at afterwards.

use crate::error::{Result, RigError};
use crate::procfs::page_bytes;
use model::Emptied;
use nix::errno::Errno;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::libc;
use nix::unistd::syncfs;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Pages, names and inodes.
const ALL: &str = "3";

/// Files of the sample; they are open meanwhile, so that their own inodes stay.
const SAMPLE: usize = 32;
/// Share of the sample's pages that may be found in memory after all.
const LEFT_SHARE_MAX: f64 = 0.1;

/// Writes what is new on the file system of `directory` to the disk, then empties the page cache:
/// all of it, or else what it has of the files below `directory`. Without a directory nothing but
/// the first is tried.
///
/// Errors: a directory or file cannot be read; a tenth or more of a sample of the files' pages is
/// still there, as in file systems that are memory themselves.
pub fn empty_page_cache(directory: Option<&Path>) -> Result<Emptied> {
    empty(directory, Path::new(DROP_CACHES))
}

fn empty(directory: Option<&Path>, drop_caches: &Path) -> Result<Emptied> {
    let mut sample = Sample::default();
    if let Some(directory) = directory {
        let io = |doing| RigError::io(doing, directory);
        let handle = File::open(directory).map_err(io("open"))?;
        syncfs(&handle).map_err(|e| io("write to the disk")(e.into()))?;
        each_file(directory, &mut |path| sample.offer(path)).map_err(io("read"))?;
    }
    let emptied = match (fs::write(drop_caches, ALL), directory) {
        (Ok(()), _) => Emptied::Machine,
        (Err(_), Some(directory)) => {
            each_file(directory, &mut drop_data).map_err(RigError::io("read", directory))?;
            Emptied::Files
        }
        (Err(_), None) => Emptied::Files,
    };
    let left = sample.share_in_memory();
    let left = left.map_err(RigError::io("look at", Path::new("a sample of files")))?;
    if left > LEFT_SHARE_MAX {
        let problem =
            format!("{:.0} % of the pages of a sample of files are still there", left * 100.0);
        return Err(RigError::PageCache { problem });
    }
    Ok(emptied)
}

/// Calls `of` with every regular file below; links are not followed.
fn each_file(directory: &Path, of: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            each_file(&entry.path(), of)?;
        } else if kind.is_file() {
            of(&entry.path())?;
        }
    }
    Ok(())
}

fn drop_data(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    Ok(posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
}

/// A sample of files, spread evenly over all offered files.
struct Sample {
    files: Vec<File>,
    offered: usize,
    /// One in this many is taken.
    stride: usize,
}

impl Default for Sample {
    fn default() -> Self {
        Self { files: Vec::new(), offered: 0, stride: 1 }
    }
}

impl Sample {
    fn offer(&mut self, path: &Path) -> io::Result<()> {
        self.offered += 1;
        if !self.offered.is_multiple_of(self.stride) {
            return Ok(());
        }
        if self.files.len() == SAMPLE {
            // Every other one goes, and those to come are taken half as often.
            let mut number = 0;
            self.files.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.stride *= 2;
        }
        self.files.push(File::open(path)?);
        Ok(())
    }

    /// Share of the files' pages that are in memory; 0 if there are no pages.
    fn share_in_memory(&self) -> io::Result<f64> {
        let (mut there, mut all) = (0, 0);
        for file in &self.files {
            let length = file.metadata()?.len() as usize;
            let pages = if length == 0 { Vec::new() } else { resident(file.as_raw_fd(), length)? };
            there += pages.iter().filter(|page| **page & 1 == 1).count();
            all += pages.len();
        }
        Ok(there as f64 / all.max(1) as f64)
    }
}

/// A byte a page of the file's first `length` bytes, whose lowest bit says whether the page is in
/// memory. `length` must not be 0.
#[expect(unsafe_code, reason = "mincore has no safe form")]
fn resident(file: RawFd, length: usize) -> io::Result<Vec<u8>> {
    let mut pages = vec![0; length.div_ceil(page_bytes() as usize)];
    // SAFETY: a new mapping at an address that the kernel chooses; it is never read, and unmapped
    // before it can be seen by others. The vector has a byte for each of its pages.
    unsafe {
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let map = libc::mmap(std::ptr::null_mut(), length, read, shared, file, 0);
        if map == libc::MAP_FAILED {
            return Err(Errno::last().into());
        }
        let told = Errno::result(libc::mincore(map, length, pages.as_mut_ptr()));
        libc::munmap(map, length);
        told?;
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A directory with files in two levels, on a disk if there is one.
    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("below")).unwrap();
        for n in 0..100 {
            let below = if n % 2 == 0 { "" } else { "below/" };
            let mut file = File::create(directory.path().join(format!("{below}{n}"))).unwrap();
            file.write_all(&vec![7; 5000 * (n % 3)]).unwrap();
        }
        directory
    }

    fn all(directory: &Path) -> Sample {
        let mut sample = Sample::default();
        each_file(directory, &mut |path| sample.offer(path)).unwrap();
        sample
    }

    #[test]
    fn data_of_files_leave_memory_without_any_rights() {
        let directory = directory();
        let sample = all(directory.path());
        assert!(sample.share_in_memory().unwrap() > 0.99, "written a moment ago");
        let nobodys = directory.path().join("no such file/drop_caches");
        match empty(Some(directory.path()), &nobodys) {
            Ok(emptied) => {
                assert_eq!(emptied, Emptied::Files);
                assert!(sample.share_in_memory().unwrap() <= LEFT_SHARE_MAX);
                fs::read(directory.path().join("2")).unwrap();
                let file = File::open(directory.path().join("2")).unwrap();
                let pages = resident(file.as_raw_fd(), 10_000).unwrap();
                assert!(pages.iter().all(|p| p & 1 == 1), "what was read is there again");
            }
            // tmpfs has only memory.
            Err(e) => assert!(e.to_string().contains("are still there"), "{e}"),
        }
    }

    #[test]
    fn what_cannot_leave_memory_is_no_cold_measurement() {
        let memory = Path::new("/dev/shm");
        if !memory.is_dir() {
            eprintln!("skipped: there is no /dev/shm");
            return;
        }
        let directory = tempfile::tempdir_in(memory).unwrap();
        fs::write(directory.path().join("file"), vec![1; 50_000]).unwrap();
        let nobodys = directory.path().join("no such file/drop_caches");
        let error = empty(Some(directory.path()), &nobodys).unwrap_err().to_string();
        assert!(
            error.contains("100 % of the pages of a sample of files are still there"),
            "{error}"
        );
    }

    #[test]
    fn a_sample_is_spread_and_bounded() {
        let directory = directory();
        let sample = all(directory.path());
        assert!((SAMPLE / 2..=SAMPLE).contains(&sample.files.len()), "{}", sample.files.len());
        assert_eq!((sample.offered, sample.stride), (100, 4));
    }

    #[test]
    fn a_directory_that_is_gone_is_named() {
        let error = empty_page_cache(Some(Path::new("/no/such/place"))).unwrap_err().to_string();
        assert!(error.starts_with("cannot open `/no/such/place`"), "{error}");
    }
}
