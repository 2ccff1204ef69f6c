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
use std::fs;
use std::path::{Path, PathBuf};

/// All facts, in the order in which they are shown. `disk` is the directory that takes the data.
pub fn conditions(disk: &Path) -> Conditions {
    conditions_of(&Root("/".into()), disk, &crate::cpu::allowed_cpus())
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
