//! Outcomes of operations.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::failure::ErrorClass;

/// Outcomes of operations. All fields except `ok` count as not successful.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Answered as expected.
    pub ok: u64,
    /// A session, key or record was not found.
    pub miss: u64,
    /// Misses of cache records that no client had removed and that had not expired.
    pub lost: u64,
    /// Misses that were the first after the expiry of an entry that all clients use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expired: u64,
    /// Failures of all classes.
    pub error: u64,
    /// A value of wrong length or content.
    pub wrong: u64,
    /// An older value than the last one written under the lock.
    pub stale: u64,
    /// Failures by class.
    pub errors_by_class: BTreeMap<ErrorClass, u64>,
    /// One error message per class: one line, without credentials.
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
    /// Round trips to servers, if the store counts them.
    pub round_trips: u64,
    /// Commands or statements sent to servers, if the store counts them.
    pub commands: u64,
    /// File accesses (open, list, stat, remove), if the store counts them.
    pub files: u64,
    /// Expired sessions deleted by clients.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deleted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Counts {
    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            ok,
            miss,
            lost,
            expired,
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
            deleted,
        } = other;
        self.ok += ok;
        self.miss += miss;
        self.lost += lost;
        self.expired += expired;
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
        self.deleted += deleted;
        for (class, n) in errors_by_class {
            *self.errors_by_class.entry(*class).or_default() += n;
        }
        for (class, words) in error_examples {
            self.error_examples.entry(*class).or_insert_with(|| words.clone());
        }
    }

    /// Counts one failure, and keeps its message if it is the first of its class.
    pub fn fail(&mut self, class: ErrorClass, words: &str) {
        self.error += 1;
        *self.errors_by_class.entry(class).or_default() += 1;
        if !words.is_empty() {
            self.error_examples.entry(class).or_insert_with(|| words.into());
        }
    }

    /// Operations that failed or returned a wrong or stale value.
    pub fn failed(&self) -> u64 {
        self.error + self.wrong + self.stale
    }

    /// True if there were no operations.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Total number of operations.
    pub fn total(&self) -> u64 {
        self.ok + self.miss + self.error + self.wrong + self.stale
    }
}
