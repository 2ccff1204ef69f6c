//! Command lookup by name in a few nanoseconds.

use std::collections::BTreeSet;

/// Maximum length of a command name.
const NAME_BYTES_MAX: usize = 16;
/// Slots of a table: a power of two, several times the number of commands.
const SLOTS: usize = 1024;

/// Maps the commands of a protocol to kinds of reply, ignoring case.
#[derive(Debug)]
pub(super) struct Commands<A> {
    slots: Vec<Option<(u128, A)>>,
}

impl<A: Copy> Commands<A> {
    /// `groups`: each kind of reply with its command names, separated by blanks.
    pub(super) fn new(groups: &[(A, &str)]) -> Self {
        let mut slots = vec![None; SLOTS];
        let mut seen = BTreeSet::new();
        for (answer, name) in groups.iter().flat_map(|(a, names)| names.split(' ').map(|n| (*a, n)))
        {
            let packed = pack(name.as_bytes());
            debug_assert!(
                packed.is_some() && seen.insert(packed),
                "`{name}` is too long or repeated"
            );
            let Some(packed) = packed else { continue };
            let mut at = slot(packed);
            while slots[at].is_some() {
                at = (at + 1) % SLOTS;
            }
            slots[at] = Some((packed, answer));
        }
        Self { slots }
    }

    /// The kind of reply of a command; `None` if it is unknown.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<A> {
        let packed = pack(name)?;
        let mut at = slot(packed);
        loop {
            match self.slots[at] {
                Some((other, answer)) if other == packed => return Some(answer),
                Some(_) => at = (at + 1) % SLOTS,
                None => return None,
            }
        }
    }
}

/// A lower-case name packed into an integer; `None` if it is empty or too long.
#[inline]
fn pack(name: &[u8]) -> Option<u128> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    let add = |packed: u128, byte: &u8| packed << 8 | u128::from(byte.to_ascii_lowercase());
    fits.then(|| name.iter().fold(0, add))
}

/// The upper bits of a product with the golden ratio's fraction (Knuth, "The Art of Computer
/// Programming" 3, 6.4).
#[inline]
fn slot(packed: u128) -> usize {
    let folded = packed as u64 ^ (packed >> 64) as u64;
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_others_are_not() {
        let commands = Commands::new(&[(1, "get flush_all"), (2, "zrangebyscore")]);
        assert_eq!(commands.find(b"GET"), Some(1));
        assert_eq!(commands.find(b"flush_ALL"), Some(1));
        assert_eq!(commands.find(b"ZRangeByScore"), Some(2));
        for unknown in [&b"ge"[..], b"gets", b"", b"flush\x7fall", b"a_name_of_17_byte"] {
            assert_eq!(commands.find(unknown), None, "{unknown:?}");
        }
    }
}
