//! The conditions under which a run is measured: facts of the host and of the disk under test.
//!
//! Every fact is read from `/proc` and `/sys`; one that the kernel does not tell is left out or
//! says so. A fact warns only where it disturbs a measurement, with the cure.
//!
//! - `cpu`, `memory`, `limits`, `disk`: the facts by group.

mod cpu;
mod disk;
pub(crate) mod limits;
mod memory;

use model::{Condition, Conditions};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// All facts, in the order in which they are shown. `disk` is the directory that takes the data.
pub fn conditions(disk: &Path) -> Conditions {
    let root = Root("/".into());
    let mut conditions = conditions_of(&root, disk, &crate::cpu::allowed_cpus());
    let end = conditions.facts.iter().rposition(|fact| fact.group == "host").map_or(0, |at| at + 1);
    conditions.facts.insert(end, disturbers(&root, crate::noise::is_permitted()));
    conditions
}

/// Whether those that take the CPUs of a measurement can be named. That they cannot disturbs
/// nothing.
fn disturbers(root: &Root, permitted: io::Result<()>) -> Condition {
    let value = match permitted {
        Ok(()) => "is named".to_string(),
        Err(e) => {
            let paranoid = root.text("proc/sys/kernel/perf_event_paranoid");
            let level =
                paranoid.map_or_else(String::new, |p| format!(", perf_event_paranoid is {p}"));
            format!("is not named ({e}{level}): be root, or `sysctl kernel.perf_event_paranoid=0`")
        }
    };
    let (group, name) = ("host".into(), "who disturbs a measurement".into());
    Condition { group, name, value, warning: None }
}

fn conditions_of(root: &Root, disk: &Path, allowed: &[usize]) -> Conditions {
    let mut facts = Facts::default();
    cpu::facts(root, allowed, &mut facts);
    memory::facts(root, &mut facts);
    limits::facts(root, &mut facts);
    disk::facts(root, disk, &mut facts);
    Conditions { facts: facts.0 }
}

/// Where `/proc` and `/sys` are: `/`, or a directory with texts of another host in tests.
struct Root(PathBuf);

impl Root {
    /// The path below the root; `path` has no leading slash.
    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The file's text without surrounding white space; `None` when it cannot be read or is empty.
    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }
}

#[derive(Default)]
struct Facts(Vec<Condition>);

impl Facts {
    /// Adds a fact as it should be.
    fn fact(&mut self, group: &str, name: &str, value: impl Into<String>) {
        self.judged(group, name, value, None);
    }

    /// Adds a fact, with a warning where it disturbs.
    fn judged(
        &mut self,
        group: &str,
        name: &str,
        value: impl Into<String>,
        warning: Option<String>,
    ) {
        let (group, name, value) = (group.into(), name.into(), value.into());
        self.0.push(Condition { group, name, value, warning });
    }
}

/// The warning if `disturbs`.
fn warn_if(disturbs: bool, warning: impl Into<String>) -> Option<String> {
    disturbs.then(|| warning.into())
}

/// The choice in brackets of a line like `always [madvise] never`; the whole text without any.
fn chosen(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(choice, _)| choice)
}

/// Bytes with a binary unit and one decimal, for example `7.8 GiB`.
fn bytes(count: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| count >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", count as f64 / (1_u64 << shift) as f64),
        None => format!("{count} bytes"),
    }
}

#[cfg(test)]
mod tests;
