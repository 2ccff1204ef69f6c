//! Conditions of a run: facts about the host and the disk under test.
//!
//! Every fact is read from `/proc` and `/sys`; unavailable facts are omitted or marked as such. A
//! fact has a warning, with a fix, only if it disturbs measurements.
//!
//! - `cpu`, `memory`, `limits`, `disk`: the facts by group, collected in `facts`.

mod cpu;
mod disk;
mod facts;
pub(crate) mod limits;
mod memory;

pub(crate) use disk::unescape;
use facts::{Facts, Root};
use model::record::DISK;
use model::{Condition, Conditions};
use std::io;
use std::path::Path;

/// All facts in display order. `disk` is the directory for the data.
pub fn conditions(disk: &Path) -> Conditions {
    let root = Root("/".into());
    let mut conditions = conditions_of(&root, disk, &crate::cpu::allowed_cpus());
    let end = conditions.facts.iter().rposition(|fact| fact.group == "host").map_or(0, |at| at + 1);
    conditions.facts.insert(end, disturbers(&root, crate::noise::is_permitted()));
    conditions
}

/// Whether processes that disturb a measurement can be identified. Never a warning, because it does
/// not affect measurements.
fn disturbers(root: &Root, permitted: io::Result<()>) -> Condition {
    let value = match permitted {
        Ok(()) => "available".to_string(),
        Err(e) => {
            let paranoid = root.text("proc/sys/kernel/perf_event_paranoid");
            let level =
                paranoid.map_or_else(String::new, |p| format!(", perf_event_paranoid is {p}"));
            format!(
                "not available ({e}{level}); run as root, or \
                 `sysctl kernel.perf_event_paranoid=0`"
            )
        }
    };
    let (group, name) = ("host".into(), "disturbances by process".into());
    Condition { group, name, value, warning: None }
}

/// Facts about the disk of a directory, in a group of that name.
pub fn disk_conditions(group: &str, directory: &Path) -> Vec<Condition> {
    let mut facts = Facts::default();
    disk::facts(&Root("/".into()), (group, directory), &mut facts);
    facts.0
}

/// The file system of a directory if it takes no swap files, such as `tmpfs`; `None` if it may.
pub fn refuses_swap(directory: &Path) -> Option<String> {
    disk::refuses_swap(&Root("/".into()), directory)
}

/// Major and minor number, as in `254:0`, of the whole disk with the files of a directory; `None`
/// if they are on no block device.
pub(crate) fn block_device(directory: &Path) -> Option<String> {
    disk::number(&Root("/".into()), directory)
}

fn conditions_of(root: &Root, disk: &Path, allowed: &[usize]) -> Conditions {
    let mut facts = Facts::default();
    cpu::facts(root, allowed, &mut facts);
    memory::facts(root, &mut facts);
    limits::facts(root, &mut facts);
    disk::facts(root, (DISK, disk), &mut facts);
    Conditions { facts: facts.0 }
}

#[cfg(test)]
mod tests;
