//! Check that a store kept what it acknowledged.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Value of a key, session or record after the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredVersion {
    /// The last write, or one of several possible last writes.
    Last,
    /// A value that a later write replaced.
    Older,
    /// A value that no client wrote there.
    Wrong,
    /// No value.
    Missing,
}

/// A sample of the clients' writes, read back after the last phase of a trial. It excludes keys
/// whose value is unknown, for example after a failed write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBack {
    /// Number of keys, sessions or records read.
    pub read: u64,
    /// Number with a value that a later acknowledged write replaced.
    pub older: u64,
    /// Number with a value that no client wrote.
    pub wrong: u64,
    /// Number without a value.
    pub missing: u64,
    /// Number of missing keys that evictions or expiry explain.
    pub may_be_missing: u64,
    /// Number that have a value written after the fault, so that a lost earlier value cannot be
    /// detected.
    #[serde(default)]
    pub rewritten: u64,
    /// Name of one key with an unexpected value.
    pub example: Option<String>,
    /// Why the rest was not read; `None` if the whole sample was.
    pub unread: Option<String>,
}

impl ReadBack {
    /// Counts one key.
    pub fn count(&mut self, held: StoredVersion, name: impl FnOnce() -> String) {
        self.read += 1;
        match held {
            StoredVersion::Last => return,
            StoredVersion::Older => self.older += 1,
            StoredVersion::Wrong => self.wrong += 1,
            StoredVersion::Missing => self.missing += 1,
        }
        self.example.get_or_insert_with(name);
    }

    /// Adds the counts of another client.
    pub fn merge(&mut self, other: Self) {
        self.read += other.read;
        self.older += other.older;
        self.wrong += other.wrong;
        self.missing += other.missing;
        self.may_be_missing += other.may_be_missing;
        self.rewritten += other.rewritten;
        self.example = self.example.take().or(other.example);
        self.unread = self.unread.take().or(other.unread);
    }

    /// Notes that the rest was not read for lack of time.
    pub fn out_of_time(&mut self, limit: Duration) {
        self.unread =
            Some(format!("reading the rest would take longer than {} s", limit.as_secs()));
    }

    /// Accounts for `evicted` evictions among `all` keys, in addition to other explained misses.
    /// The number of missing keys in the sample follows a Poisson distribution; its mean plus five
    /// standard deviations is allowed.
    pub fn evicted(&mut self, evicted: u64, all: u64) {
        if evicted > 0 {
            let mean = self.read as f64 * (evicted as f64 / all.max(1) as f64);
            let most = (mean + 5.0 * mean.sqrt()).ceil().max(5.0) as u64;
            self.may_be_missing = (self.may_be_missing + most).min(self.read);
        }
    }

    /// Keys of the sample whose last acknowledged write could be found lost: all but those that
    /// have a value written after the fault.
    pub fn checked(&self) -> u64 {
        self.read - self.rewritten.min(self.read)
    }

    /// Keys of the sample whose acknowledged write was lost.
    pub fn lost(&self) -> u64 {
        self.older + self.wrong + self.missing.saturating_sub(self.may_be_missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(missing: u64) -> ReadBack {
        ReadBack { read: 1_000, missing, ..ReadBack::default() }
    }

    #[test]
    fn evictions_explain_missing_keys() {
        let lost = |evicted, gone| {
            let mut read_back = missing(gone);
            read_back.evicted(evicted, 100_000);
            read_back.lost()
        };
        assert_eq!(lost(0, 3), 3);
        assert_eq!(lost(10_000, 100), 0);
        assert_eq!(lost(10_000, 200), 50);
        assert_eq!(lost(1, 5), 0);
        // More evictions than keys: each was written again and evicted again.
        assert_eq!(lost(1_000_000, 1_000), 0);
    }

    #[test]
    fn evictions_and_expiry_together_explain_missing_keys() {
        let mut read_back = ReadBack { may_be_missing: 100, ..missing(108) };
        read_back.evicted(1, 100_000);
        assert_eq!(read_back.lost(), 3);
    }

    #[test]
    fn an_older_value_always_counts_as_lost() {
        let mut read_back = ReadBack { older: 2, wrong: 1, ..missing(10) };
        read_back.evicted(100_000, 100_000);
        assert_eq!(read_back.lost(), 3);
    }
}
