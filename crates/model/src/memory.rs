//! What may stay in memory while a trial runs: files in the page cache, and all of a target within
//! a limit.

use serde::{Deserialize, Serialize};
use stats::{format_bytes, parse_bytes};
use std::fmt;

/// The least limit: the program's own clients need memory too, and a server that cannot even start
/// is no result.
const LIMIT_BYTES_MIN: u64 = 64 << 20;
/// The largest limit.
const LIMIT_BYTES_MAX: u64 = 1 << 40;

/// What of the files is in the page cache when a phase begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageCache {
    /// What the fill, the warm-up and the phases before left there.
    #[default]
    Warm,
    /// Nothing: it is emptied before each phase, and nothing is warmed up.
    Cold,
}

/// How the page cache was emptied before each phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Emptied {
    /// That of the whole machine, with names and inodes (`/proc/sys/vm/drop_caches`).
    Machine,
    /// The data of the target's own files alone (`posix_fadvise`): names and inodes stayed.
    Files,
}

/// A limit of memory as studies and users write it: `256MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MemoryLimit(u64);

impl MemoryLimit {
    /// What users are told to give.
    pub const EXPECTED: &str = "64MiB to 1TiB, as in `256MiB`";

    /// Reads a size; `None` when it is none, or too small or too large.
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
            format!("memory_limit `{text}` does not fit (expected {})", Self::EXPECTED)
        })
    }
}

/// What a target may take of memory, and where the rest of its data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPlan {
    /// The most memory, page cache included, bytes.
    pub limit_bytes: u64,
    /// Swap besides, in a file on the disk under test, bytes; 0 for none.
    pub swap_bytes: u64,
}

impl MemoryPlan {
    /// No more than that, and no swap.
    pub fn limit(limit: MemoryLimit) -> Self {
        Self { limit_bytes: limit.bytes(), swap_bytes: 0 }
    }
}

/// What a target took of its memory limit, from the start of its servers to the end of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// The limit, bytes.
    pub limit_bytes: u64,
    /// The most that was in use, page cache included; `None` where the kernel does not tell.
    pub peak_bytes: Option<u64>,
    /// Page cache of files at the end, bytes.
    pub page_cache_bytes: u64,
    /// Processes that the kernel killed since the limit was used up.
    pub oom_kills: u64,
    /// What it took of the planned swap; `None` where there was none.
    pub swap: Option<SwapUse>,
}

/// What a target took of its swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapUse {
    /// The limit, bytes.
    pub limit_bytes: u64,
    /// The most that was in use, bytes; `None` where the kernel does not tell.
    pub peak_bytes: Option<u64>,
    /// In use at the end, bytes.
    pub used_bytes: u64,
    /// Read back from swap, bytes.
    pub read_bytes: u64,
    /// Written to swap, bytes.
    pub written_bytes: u64,
    /// True where the kernel counts reads and writes of the whole machine only.
    pub of_machine: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_size_within_bounds() {
        let bytes = |text: &str| MemoryLimit::parse(text).map(MemoryLimit::bytes);
        assert_eq!(bytes("256MiB"), Some(256 << 20));
        assert_eq!(bytes("64MiB"), Some(64 << 20));
        assert_eq!(bytes("100000000"), Some(100_000_000));
        for wrong in ["lots", "", "63MiB", "0", "2TiB", "256M", "-1GiB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_limit_of_a_study_says_what_is_expected() {
        let limit: MemoryLimit = serde_json::from_str("\"96MiB\"").unwrap();
        assert_eq!((limit.bytes(), limit.to_string().as_str()), (96 << 20, "96 MiB"));
        let error = serde_json::from_str::<MemoryLimit>("\"1MiB\"").unwrap_err().to_string();
        assert!(error.starts_with("memory_limit `1MiB` does not fit (expected 64MiB"), "{error}");
    }
}
