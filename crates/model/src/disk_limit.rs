//! A limit of a target's disk, which the kernel enforces, in place of a slower disk.

use serde::{Deserialize, Serialize};
use stats::{format_bytes, parse_bytes, parse_count};
use std::fmt;

/// Range of a limit of bytes per second.
const BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 40;
/// Range of a limit of operations per second.
const OPERATIONS: std::ops::RangeInclusive<u64> = 1..=100_000_000;

/// Limits of reads, and the same again of writes; at least one of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLimit {
    /// Bytes per second; `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// Operations per second; `None` for no limit.
    pub operations_per_s: Option<u64>,
}

impl DiskLimit {
    /// Expected format, for errors.
    pub const EXPECTED: &str = "bytes per second from 64KiB/s to 1TiB/s, operations per second \
                                from 1iops to 100Miops, or both, as in `20MiB/s,500iops`";

    /// Parses `20MiB/s`, `500iops`, or both with a comma in between; `None` if it is neither, or
    /// out of range.
    pub fn parse(text: &str) -> Option<Self> {
        let mut limit = Self { bytes_per_s: None, operations_per_s: None };
        for part in text.split(',').map(str::trim) {
            let (place, value, range) = if let Some(bytes) = part.strip_suffix("/s") {
                (&mut limit.bytes_per_s, parse_bytes(bytes).ok()?, BYTES)
            } else {
                let count = parse_count(part.strip_suffix("iops")?.trim()).ok()?;
                (&mut limit.operations_per_s, count, OPERATIONS)
            };
            if place.is_some() || !range.contains(&value) {
                return None;
            }
            *place = Some(value);
        }
        Some(limit)
    }
}

/// For people: `20 MiB/s and 500 operations/s`.
impl fmt::Display for DiskLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes_per_s.map(|bytes| format!("{}/s", format_bytes(bytes)));
        let operations = self.operations_per_s.map(|count| format!("{count} operations/s"));
        let both: Vec<String> = bytes.into_iter().chain(operations).collect();
        f.write_str(&both.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_operations_or_both_are_parsed() {
        let shown = |text: &str| DiskLimit::parse(text).map(|limit| limit.to_string());
        assert_eq!(shown("20MiB/s").as_deref(), Some("20 MiB/s"));
        assert_eq!(shown("500iops").as_deref(), Some("500 operations/s"));
        assert_eq!(shown("10kiops, 1GiB/s").as_deref(), Some("1 GiB/s and 10000 operations/s"));
        for wrong in ["", "20MiB", "500", "20MiB/s,", "1iops,2iops", "1KiB/s", "0iops", "-1iops"] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
    }
}
