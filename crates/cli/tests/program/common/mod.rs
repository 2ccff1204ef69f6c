//! Shared test code.
//!
//! - `place`: a test's own directory, and checks for leftover files and processes.
//! - `started`: a running `cachedyno` with its output, under a deadline.
//! - `record`: the files of a record.
//! - `servers`: servers started before a run; `network`: the same on TCP ports.
//! - `fake`: a faulty server of the Redis protocol.
//! - `scripted`: a scripted server with known service times and faults.
//! - `mount`: a small file system.
//! - `memory`: memory of processes.
//! - `one_block`: runs of a study with one block.
//! - `proc`: processes listed in /proc.

mod fake;
mod memory;
mod mount;
mod network;
pub(crate) mod one_block;
mod place;
mod proc;
mod record;
mod scripted;
mod servers;
mod started;

pub(crate) use fake::{Defect, Fake};
pub(crate) use memory::peak_memory_kib;
pub(crate) use mount::Tmpfs;
pub(crate) use network::{Certificates, Cluster, PortServer};
pub(crate) use place::{FAST, Place};
pub(crate) use proc::{child_named, child_with, command_line, freeze, wait_until};
pub(crate) use record::{Record, points_so_far, trials_so_far};
pub(crate) use scripted::Scripted;
pub(crate) use servers::{MariadbServer, RedisServer};
pub(crate) use started::{Finished, Started};

use serde_json::Value;

/// Whether the programs are installed. If not, the test prints a note and is skipped; with CI=true
/// it panics.
pub(crate) fn installed(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<_> = std::env::split_paths(&path).collect();
    directories.extend(["/usr/sbin", "/usr/local/sbin"].map(Into::into));
    let missing = programs.iter().find(|p| !directories.iter().any(|d| d.join(p).is_file()));
    let Some(program) = missing else { return true };
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!is_ci, "{program} is not installed, and CI=true");
    skipped(&format!("{program} is not installed"))
}

/// Prints that a test is skipped; returns false.
pub(crate) fn skipped(reason: &str) -> bool {
    eprintln!("skipped: {reason}");
    false
}

/// True if a target was not run here because a right or a program is missing.
pub(crate) fn not_possible(summary: &Value, name: &str) -> bool {
    let Some(why) = target(summary, name)["not_run"].as_str() else { return false };
    assert!(why.contains("expected") || why.contains("apt-get"), "{why}");
    !skipped(why)
}

/// The elements of a JSON list that match `keep`; panics if it is not a list.
pub(crate) fn among(list: &Value, keep: impl Fn(&Value) -> bool) -> Vec<&Value> {
    let Some(list) = list.as_array() else { panic!("not a list: {list}") };
    list.iter().filter(|v| keep(v)).collect()
}

/// A target in a summary, by name.
pub(crate) fn target<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let found = among(&summary["targets"], |t| t["name"] == name);
    assert_eq!(found.len(), 1, "targets named {name}: {}", summary["targets"]);
    found[0]
}

/// The row of a target's operation in a summary; panics unless there is exactly one.
pub(crate) fn row<'a>(summary: &'a Value, target: &str, operation: &str) -> &'a Value {
    let found = among(&summary["cells"], |c| c["target"] == target && c["operation"] == operation);
    assert_eq!(found.len(), 1, "rows of {operation} on {target}: {}", summary["cells"]);
    found[0]
}

/// A count as a number.
pub(crate) fn count(row: &Value, name: &str) -> u64 {
    row["counts"][name].as_u64().unwrap_or_else(|| panic!("no count {name} in {row}"))
}
