//! Timestamps in records.

use jiff::Timestamp;

/// Converts milliseconds since the Unix epoch.
pub(crate) fn utc(unix_ms: u64) -> Timestamp {
    let unix_ms = i64::try_from(unix_ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH)
}
