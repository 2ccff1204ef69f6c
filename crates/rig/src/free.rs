//! What this machine still has: memory, and space on a disk.

use nix::sys::statvfs::{Statvfs, statvfs};
use std::fs;
use std::path::Path;

/// What is free at one time; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// Memory that programs can take without swapping (`MemAvailable`, proc(5)), bytes.
    pub memory_bytes: Option<u64>,
    /// Space on a disk for users without privileges (`f_bavail`, statvfs(3)), bytes.
    pub disk_bytes: Option<u64>,
    /// Files that they can make there (`f_favail`); `None` also where their number has no limit.
    pub files: Option<u64>,
}

impl Free {
    /// What is free now, on the disk of a directory and in memory.
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

/// Memory of this machine (`MemTotal`, proc(5)), bytes; `None` where it does not tell.
pub fn memory_bytes() -> Option<u64> {
    kib_bytes(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")
}

/// A line of `/proc/meminfo` or of a process's `status`, bytes.
pub(crate) fn kib_bytes(info: &str, name: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_programs_can_take() {
        let info = "MemTotal:  8388608 kB\nMemFree:  1 kB\nMemAvailable:    4194304 kB\n";
        assert_eq!(kib_bytes(info, "MemAvailable"), Some(4 << 30));
        assert_eq!(kib_bytes("MemTotal: 8 kB\n", "MemAvailable"), None);
    }

    #[test]
    fn a_disk_has_space() {
        let free = Free::on(Path::new("/"));
        assert!(free.disk_bytes > Some(0) && free.memory_bytes > Some(0), "{free:?}");
        assert_eq!(Free::on(Path::new("/no/such/place")).disk_bytes, None);
    }
}
