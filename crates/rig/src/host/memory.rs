//! Memory: size, huge pages, swap, overcommit.

use super::facts::{Facts, Root, bytes, chosen, warn_if};
use crate::free::kib_bytes;

const GROUP: &str = "memory";
const GIB: u64 = 1 << 30;

pub(super) fn facts(root: &Root, facts: &mut Facts) {
    let info = root.text("proc/meminfo").unwrap_or_default();
    let field = |name: &str| kib_bytes(&info, name);
    if let (Some(total), Some(available)) = (field("MemTotal"), field("MemAvailable")) {
        let warning = warn_if(
            available < GIB,
            "a server that needs more is killed, or pages are dropped and read again; stop other \
             programs or take a larger machine",
        );
        facts.fact(GROUP, "size", bytes(total));
        facts.judged(GROUP, "available", bytes(available), warning);
    }
    if let (Some(total), Some(free)) = (field("SwapTotal"), field("SwapFree")) {
        swap(total, total.saturating_sub(free), facts);
    }
    huge_pages(root, facts);
    if let Some(mode) = root.text("proc/sys/vm/overcommit_memory") {
        let warning = warn_if(
            mode == "2",
            "a server that forks to save its data can be refused the memory; \
             `sysctl vm.overcommit_memory=1`",
        );
        facts.judged(GROUP, "overcommit", mode, warning);
    }
}

fn swap(total: u64, used: u64, facts: &mut Facts) {
    let value = match total {
        0 => "none".to_string(),
        total => format!("{}, {} used", bytes(total), bytes(used)),
    };
    let warning = warn_if(
        used > 0,
        "data that was swapped out is read back from the disk in the middle of an operation; \
         `swapoff -a`",
    );
    facts.judged(GROUP, "swap", value, warning);
}

fn huge_pages(root: &Root, facts: &mut Facts) {
    let Some(text) = root.text("sys/kernel/mm/transparent_hugepage/enabled") else { return };
    let choice = chosen(&text);
    let warning = warn_if(
        choice == "always",
        "after a fork for saving, each write copies 2 MiB instead of 4 KiB, and memory is \
         compacted in the middle of operations; \
         `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`",
    );
    facts.judged(GROUP, "transparent huge pages", choice, warning);
}
