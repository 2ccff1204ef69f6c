//! The files of a record.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One record's directory.
pub(crate) struct Record {
    pub(crate) path: PathBuf,
}

impl Record {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn header(&self) -> Value {
        serde_json::from_slice(&self.read("header.json")).unwrap()
    }

    pub(crate) fn seal(&self) -> Value {
        serde_json::from_slice(&self.read("seal.json")).unwrap()
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        let text = String::from_utf8(self.read(name)).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{name} has a torn line");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn trials(&self) -> Vec<Value> {
        self.lines("trials.jsonl")
    }

    /// Number of trials by block and cell.
    pub(crate) fn measured(&self) -> BTreeMap<(u64, String), usize> {
        let mut times = BTreeMap::new();
        for trial in self.trials() {
            let place = (trial["block"].as_u64().unwrap(), trial["cell"].as_str().unwrap().into());
            *times.entry(place).or_default() += 1;
        }
        times
    }

    /// Whether any file of the record contains the text.
    pub(crate) fn contains(&self, text: &str) -> bool {
        holds(&self.path, text)
    }
}

/// Number of complete lines in the trials of all records below `records`.
pub(crate) fn trials_so_far(records: &Path) -> usize {
    lines_so_far(records, "trials.jsonl")
}

/// Number of points of running trials in all records below `records`.
pub(crate) fn points_so_far(records: &Path) -> usize {
    lines_so_far(records, "points.jsonl")
}

fn lines_so_far(records: &Path, name: &str) -> usize {
    let Ok(entries) = fs::read_dir(records) else { return 0 };
    let of = |path: PathBuf| fs::read(path.join(name)).unwrap_or_default();
    let count = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).matches('\n').count();
    entries.map(|e| count(of(e.unwrap().path()))).sum()
}

fn holds(directory: &Path, text: &str) -> bool {
    fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).any(|path| {
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = fs::read(&path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}
