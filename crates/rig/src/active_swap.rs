//! The machine's active swap, from `/proc/swaps` (proc(5)).

use crate::host::unescape;
use std::fs;
use std::path::PathBuf;

/// A file or device to which the kernel swaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActiveSwap {
    pub(crate) file: PathBuf,
    /// The kernel fills those with the highest priority first, and equal ones alike.
    pub(crate) priority: i32,
}

/// All active swap; empty if the kernel does not tell.
pub(crate) fn active_swap() -> Vec<ActiveSwap> {
    parsed(&fs::read_to_string("/proc/swaps").unwrap_or_default())
}

fn parsed(swaps: &str) -> Vec<ActiveSwap> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let file = PathBuf::from(unescape(words.next()?));
        Some(ActiveSwap { file, priority: words.next_back()?.parse().ok()? })
    };
    swaps.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_priorities_are_read() {
        let swaps = "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                     /dev/sdb2                               partition\t8388604\t0\t-2\n\
                     /mnt/a\\040b/cachedyno-0a1b2c3d/swap     file\t\t1024\t\t8\t\t32767\n";
        let found = parsed(swaps);
        let expected = [("/dev/sdb2", -2), ("/mnt/a b/cachedyno-0a1b2c3d/swap", 32_767)];
        let expected = expected.map(|(file, priority)| ActiveSwap { file: file.into(), priority });
        assert_eq!(found, expected);
        assert_eq!(parsed(""), []);
    }
}
