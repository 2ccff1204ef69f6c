//! Names that are version 4 UUIDs (RFC 9562), as used by applications. They are unique by
//! construction: the last twelve digits are the key's number in decimal.

use super::digits::write_over_zeros;
use stats::scatter;

use crate::values::{mix, mix_in};

/// Length of a UUID in characters.
pub(super) const UUID_BYTES: usize = 36;
/// Mixed into the seed to make UUIDs unrelated to other numbers of the seed.
const SALT: u64 = 0x7575_6964;
/// Positions of the random digits.
const DRAWN: [std::ops::Range<usize>; 4] = [0..8, 9..13, 15..18, 20..23];
/// Position of the variant, and its possible digits.
const VARIANT: (usize, &[u8; 4]) = (19, b"89ab");
const NUMBER_AT: usize = 24;
const FORM: &[u8; UUID_BYTES] = b"00000000-0000-4000-8000-000000000000";

/// UUIDs of keys: a pure function of the seed and the key's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uuids {
    base: u64,
}

impl Uuids {
    /// Different seeds give unrelated UUIDs.
    pub(super) fn new(seed: u64) -> Self {
        Self { base: mix(&[seed, SALT]) }
    }

    /// Writes the UUID of a key, whose number has at most twelve digits, over [`UUID_BYTES`] bytes.
    pub(super) fn write(self, uuid: &mut [u8], key: u64) {
        uuid.copy_from_slice(FORM);
        let word = mix_in(self.base, key);
        let mut bits = u128::from(word) << 64 | u128::from(scatter(word));
        let (at, digits) = VARIANT;
        uuid[at] = digits[(bits >> 126) as usize];
        for group in DRAWN {
            for digit in &mut uuid[group] {
                *digit = b"0123456789abcdef"[(bits & 15) as usize];
                bits >>= 4;
            }
        }
        write_over_zeros(&mut uuid[NUMBER_AT..], key);
    }
}
