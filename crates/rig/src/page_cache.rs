//! Empties the page cache, so that files are read from the disk. Sources: proc(5) for
//! `/proc/sys/vm/drop_caches`, `posix_fadvise(2)`, `mincore(2)`.
//!
//! Root empties the cache of the whole machine, including names and inodes. Other users can only
//! advise the kernel to drop the data of each of their files. The kernel then keeps names and
//! inodes, and does not report whether it dropped the data, so a sample of the files is checked
//! afterwards.

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

/// Value that drops pages, names and inodes.
const ALL: &str = "3";

/// Maximum number of files in the sample. They stay open, so their own inodes stay cached.
const SAMPLE_FILES_MAX: usize = 32;
/// Maximum share of the sample's pages that can still be cached afterwards.
const CACHED_SHARE_MAX: f64 = 0.1;

/// Flushes the file system of `directory` to the disk, then empties the page cache: all of it, or
/// without the permission only the pages of files below `directory`. Without a directory, only the
/// former is tried.
///
/// Errors: a directory or file cannot be read; more than a tenth of a sample of the files' pages is
/// still cached, as on file systems in memory.
pub fn empty_page_cache(directory: Option<&Path>) -> Result<Emptied> {
    empty(directory, Path::new(DROP_CACHES))
}

fn empty(directory: Option<&Path>, drop_caches: &Path) -> Result<Emptied> {
    let mut sample = Sample::default();
    if let Some(directory) = directory {
        let io = |doing| RigError::io(doing, directory);
        let handle = File::open(directory).map_err(io("open"))?;
        syncfs(&handle).map_err(|e| io("flush")(e.into()))?;
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
    let cached = sample.share_in_memory();
    let cached = cached.map_err(RigError::io("inspect", Path::new("a sample of files")))?;
    if cached > CACHED_SHARE_MAX {
        let problem =
            format!("{:.0} % of the pages of a sample of files are still cached", cached * 100.0);
        return Err(RigError::PageCache { problem });
    }
    Ok(emptied)
}

/// Calls `action` for every regular file below `directory`; does not follow links.
fn each_file(directory: &Path, action: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            each_file(&entry.path(), action)?;
        } else if kind.is_file() {
            action(&entry.path())?;
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
    /// Every how many offered files one is added.
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
        if self.files.len() == SAMPLE_FILES_MAX {
            // Drops every other file, and adds later files half as often.
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
        let (mut cached, mut all) = (0, 0);
        for file in &self.files {
            let length = file.metadata()?.len() as usize;
            let pages = if length == 0 { Vec::new() } else { resident(file.as_raw_fd(), length)? };
            cached += pages.iter().filter(|page| **page & 1 == 1).count();
            all += pages.len();
        }
        Ok(cached as f64 / all.max(1) as f64)
    }
}

/// One byte for each page of the file's first `length` bytes; the lowest bit is set if the page is
/// in memory. `length` must not be 0.
#[expect(unsafe_code, reason = "mincore has no safe wrapper")]
fn resident(file: RawFd, length: usize) -> io::Result<Vec<u8>> {
    let mut pages = vec![0; length.div_ceil(page_bytes() as usize)];
    // SAFETY: the kernel chooses the address of the new mapping, which is never read and is
    // unmapped before this function returns. The vector has a byte for each of its pages.
    unsafe {
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        let map = libc::mmap(std::ptr::null_mut(), length, read, shared, file, 0);
        if map == libc::MAP_FAILED {
            return Err(Errno::last().into());
        }
        let result = Errno::result(libc::mincore(map, length, pages.as_mut_ptr()));
        libc::munmap(map, length);
        result?;
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A temporary directory with files on two levels.
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

    fn sample_of(directory: &Path) -> Sample {
        let mut sample = Sample::default();
        each_file(directory, &mut |path| sample.offer(path)).unwrap();
        sample
    }

    #[test]
    fn file_data_is_dropped_without_root() {
        let directory = directory();
        let sample = sample_of(directory.path());
        assert!(sample.share_in_memory().unwrap() > 0.99, "just written");
        let no_permission = directory.path().join("no such file/drop_caches");
        match empty(Some(directory.path()), &no_permission) {
            Ok(emptied) => {
                assert_eq!(emptied, Emptied::Files);
                assert!(sample.share_in_memory().unwrap() <= CACHED_SHARE_MAX);
                fs::read(directory.path().join("2")).unwrap();
                let file = File::open(directory.path().join("2")).unwrap();
                let pages = resident(file.as_raw_fd(), 10_000).unwrap();
                assert!(pages.iter().all(|p| p & 1 == 1), "just read");
            }
            // tmpfs has only memory.
            Err(e) => assert!(e.to_string().contains("are still cached"), "{e}"),
        }
    }

    #[test]
    fn a_file_system_in_memory_is_rejected() {
        let memory = Path::new("/dev/shm");
        if !memory.is_dir() {
            eprintln!("skipped: there is no /dev/shm");
            return;
        }
        let directory = tempfile::tempdir_in(memory).unwrap();
        fs::write(directory.path().join("file"), vec![1; 50_000]).unwrap();
        let no_permission = directory.path().join("no such file/drop_caches");
        let error = empty(Some(directory.path()), &no_permission).unwrap_err().to_string();
        assert!(
            error.contains("100 % of the pages of a sample of files are still cached"),
            "{error}"
        );
    }

    #[test]
    fn the_sample_is_spread_evenly_and_bounded() {
        let directory = directory();
        let sample = sample_of(directory.path());
        assert!((SAMPLE_FILES_MAX / 2..=SAMPLE_FILES_MAX).contains(&sample.files.len()));
        assert_eq!((sample.offered, sample.stride), (100, 4));
    }

    #[test]
    fn the_error_names_a_missing_directory() {
        let error = empty_page_cache(Some(Path::new("/no/such/place"))).unwrap_err().to_string();
        assert!(error.starts_with("cannot open `/no/such/place`"), "{error}");
    }
}
