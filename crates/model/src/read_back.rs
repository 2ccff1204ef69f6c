//! What a store still holds of what it acknowledged.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a key, session or record holds when its load is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// What was written last, or one of several writes that each may be the last.
    Last,
    /// What a later write has replaced.
    Older,
    /// What nobody wrote there.
    Wrong,
    /// Nothing.
    Missing,
}

/// A sample of what clients wrote, read back after the last phase of a trial. What clients cannot
/// know is not in it: after a write that failed, anything may be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBack {
    /// Keys, sessions or records that were read.
    pub read: u64,
    /// Of those, how many held what a later acknowledged write had replaced.
    pub older: u64,
    /// How many held what nobody wrote.
    pub wrong: u64,
    /// How many were not there.
    pub missing: u64,
    /// So many of them may be missing: evictions that the store told of, or a lifetime that was
    /// over, explain it.
    pub may_be_missing: u64,
    /// How many were all written again after the plan killed a server: that it lost what they held
    /// before cannot be seen.
    #[serde(default)]
    pub rewritten: u64,
    /// Name of one that is not as it must be.
    pub example: Option<String>,
    /// Why the rest was not read; `None` where all of the sample was.
    pub unread: Option<String>,
}

impl ReadBack {
    /// Counts one that was read.
    pub fn count(&mut self, held: Held, name: impl FnOnce() -> String) {
        self.read += 1;
        match held {
            Held::Last => return,
            Held::Older => self.older += 1,
            Held::Wrong => self.wrong += 1,
            Held::Missing => self.missing += 1,
        }
        self.example.get_or_insert_with(name);
    }

    /// Adds what another client read.
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

    /// The rest is not read, since that would take longer than it may.
    pub fn out_of_time(&mut self, may_take: Duration) {
        self.unread = Some(format!("the rest would take longer than {} s", may_take.as_secs()));
    }

    /// Takes into account that the store evicted so many of `all` that it held, besides what may be
    /// missing already: how many of the sample are then missing follows a Poisson distribution;
    /// five standard deviations more than its mean are allowed.
    pub fn evicted(&mut self, evicted: u64, all: u64) {
        if evicted > 0 {
            let mean = self.read as f64 * (evicted as f64 / all.max(1) as f64);
            let most = (mean + 5.0 * mean.sqrt()).ceil().max(5.0) as u64;
            self.may_be_missing = (self.may_be_missing + most).min(self.read);
        }
    }

    /// Those of the sample that were written last before the plan killed a server; all, where it
    /// killed none.
    pub fn last_before_kill(&self) -> u64 {
        self.read - self.rewritten.min(self.read)
    }

    /// Those of the sample that the store acknowledged and did not keep.
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
    fn evictions_explain_as_many_missing_keys_as_they_took() {
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
    fn evictions_come_on_top_of_lifetimes_that_are_over() {
        let mut read_back = ReadBack { may_be_missing: 100, ..missing(108) };
        read_back.evicted(1, 100_000);
        assert_eq!(read_back.lost(), 3);
    }

    #[test]
    fn an_older_value_is_never_explained() {
        let mut read_back = ReadBack { older: 2, wrong: 1, ..missing(10) };
        read_back.evicted(100_000, 100_000);
        assert_eq!(read_back.lost(), 3);
    }
}
