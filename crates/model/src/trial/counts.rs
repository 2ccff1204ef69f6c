//! How operations ended.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::failure::ErrorClass;

/// How operations ended. Every field but `ok` counts apart from success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Answered as expected.
    pub ok: u64,
    /// A session, key or record was not found.
    pub miss: u64,
    /// Of the misses, those of records of an application cache that nobody had removed and that had
    /// not expired.
    pub lost: u64,
    /// Failed, all classes together.
    pub error: u64,
    /// A value of wrong length or content.
    pub wrong: u64,
    /// An older value than the last one written under the lock.
    pub stale: u64,
    /// Failed, by class.
    pub errors_by_class: BTreeMap<ErrorClass, u64>,
    /// Of each class the words of one failure, for people: one line, free of credentials.
    pub error_examples: BTreeMap<ErrorClass, String>,
    /// Values compared byte by byte.
    pub verified: u64,
    /// Opens that found the session's lock taken.
    pub lock_waits: u64,
    /// Attempts to take a lock, over all opens.
    pub lock_attempts: u64,
    /// Closes that found their lock gone or taken over.
    pub lock_broken: u64,
    /// Opens that gave up waiting for the lock.
    pub lock_timeouts: u64,
    /// Times that a server's answer was waited for, where the store counts its effort.
    pub round_trips: u64,
    /// Commands or statements sent to servers, where the store counts its effort.
    pub commands: u64,
    /// Files opened, listed, looked at or removed, each time counted, where the store counts them.
    pub files: u64,
}

impl Counts {
    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            ok,
            miss,
            lost,
            error,
            wrong,
            stale,
            errors_by_class,
            error_examples,
            verified,
            lock_waits,
            lock_attempts,
            lock_broken,
            lock_timeouts,
            round_trips,
            commands,
            files,
        } = other;
        self.ok += ok;
        self.miss += miss;
        self.lost += lost;
        self.error += error;
        self.wrong += wrong;
        self.stale += stale;
        self.verified += verified;
        self.lock_waits += lock_waits;
        self.lock_attempts += lock_attempts;
        self.lock_broken += lock_broken;
        self.lock_timeouts += lock_timeouts;
        self.round_trips += round_trips;
        self.commands += commands;
        self.files += files;
        for (class, n) in errors_by_class {
            *self.errors_by_class.entry(*class).or_default() += n;
        }
        for (class, words) in error_examples {
            self.error_examples.entry(*class).or_insert_with(|| words.clone());
        }
    }

    /// Counts one failure, whose `words` are kept where they are the first of their class.
    pub fn fail(&mut self, class: ErrorClass, words: &str) {
        self.error += 1;
        *self.errors_by_class.entry(class).or_default() += 1;
        if !words.is_empty() {
            self.error_examples.entry(class).or_insert_with(|| words.into());
        }
    }

    /// Operations that failed, or gave a wrong or an old value.
    pub fn failed(&self) -> u64 {
        self.error + self.wrong + self.stale
    }

    /// True where nothing was tried.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All operations tried.
    pub fn total(&self) -> u64 {
        self.ok + self.miss + self.error + self.wrong + self.stale
    }
}
