//! Session names and values as pure functions, so every reply can be verified.
//!
//! A value starts with a stamp: its version in base 62, in `STAMP` characters. The characters after
//! it are drawn from a generator seeded by (seed, session, version). All characters are in
//! `0-9a-zA-Z`, as in the 2019 script. The generator is [`SplitMix64`](stats::SplitMix64). Each
//! 64-bit word gives four characters by multiplying its 16-bit parts by 62; the rarest character is
//! 0.1 % less likely than the most frequent.

use model::Names;
use stats::{GOLDEN, scatter};
use std::fmt::Write as _;

use crate::Share;

/// Length of the stamp in characters: enough for 64 bits in base 62.
pub const STAMP: usize = 11;

pub(crate) const ALPHABET: &[u8; 62] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Characters drawn at once.
const BLOCK: usize = 32;

/// Mixes several numbers into one; similar inputs give unrelated results.
pub fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |state, part| mix_in(state, *part))
}

/// Adds a part to the result of [`mix`] for the previous parts.
#[inline]
pub fn mix_in(state: u64, part: u64) -> u64 {
    scatter(state.wrapping_add(GOLDEN) ^ scatter(part))
}

/// Maps a scattered number to 0 to `below` − 1, without a division.
pub fn pick(scattered: u64, below: u64) -> u64 {
    ((u128::from(scattered) * u128::from(below)) >> 64) as u64
}

/// Writes the value of `session` in `version` into `value`; it has `bytes` characters (at least
/// [`STAMP`]).
pub fn value_into(value: &mut Vec<u8>, seed: u64, session: u64, version: u64, bytes: usize) {
    value.resize(bytes.max(STAMP), 0);
    let (stamp, rest) = value.split_at_mut(STAMP);
    let mut left = version;
    for digit in stamp.iter_mut().rev() {
        *digit = ALPHABET[(left % 62) as usize];
        left /= 62;
    }
    let mut state = mix(&[seed, session, version]);
    let mut blocks = rest.chunks_exact_mut(BLOCK);
    for block in &mut blocks {
        block.copy_from_slice(&characters(&mut state));
    }
    let last = blocks.into_remainder();
    last.copy_from_slice(&characters(&mut state)[..last.len()]);
}

/// The next characters of the generator at `state`, without tables or branches, so the compiler
/// vectorises it: drawing a value is most of the client's cost of a write.
fn characters(state: &mut u64) -> [u8; BLOCK] {
    let mut parts = [0; BLOCK];
    for four in parts.chunks_exact_mut(4) {
        *state = state.wrapping_add(GOLDEN);
        let mut word = scatter(*state);
        for part in four {
            *part = word as u16;
            word >>= 16;
        }
    }
    parts.map(character)
}

/// Maps a 16-bit part to a character of [`ALPHABET`]. Nothing here overflows; overflow checks would
/// prevent vectorisation.
fn character(part: u16) -> u8 {
    let digit = (u32::from(part).wrapping_mul(62) >> 16) as u8;
    let to_lower = if digit > 9 { b'a' - b'9' - 1 } else { 0 };
    let to_upper = if digit > 35 { b'z' + 1 - b'A' } else { 0 };
    b'0'.wrapping_add(digit).wrapping_add(to_lower).wrapping_sub(to_upper)
}

/// The version in a value's stamp; `None` if the stamp is invalid.
pub fn version_of(value: &[u8]) -> Option<u64> {
    value.get(..STAMP)?.iter().try_fold(0u64, |version, character| {
        version.checked_mul(62)?.checked_add(digit_of(*character)?)
    })
}

/// Index of a character in [`ALPHABET`].
pub(crate) fn digit_of(character: u8) -> Option<u64> {
    let place = match character {
        b'0'..=b'9' => character - b'0',
        b'a'..=b'z' => character - b'a' + 10,
        b'A'..=b'Z' => character - b'A' + 36,
        _ => return None,
    };
    Some(u64::from(place))
}

/// Writes the name of the client's session in `slot` into `name`.
pub fn name_into(name: &mut String, names: Names, share: &Share, slot: u64) {
    name.clear();
    name.push_str(&share.prefix);
    let written = match names {
        Names::Counter => write!(name, "{}_{slot}", share.client + 1),
        Names::Hex => {
            let index = share.index(slot);
            let (high, low) = (mix(&[share.seed, index, 1]), mix(&[share.seed, index, 2]));
            write!(name, "{high:016x}{low:016x}")
        }
    };
    debug_assert!(written.is_ok(), "writing to a String does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition in the module comment, one character at a time.
    fn defined(seed: u64, session: u64, version: u64, bytes: usize) -> Vec<u8> {
        let start = mix(&[seed, session, version]);
        let drawn = |at: usize| {
            let word = scatter(start.wrapping_add(GOLDEN.wrapping_mul(at as u64 / 4 + 1)));
            let part = (word >> (16 * (at % 4))) & 0xffff;
            ALPHABET[((part * 62) >> 16) as usize]
        };
        (0..bytes - STAMP).map(drawn).collect()
    }

    #[test]
    fn values_of_every_length_match_the_definition() {
        let mut value = Vec::new();
        for bytes in (STAMP..STAMP + 3 * BLOCK).chain([1500]) {
            let session = bytes as u64;
            value_into(&mut value, 7, session, 3, bytes);
            assert_eq!(value[STAMP..], defined(7, session, 3, bytes), "{bytes}");
        }
    }

    #[test]
    fn a_hexadecimal_name_is_two_padded_words() {
        let share = Share { seed: 7, client: 1, clients: 3, prefix: "run:".into() };
        let mut name = "earlier".to_string();
        for slot in 0..200 {
            name_into(&mut name, Names::Hex, &share, slot);
            let [high, low] = [1, 2].map(|part| mix(&[7, slot * 3 + 1, part]));
            assert_eq!(name, format!("run:{high:016x}{low:016x}"));
        }
    }

    #[test]
    fn every_character_has_its_index() {
        for character in 0..=u8::MAX {
            let place = ALPHABET.iter().position(|c| *c == character);
            assert_eq!(digit_of(character), place.map(|place| place as u64));
        }
    }

    #[test]
    fn every_part_maps_to_its_character() {
        for part in 0..=u16::MAX {
            let digit = (usize::from(part) * 62) >> 16;
            assert_eq!(character(part), ALPHABET[digit], "{part}");
        }
    }
}
