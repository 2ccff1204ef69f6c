//! CPU time of a server with its descendants, such as processes that it forks to write its data to
//! disk, including those that have ended.
//!
//! Source: proc(5), `/proc/<pid>/task/<tid>/children` and the fields `cutime` and `cstime` of
//! `/proc/<pid>/stat`, which contain the CPU time of ended descendants once their parent has waited
//! for them.

use std::fs;

use crate::cpu::process_cpu_ns;
use crate::free::kib_bytes;
use crate::procfs::{children_cpu_ticks, ns_per_tick, numbers};
use crate::size::process_memory_bytes;

/// Processes with their children.
#[derive(Clone, Debug, Default)]
pub struct ProcessTree {
    roots: Vec<u32>,
}

impl ProcessTree {
    /// A tree with these process ids as roots.
    pub fn new(roots: &[u32]) -> Self {
        Self { roots: roots.to_vec() }
    }

    /// Ids of the root processes.
    pub fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// True if there are no processes.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Total CPU time, nanoseconds; `None` if there are no processes or a root has ended. The time
    /// of each ended child is exact to a clock tick.
    pub fn cpu_ns(&self) -> Option<u64> {
        let each = self.roots.iter().map(|pid| Some(process_cpu_ns(*pid)? + below(*pid)));
        let all = each.collect::<Option<Vec<u64>>>()?;
        (!all.is_empty()).then(|| all.iter().sum())
    }

    /// Total resident memory, bytes. For several processes, memory shared among them counts once,
    /// and memory shared with other processes in proportion. `None` if it cannot be read.
    pub fn memory_bytes(&self) -> Option<u64> {
        match &self.pids()[..] {
            [] => None,
            // Equivalent for one process, and readable without privileges.
            [pid] => process_memory_bytes(*pid),
            pids => {
                // `Pss` divides shared memory by the number of sharing processes.
                let rollup = |pid| fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
                let sizes = pids.iter().filter_map(|pid| kib_bytes(&rollup(pid).ok()?, "Pss"));
                Some(sizes.sum()).filter(|bytes| *bytes > 0)
            }
        }
    }

    /// Memory in transparent huge pages, bytes; `None` if the kernel does not tell. Reading it
    /// takes longer with more memory, and delays a process that maps memory meanwhile.
    pub fn huge_page_bytes(&self) -> Option<u64> {
        let rollup = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
        let each = self.pids();
        let sizes = each.iter().map(|pid| kib_bytes(&rollup(pid)?, "AnonHugePages"));
        let sizes = sizes.collect::<Option<Vec<u64>>>().filter(|sizes| !sizes.is_empty());
        sizes.map(|sizes| sizes.iter().sum())
    }

    /// Ids of all current processes.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = self.roots.clone();
        let mut at = 0;
        while let Some(pid) = pids.get(at) {
            pids.extend(children(*pid));
            at += 1;
        }
        pids
    }
}

/// CPU time of all descendants of a process, nanoseconds.
fn below(pid: u32) -> u64 {
    let live = children(pid).into_iter().map(|pid| process_cpu_ns(pid).unwrap_or(0) + below(pid));
    ended_ns(pid) + live.sum::<u64>()
}

fn ended_ns(pid: u32) -> u64 {
    (children_cpu_ticks(pid).unwrap_or(0) as f64 * ns_per_tick()) as u64
}

/// CPU time of the descendants started by a process's main thread, nanoseconds. The cost of reading
/// it does not depend on the number of threads.
pub(crate) fn below_main_thread(pid: u32) -> u64 {
    let list = fs::read(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let live = pids(&list).map(|pid| process_cpu_ns(pid).unwrap_or(0) + below_main_thread(pid));
    ended_ns(pid) + live.sum::<u64>()
}

/// Children that a process has not waited for; empty if the kernel does not report them.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|t| fs::read(t.path().join("children")).ok());
    lists.flat_map(|list| pids(&list).collect::<Vec<_>>()).collect()
}

fn pids(list: &[u8]) -> impl Iterator<Item = u32> {
    numbers(list).map(|pid| pid as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc;
    use std::io::Read as _;
    use std::process::{Command, Stdio};
    use std::ptr;

    #[test]
    #[expect(unsafe_code, reason = "nothing safe asks for huge pages")]
    fn memory_in_huge_pages_counts() {
        const BYTES: usize = 16 << 20;
        let mode = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if !mode.is_ok_and(|mode| !mode.contains("[never]")) {
            return;
        }
        // A kernel without free huge pages gives small ones, and counts that.
        let fallbacks = || {
            let counts = fs::read_to_string("/proc/vmstat").unwrap();
            let line = counts.lines().find(|line| line.starts_with("thp_fault_fallback "));
            line.map(String::from)
        };
        let own = ProcessTree::new(&[std::process::id()]);
        let refused = fallbacks();
        let before = own.huge_page_bytes().unwrap();
        // A new mapping: the allocator may return memory that already has small pages.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is ours until it is unmapped.
        let advised = unsafe {
            let memory = libc::mmap(ptr::null_mut(), BYTES, access, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            let advised = libc::madvise(memory, BYTES, libc::MADV_HUGEPAGE);
            memory.cast::<u8>().write_bytes(1, BYTES);
            let after = own.huge_page_bytes();
            libc::munmap(memory, BYTES);
            (advised == 0).then_some(after)
        };
        if let Some(after) = advised.filter(|_| fallbacks() == refused) {
            let grown = after.unwrap().saturating_sub(before);
            assert!(grown >= BYTES as u64 / 2, "{before} {after:?}");
        }
        assert_eq!(ProcessTree::default().huge_page_bytes(), None);
    }

    /// A shell starts a second one, which works and exits; the first one is our only direct child.
    #[test]
    fn cpu_time_of_running_and_ended_children_counts() {
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo";
        let script = format!("sh -c '{work}; read x'; echo; read x");
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = shell.stdout.take().unwrap();
        let tree = ProcessTree::new(&[shell.id()]);
        out.read_exact(&mut [0]).unwrap();
        let (without_child, with_child) =
            (process_cpu_ns(shell.id()).unwrap(), tree.cpu_ns().unwrap());
        assert_eq!(tree.pids().len(), 2);
        assert!(with_child > without_child + 50_000_000, "{without_child} {with_child}");
        std::io::Write::write_all(shell.stdin.as_mut().unwrap(), b"\n").unwrap();
        out.read_exact(&mut [0]).unwrap();
        assert_eq!(tree.pids().len(), 1);
        let after = tree.cpu_ns().unwrap();
        assert!(after + 20_000_000 > with_child, "{with_child} {after}");
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(tree.cpu_ns(), None);
        assert_eq!(ProcessTree::default().cpu_ns(), None);
    }
}
