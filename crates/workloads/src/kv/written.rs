//! Writes to a sample of a load's keys, and the values that these keys may have at the end.
//!
//! The sample of a load is every 2^k-th key that it writes, including the first keys (the most
//! popular ones of skewed distributions). It starts with k = 0, and k grows as more keys are
//! written (distinct sampling: Gibbons, VLDB 2001, 541), so the sample of a load with few writes
//! contains all of them. Among writes that overlap in time, any may be the last. So a write may be
//! found unless another one was sent after it was acknowledged, and was acknowledged too. A failed
//! write may have been applied, or be applied later.

use model::StoredVersion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::values::{ValueCheck, Values};
use super::{Key, Sizes};

/// Minimum number of sampled keys, if a load writes that many.
pub const SAMPLED_MIN: u64 = 1024;
/// Maximum number of sampled keys.
const SAMPLED_MAX: usize = 2 * SAMPLED_MIN as usize;
/// Most candidates for a key's last write, and most failed writes. A key with more is abandoned:
/// comparing them would cost the generator more than a request.
const CANDIDATES_MAX: usize = 128;

/// An acknowledged write; times are in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Acknowledged {
    version: u64,
    sent_ns: u64,
    done_ns: u64,
}

/// Writes to the sampled keys, of one thread or merged from several threads and loads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Written {
    /// Bits that are 0 in the number of a sampled key; after several loads, those of the last load.
    mask: u64,
    /// Writes to each sampled key, by its number.
    keys: BTreeMap<u64, Writes>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Writes {
    /// Candidates for the last write.
    last: Vec<Acknowledged>,
    /// When the latest acknowledged write was sent.
    sent_ns: u64,
    /// Versions of writes that failed.
    failed: Vec<u64>,
    given_up: bool,
}

impl Written {
    /// Records an acknowledged write; times are nanoseconds of a clock shared by all threads.
    #[inline]
    pub fn acknowledged(&mut self, key: Key, version: u64, sent_ns: u64, done_ns: u64) {
        if key.0 & self.mask == 0 {
            let writes = self.keys.entry(key.0).or_default();
            writes.add(Acknowledged { version, sent_ns, done_ns });
            self.thin();
        }
    }

    /// Records a failed write, which may be applied or not, now or later.
    pub fn failed(&mut self, key: Key, version: u64) {
        if key.0 & self.mask == 0 {
            let writes = self.keys.entry(key.0).or_default();
            writes.failed.push(version);
            writes.given_up |= writes.failed.len() > CANDIDATES_MAX;
            self.thin();
        }
    }

    /// Thins the sample until it has at most [`SAMPLED_MAX`] keys.
    fn thin(&mut self) {
        while self.keys.len() > SAMPLED_MAX {
            self.restrict(self.mask << 1 | 1);
        }
    }

    /// Restricts the sample by additional bits.
    fn restrict(&mut self, mask: u64) {
        self.mask |= mask;
        let mask = self.mask;
        self.keys.retain(|key, _| key & mask == 0);
    }

    /// Moves the clock's zero back by `ns` nanoseconds, to the shared clock of several loads.
    pub fn count_from_earlier(&mut self, ns: u64) {
        for writes in self.keys.values_mut() {
            writes.sent_ns += ns;
            for write in &mut writes.last {
                write.sent_ns += ns;
                write.done_ns += ns;
            }
        }
    }

    /// Makes every write begin earlier and end later by `ns` nanoseconds, for clocks that differ by
    /// up to that.
    pub fn widen(&mut self, ns: u64) {
        for writes in self.keys.values_mut() {
            writes.sent_ns = writes.sent_ns.saturating_sub(ns);
            for write in &mut writes.last {
                write.sent_ns = write.sent_ns.saturating_sub(ns);
                write.done_ns += ns;
            }
        }
    }

    /// Merges the writes of another thread of the same load, on the same clock. Keeps the keys that
    /// are in both samples.
    pub fn merge(&mut self, mut other: Self) {
        let mask = self.mask | other.mask;
        self.restrict(mask);
        other.restrict(mask);
        self.add(other.keys);
        self.thin();
    }

    /// Appends the writes of a later load, on the same clock. Keeps its whole sample, and of the
    /// earlier keys only those for which the later load would have recorded writes.
    pub fn followed_by(&mut self, later: Self) {
        self.restrict(later.mask);
        self.thin();
        self.mask = later.mask;
        self.add(later.keys);
    }

    fn add(&mut self, keys: BTreeMap<u64, Writes>) {
        for (key, theirs) in keys {
            let own = self.keys.entry(key).or_default();
            theirs.last.iter().for_each(|write| own.add(*write));
            own.failed.extend(&theirs.failed);
            own.given_up |= theirs.given_up;
        }
    }

    /// Sampled keys whose last write is known, in ascending order.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        let known = |(_, writes): &(&u64, &Writes)| !writes.last.is_empty() && !writes.given_up;
        self.keys.iter().filter(known).map(|(key, _)| Key(*key))
    }

    /// Number of abandoned keys, with too many overlapping or failed writes.
    pub fn given_up(&self) -> usize {
        self.keys.values().filter(|writes| writes.given_up).count()
    }

    /// When the earliest candidate for the key's last write was sent, which is the earliest start
    /// of its value's lifetime. `None` if nothing is known of the key.
    pub fn sent_ns(&self, key: Key) -> Option<u64> {
        self.keys.get(&key.0)?.last.iter().map(|write| write.sent_ns).min()
    }

    /// Judges the value of one of [`Self::keys`]; `None` for another key. Values too short for a
    /// version are identical in all versions.
    pub fn held(
        &self,
        key: Key,
        value: Option<&[u8]>,
        (values, sizes, seed): (&Values, &Sizes, u64),
    ) -> Option<StoredVersion> {
        let writes = self.keys.get(&key.0)?;
        let Some(value) = value else { return Some(StoredVersion::Missing) };
        let bytes = sizes.bytes(seed, key);
        let mut written = Vec::new();
        let mut is = |version: u64| {
            written.clear();
            values.append(&mut written, key.0, version, bytes);
            written == value
        };
        if writes.last.iter().any(|write| is(write.version))
            || writes.failed.iter().any(|version| is(*version))
        {
            return Some(StoredVersion::Last);
        }
        let is_whole = value.len() == bytes;
        let is_valid = is_whole && values.check(&mut ValueCheck::new(key.0, bytes), value);
        Some(if is_valid { StoredVersion::Older } else { StoredVersion::Wrong })
    }
}

impl Writes {
    /// Adds an acknowledged write.
    fn add(&mut self, write: Acknowledged) {
        if write.sent_ns > self.sent_ns {
            self.sent_ns = write.sent_ns;
            self.last.retain(|last| last.done_ns >= write.sent_ns);
        }
        if write.done_ns >= self.sent_ns {
            self.last.push(write);
        }
        self.given_up |= self.last.len() > CANDIDATES_MAX;
    }
}

#[cfg(test)]
#[path = "written_tests.rs"]
mod tests;
