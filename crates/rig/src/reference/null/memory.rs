//! The optional memory of a null server: the last value of a given number of keys.
//!
//! A hash table with at least two slots per key, each with its own lock. Only the 64-bit hash
//! identifies a key: two keys with the same hash share a value.

use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots probed per key. In a half-full table, fewer than one key in a million finds no free slot;
/// it then replaces another key.
const PROBES: usize = 64;

/// Values by key.
#[derive(Debug)]
pub(super) struct Memory {
    slots: Vec<Mutex<Slot>>,
}

#[derive(Debug, Default)]
struct Slot {
    /// 0 if the slot was never used.
    hash: u64,
    flags: u32,
    /// `None` if it was deleted.
    value: Option<Vec<u8>>,
}

impl Memory {
    /// Memory for `keys` keys; uses 80 to 160 bytes per key in addition to the values.
    pub(super) fn new(keys: usize) -> Self {
        let slots = (keys * 2).next_power_of_two().max(PROBES);
        Self { slots: (0..slots).map(|_| Mutex::default()).collect() }
    }

    /// Passes a key's flags and value to `take`; `None` if there is no value.
    pub(super) fn get<T>(&self, key: &[u8], take: impl FnOnce(u32, &[u8]) -> T) -> Option<T> {
        let slot = self.find(hash(key))?;
        slot.value.as_deref().map(|value| take(slot.flags, value))
    }

    /// Stores a value; allocates only if it is longer than the slot's earlier values.
    pub(super) fn set(&self, key: &[u8], flags: u32, value: &[u8]) {
        let hash = hash(key);
        let mut slot = self.probe_slots(hash).find(|slot| slot.hash == hash || slot.hash == 0);
        let slot = slot.get_or_insert_with(|| self.lock(hash as usize));
        (slot.hash, slot.flags) = (hash, flags);
        let kept = slot.value.get_or_insert_default();
        kept.clear();
        kept.extend_from_slice(value);
    }

    /// Removes a key's value; false if there was none.
    pub(super) fn remove(&self, key: &[u8]) -> bool {
        self.find(hash(key)).is_some_and(|mut slot| slot.value.take().is_some())
    }

    /// Removes all values.
    pub(super) fn clear(&self) {
        for at in 0..self.slots.len() {
            *self.lock(at) = Slot::default();
        }
    }

    fn find(&self, hash: u64) -> Option<MutexGuard<'_, Slot>> {
        let found = self.probe_slots(hash).find(|slot| slot.hash == hash || slot.hash == 0)?;
        (found.hash == hash).then_some(found)
    }

    /// The slots probed for a hash, locked one at a time.
    fn probe_slots(&self, hash: u64) -> impl Iterator<Item = MutexGuard<'_, Slot>> {
        (0..PROBES).map(move |n| self.lock(hash as usize + n))
    }

    fn lock(&self, at: usize) -> MutexGuard<'_, Slot> {
        // A slot is consistent even after a panic: it is written field by field.
        let slot = &self.slots[at & (self.slots.len() - 1)];
        slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key's hash; never 0, which marks an unused slot.
fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(memory: &Memory, key: &str) -> Option<(u32, Vec<u8>)> {
        memory.get(key.as_bytes(), |flags, value| (flags, value.to_vec()))
    }

    #[test]
    fn the_last_value_is_kept_until_it_is_removed() {
        let memory = Memory::new(1);
        assert_eq!(value(&memory, "a"), None);
        memory.set(b"a", 7, b"one");
        memory.set(b"b", 0, b"");
        memory.set(b"a", 8, b"three");
        assert_eq!(value(&memory, "a"), Some((8, b"three".to_vec())));
        assert_eq!(value(&memory, "b"), Some((0, Vec::new())));
        assert!(memory.remove(b"a") && !memory.remove(b"a") && !memory.remove(b"c"));
        assert_eq!(value(&memory, "a"), None);
        memory.set(b"a", 9, b"x");
        assert_eq!(value(&memory, "a"), Some((9, b"x".to_vec())));
        memory.clear();
        assert_eq!((value(&memory, "a"), value(&memory, "b")), (None, None));
    }

    #[test]
    fn the_given_number_of_keys_is_kept_and_further_keys_replace_others() {
        let memory = Memory::new(10_000);
        let key = |n: usize| format!("key:{n}");
        let keep = |n: usize| memory.set(key(n).as_bytes(), n as u32, key(n).as_bytes());
        let kept = |n: &usize| value(&memory, &key(*n)) == Some((*n as u32, key(*n).into_bytes()));
        (0..10_000).for_each(keep);
        assert_eq!((0..10_000).filter(kept).count(), 10_000);
        (10_000..200_000).for_each(keep);
        assert!(kept(&199_999), "the newest key is missing");
        let left = (0..200_000).filter(kept).count();
        assert!((10_000..=32_768).contains(&left), "{left} in 32768 slots");
    }
}
