//! Memory used by a server and disk blocks used by its files. Source: proc(5) for `VmRSS`.

use crate::free::kib_bytes;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Unit of `st_blocks` (stat(2)), independent of the file system's block size.
pub(crate) const BLOCK_BYTES: u64 = 512;

/// Resident memory of a process, in bytes; `None` if the process does not exist.
pub fn process_memory_bytes(pid: u32) -> Option<u64> {
    kib_bytes(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS")
}

/// Total size of the blocks used below `directory`, in bytes; links are counted, not followed.
/// Files that vanish during the walk count as 0. Errors: a directory cannot be listed.
pub fn directory_bytes(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += metadata.blocks() * BLOCK_BYTES;
        if metadata.is_dir() {
            bytes += directory_bytes(&entry.path())?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(kib_bytes("VmPeak:\t 9 kB\nVmRSS:\t    2048 kB\n", "VmRSS"), Some(2 << 20));
        assert_eq!(kib_bytes("VmPeak:\t 9 kB\n", "VmRSS"), None);
        assert!(process_memory_bytes(std::process::id()).is_some_and(|bytes| bytes > 1 << 18));
    }

    #[test]
    fn files_of_all_levels_count_and_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let before = directory_bytes(directory.path()).unwrap();
        fs::write(below.join("file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", below.join("link")).unwrap();
        let after = directory_bytes(directory.path()).unwrap();
        assert!((100_000..200_000).contains(&(after - before)), "{before} {after}");
    }
}
