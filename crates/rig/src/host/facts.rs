//! Reading and collecting facts.

use model::Condition;
use std::fs;
use std::path::PathBuf;

/// Directory that contains `proc` and `sys`: `/`, or a fake host in tests.
pub(super) struct Root(pub(super) PathBuf);

impl Root {
    /// A path below the root; `path` has no leading slash.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The file's trimmed text; `None` if it cannot be read or is empty.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_string())
    }

    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }
}

#[derive(Default)]
pub(super) struct Facts(pub(super) Vec<Condition>);

impl Facts {
    /// Adds a fact without a warning.
    pub(super) fn fact(&mut self, group: &str, name: &str, value: impl Into<String>) {
        self.judged(group, name, value, None);
    }

    /// Adds a fact, with a warning if it disturbs measurements.
    pub(super) fn judged(
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
pub(super) fn warn_if(disturbs: bool, warning: impl Into<String>) -> Option<String> {
    disturbs.then(|| warning.into())
}

/// The bracketed choice of a line like `always [madvise] never`; the whole text without brackets.
pub(super) fn chosen(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(choice, _)| choice)
}

/// Formats bytes with a binary unit and one decimal, for example `7.8 GiB`.
pub(super) fn bytes(count: u64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| count >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", count as f64 / (1_u64 << shift) as f64),
        None => format!("{count} bytes"),
    }
}
