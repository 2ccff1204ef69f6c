//! Memory of processes that a test started.

use std::fs;

/// Peak resident memory of a child so far. `None` if it has ended or does not run its program yet:
/// until then it shares the memory of this process (vfork(2)), and /proc shows that.
pub(crate) fn peak_memory_kib(pid: u32) -> Option<u64> {
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    if program(&pid.to_string())? == program("self")? {
        return None;
    }
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
