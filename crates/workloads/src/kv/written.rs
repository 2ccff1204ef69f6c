//! What clients wrote to a sample of a load's keys, and so what these may hold when it is over.
//!
//! The sample of a load is every 2^k-th key that it writes, the first (of skewed distributions the
//! most popular) among them. It begins with every key, and k grows as more are written (distinct
//! sampling: Gibbons, VLDB 2001, 541), so that a load of few writes has all of them in its sample.
//! Of writes that overlap in time any may be the last. A write may therefore be found unless
//! another one was sent after it was acknowledged, and acknowledged itself. A write that failed
//! may have been carried out, or be so later.

use model::Held;
use std::collections::BTreeMap;

use super::values::{ValueCheck, Values};
use super::{Key, Sizes};

/// Sampled keys of a load that writes at least as many; up to twice as many.
pub const SAMPLED_MIN: u64 = 1024;
/// Most sampled keys of a load.
const SAMPLED_MAX: usize = 2 * SAMPLED_MIN as usize;
/// Writes that may each be the last one of a key, and failed ones. Beyond it the key is given up:
/// looking through them would cost the generator more than a request does.
const CANDIDATES_MAX: usize = 128;

/// A write that a store acknowledged, with times in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    version: u64,
    sent_ns: u64,
    done_ns: u64,
}

/// Writes of the sampled keys, of one thread or merged of several, and of several loads.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Bits that the number of a sampled key does not have; of several loads those of the last.
    mask: u64,
    /// Of each sampled key that was written, by its number.
    keys: BTreeMap<u64, Writes>,
}

#[derive(Clone, Debug, Default)]
struct Writes {
    /// Those that may be the last one.
    last: Vec<Acknowledged>,
    /// When the last acknowledged write was sent.
    sent_ns: u64,
    /// Versions of writes that failed.
    failed: Vec<u64>,
    given_up: bool,
}

impl Written {
    /// A write was sent and acknowledged, nanoseconds of a clock that all threads share.
    #[inline]
    pub fn acknowledged(&mut self, key: Key, version: u64, sent_ns: u64, done_ns: u64) {
        if key.0 & self.mask == 0 {
            let writes = self.keys.entry(key.0).or_default();
            writes.add(Acknowledged { version, sent_ns, done_ns });
            self.thin();
        }
    }

    /// A write failed: it may be carried out or not, now or later.
    pub fn failed(&mut self, key: Key, version: u64) {
        if key.0 & self.mask == 0 {
            let writes = self.keys.entry(key.0).or_default();
            writes.failed.push(version);
            writes.given_up |= writes.failed.len() > CANDIDATES_MAX;
            self.thin();
        }
    }

    /// Samples fewer keys, until they are no more than [`SAMPLED_MAX`].
    fn thin(&mut self) {
        while self.keys.len() > SAMPLED_MAX {
            self.only(self.mask << 1 | 1);
        }
    }

    /// Keeps the keys of a sample by more bits.
    fn only(&mut self, mask: u64) {
        self.mask |= mask;
        let mask = self.mask;
        self.keys.retain(|key, _| key & mask == 0);
    }

    /// Counts all times from a moment so many nanoseconds earlier, as the clock of several loads
    /// does.
    pub fn count_from_earlier(&mut self, ns: u64) {
        for writes in self.keys.values_mut() {
            writes.sent_ns += ns;
            for write in &mut writes.last {
                write.sent_ns += ns;
                write.done_ns += ns;
            }
        }
    }

    /// Takes in what another thread of the same load wrote, by the same clock. Keys are kept that
    /// are in both samples.
    pub fn merge(&mut self, mut other: Self) {
        let mask = self.mask | other.mask;
        self.only(mask);
        other.only(mask);
        self.add(other.keys);
        self.thin();
    }

    /// Takes in what a later load wrote, by the same clock. Its sample is kept whole; of what was
    /// written before those keys of which the later one would know if it had written them.
    pub fn followed_by(&mut self, later: Self) {
        self.only(later.mask);
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

    /// Sampled keys whose last write is known, in rising order.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        let known = |(_, writes): &(&u64, &Writes)| !writes.last.is_empty() && !writes.given_up;
        self.keys.iter().filter(known).map(|(key, _)| Key(*key))
    }

    /// Sampled keys that were given up: too many of their writes overlapped or failed.
    pub fn given_up(&self) -> usize {
        self.keys.values().filter(|writes| writes.given_up).count()
    }

    /// When the first of the writes that may be a key's last was sent: its value lives no shorter
    /// than from then on. `None` for a key of which nothing is known.
    pub fn sent_ns(&self, key: Key) -> Option<u64> {
        self.keys.get(&key.0)?.last.iter().map(|write| write.sent_ns).min()
    }

    /// Judges what one of [`Self::keys`] holds; `None` for another key. A value too short for a
    /// version is the same in all of them.
    pub fn held(
        &self,
        key: Key,
        value: Option<&[u8]>,
        (values, sizes, seed): (&Values, &Sizes, u64),
    ) -> Option<Held> {
        let writes = self.keys.get(&key.0)?;
        let Some(value) = value else { return Some(Held::Missing) };
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
            return Some(Held::Last);
        }
        let is_whole = value.len() == bytes;
        let is_ours = is_whole && values.check(&mut ValueCheck::new(key.0, bytes), value);
        Some(if is_ours { Held::Older } else { Held::Wrong })
    }
}

impl Writes {
    /// Adds a write that was acknowledged.
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
