//! Memory conditions of a trial: the page cache, and a target's memory limit.

use serde::{Deserialize, Serialize};
use stats::{format_bytes, parse_bytes};
use std::fmt;

/// Smallest limit: cachedyno's clients need memory too, and the server must be able to start.
const LIMIT_BYTES_MIN: u64 = 64 << 20;
/// The largest limit.
const LIMIT_BYTES_MAX: u64 = 1 << 40;

/// State of the page cache at the start of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageCache {
    /// With the files of the fill, the warm-up and earlier phases.
    #[default]
    Warm,
    /// Empty: it is dropped before each phase, and there is no warm-up.
    Cold,
}

/// How the page cache was emptied before each phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Emptied {
    /// The page cache of the whole machine, including dentries and inodes
    /// (`/proc/sys/vm/drop_caches`).
    Machine,
    /// Only the data of the target's files (`posix_fadvise`); dentries and inodes stayed.
    Files,
}

/// A memory limit in text form: `256MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MemoryLimit(u64);

impl MemoryLimit {
    /// Expected format, for errors.
    pub const EXPECTED: &str = "64MiB to 1TiB, as in `256MiB`";

    /// Parses a size; `None` if it is invalid, too small or too large.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = parse_bytes(text).ok()?;
        (LIMIT_BYTES_MIN..=LIMIT_BYTES_MAX).contains(&bytes).then_some(Self(bytes))
    }

    /// Bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_bytes(self.0))
    }
}

impl TryFrom<String> for MemoryLimit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| {
            format!("memory_limit `{text}` is invalid (expected {})", Self::EXPECTED)
        })
    }
}

/// A server's setting as a share of the memory limit: `70% of memory`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryShare(f64);

impl MemoryShare {
    /// Parses a share; `None` if the text is anything else, an error if the share is out of range.
    pub fn parse(text: &str) -> Option<Result<Self, &'static str>> {
        let percent = text.strip_suffix("% of memory")?.parse::<f64>();
        let share = percent.ok().filter(|percent| (1.0..=10_000.0).contains(percent));
        Some(share.map(|percent| Self(percent / 100.0)).ok_or("1 to 10000% of memory"))
    }

    /// Bytes of a memory limit.
    pub fn of(self, limit: MemoryLimit) -> u64 {
        (limit.bytes() as f64 * self.0) as u64
    }
}

/// Memory and swap limits of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPlan {
    /// Memory limit including page cache, bytes.
    pub limit_bytes: u64,
    /// Additional swap in a file, on the disk under test unless the plan names another directory,
    /// bytes; 0 for none.
    pub swap_bytes: u64,
}

impl MemoryPlan {
    /// A memory limit without swap.
    pub fn limit(limit: MemoryLimit) -> Self {
        Self { limit_bytes: limit.bytes(), swap_bytes: 0 }
    }
}

/// Memory that a target used under its limit, from the start of its servers to the end of the
/// trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// The limit, bytes.
    pub limit_bytes: u64,
    /// Peak usage including page cache, bytes; `None` if unknown.
    pub peak_bytes: Option<u64>,
    /// Page cache of files at the end, bytes.
    pub page_cache_bytes: u64,
    /// Processes that the kernel killed because the limit was reached.
    pub oom_kills: u64,
    /// Usage of the planned swap; `None` without swap.
    pub swap: Option<SwapUse>,
}

/// Swap usage of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapUse {
    /// The limit, bytes.
    pub limit_bytes: u64,
    /// Peak usage, bytes; `None` if unknown.
    pub peak_bytes: Option<u64>,
    /// In use at the end, bytes.
    pub used_bytes: u64,
    /// Read back from swap, bytes.
    pub read_bytes: u64,
    /// Written to swap, bytes.
    pub written_bytes: u64,
    /// True if the kernel only counts reads and writes of the whole machine.
    pub of_machine: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sizes_within_bounds_are_parsed() {
        let bytes = |text: &str| MemoryLimit::parse(text).map(MemoryLimit::bytes);
        assert_eq!(bytes("256MiB"), Some(256 << 20));
        assert_eq!(bytes("64MiB"), Some(64 << 20));
        assert_eq!(bytes("100000000"), Some(100_000_000));
        for wrong in ["lots", "", "63MiB", "0", "2TiB", "256M", "-1GiB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_setting_can_be_a_share_of_the_limit() {
        let limit = MemoryLimit::parse("100MiB").unwrap();
        let share = |text: &str| MemoryShare::parse(text).map(|share| Some(share.ok()?.of(limit)));
        assert_eq!(share("70% of memory"), Some(Some(70 << 20)));
        assert_eq!(share("400% of memory"), Some(Some(400 << 20)));
        assert_eq!([share("0% of memory"), share("much% of memory")], [Some(None), Some(None)]);
        assert_eq!([share("70mb"), share("70%")], [None, None]);
    }

    #[test]
    fn an_invalid_limit_in_a_study_names_the_expected_range() {
        let limit: MemoryLimit = serde_json::from_str("\"96MiB\"").unwrap();
        assert_eq!((limit.bytes(), limit.to_string().as_str()), (96 << 20, "96 MiB"));
        let error = serde_json::from_str::<MemoryLimit>("\"1MiB\"").unwrap_err().to_string();
        assert!(error.starts_with("memory_limit `1MiB` is invalid (expected 64MiB"), "{error}");
    }
}
