//! Free memory and disk space of this machine.

use nix::sys::statvfs::{Statvfs, statvfs};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// Free resources at one time; `None` if the system does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeSpace {
    /// Memory that programs can allocate without swapping (`MemAvailable`, proc(5)), bytes.
    pub memory_bytes: Option<u64>,
    /// Disk space available to unprivileged users (`f_bavail`, statvfs(3)), bytes.
    pub disk_bytes: Option<u64>,
    /// Free inodes for unprivileged users (`f_favail`); `None` also without a limit.
    pub files: Option<u64>,
}

impl FreeSpace {
    /// Reads the current values, for memory and for the disk of a directory.
    pub fn on(path: &Path) -> Self {
        let info = fs::read_to_string("/proc/meminfo");
        let disk = statvfs(path).ok();
        let counts_files = disk.as_ref().filter(|disk| disk.files() > 0);
        Self {
            memory_bytes: info.as_deref().ok().and_then(|i| kib_bytes(i, "MemAvailable")),
            disk_bytes: disk.as_ref().map(|disk| disk.blocks_available() * disk.fragment_size()),
            files: counts_files.map(Statvfs::files_available),
        }
    }
}

/// Total memory of this machine (`MemTotal`, proc(5)), bytes; `None` if it cannot be read.
pub fn memory_bytes() -> Option<u64> {
    kib_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")
}

/// Parses a line of `/proc/meminfo` or of a process's `status`, bytes.
pub(crate) fn kib_bytes(info: &str, name: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_parsed() {
        let info = "MemTotal:  8388608 kB\nMemFree:  1 kB\nMemAvailable:    4194304 kB\n";
        assert_eq!(kib_bytes(info, "MemAvailable"), Some(4 << 30));
        assert_eq!(kib_bytes("MemTotal: 8 kB\n", "MemAvailable"), None);
    }

    #[test]
    fn free_space_is_read() {
        let free = FreeSpace::on(Path::new("/"));
        assert!(free.disk_bytes > Some(0) && free.memory_bytes > Some(0), "{free:?}");
        assert_eq!(FreeSpace::on(Path::new("/no/such/place")).disk_bytes, None);
    }
}
