//! Values that tell which version of a record they are.
//!
//! A version is the tick of the clients' common clock at which its write began, so that no two
//! writes share one. What a value tells, by its length:
//!
//! - 11 bytes and more: the version in base 62, then characters drawn by (seed, record, version),
//!   as in [`crate::values`]. Version and content can be checked to the last byte.
//! - 1 to 10 bytes: (version + offset of the record) in base 62, the last digits of it. That tells
//!   the version modulo 62 to the power of the length, and with five bytes and more, the version.
//!   A shorter value of another record, or an old one, may pass for a right one: one in 62 does of
//!   one byte, one in 3,844 of two.
//! - 0 bytes: nothing.
//!
//! The length itself is always checked.

use crate::values::{ALPHABET, STAMP, digit_of, mix, value_into, version_of};

/// What a value's bytes say, seen by someone who knows which versions there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// This version, or one that looks the same; it may be there.
    Fresh(u64),
    /// One that must be gone.
    Old,
    /// None that was ever written.
    Foreign,
}

/// Replaces `out` by the value of a version, `bytes` long.
pub(crate) fn value_of_version(
    out: &mut Vec<u8>,
    seed: u64,
    record: u64,
    version: u64,
    bytes: usize,
) {
    if bytes >= STAMP {
        return value_into(out, seed, record, version, bytes);
    }
    let versions = short_versions(bytes);
    let mut left = (version % versions + short_offset(seed, record, versions)) % versions;
    out.clear();
    out.resize(bytes, 0);
    for digit in out.iter_mut().rev() {
        *digit = ALPHABET[(left % 62) as usize];
        left /= 62;
    }
}

/// Judges a value by what it tells of its version, which should be at least `floor` and must be
/// less than `below`.
pub(crate) fn see(value: &[u8], seed: u64, record: u64, floor: u64, below: u64) -> Seen {
    if value.len() >= STAMP {
        return match version_of(value) {
            Some(version) if version >= below => Seen::Foreign,
            Some(version) if version < floor => Seen::Old,
            Some(version) => Seen::Fresh(version),
            None => Seen::Foreign,
        };
    }
    let versions = short_versions(value.len());
    let digits =
        value.iter().try_fold(0u64, |all, character| Some(all * 62 + digit_of(*character)?));
    let Some(digits) = digits else { return Seen::Foreign };
    let told = (digits + versions - short_offset(seed, record, versions)) % versions;
    // The first version from the floor on that looks like this.
    let first = floor + (told + versions - floor % versions) % versions;
    if first < below {
        Seen::Fresh(first)
    } else if told < floor {
        Seen::Old
    } else {
        Seen::Foreign
    }
}

/// How many versions a value of fewer than [`STAMP`] bytes can tell apart.
fn short_versions(bytes: usize) -> u64 {
    62u64.pow(bytes as u32)
}

fn short_offset(seed: u64, record: u64, versions: u64) -> u64 {
    mix(&[seed, record]) % versions
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_tells_its_version(
            seed: u64, record: u64, version in 0..1u64 << 40, bytes in 0..40usize
        ) {
            let mut value = Vec::new();
            value_of_version(&mut value, seed, record, version, bytes);
            prop_assert_eq!(value.len(), bytes);
            prop_assert!(value.iter().all(u8::is_ascii_alphanumeric));
            let see = |floor, below| see(&value, seed, record, floor, below);
            prop_assert_eq!(see(version, version + 1), Seen::Fresh(version));
            prop_assert!(matches!(see(0, version + 1), Seen::Fresh(_)));
            if bytes >= 7 {
                prop_assert_eq!(see(version + 1, version + 2), Seen::Old);
                prop_assert_eq!(see(0, version), Seen::Foreign);
            }
        }

        #[test]
        fn short_values_tell_the_last_versions_apart(
            seed: u64, record: u64, version in 10..1u64 << 40
        ) {
            let mut value = Vec::new();
            value_of_version(&mut value, seed, record, version, 1);
            prop_assert_eq!(see(&value, seed, record, version + 1, version + 50), Seen::Old);
        }

        #[test]
        fn bytes_that_are_no_version_are_foreign(
            bytes in prop::collection::vec(any::<u8>(), 1..30), at in 0..STAMP
        ) {
            let mut bytes = bytes;
            let at = at % bytes.len();
            bytes[at] |= 0x80;
            prop_assert_eq!(see(&bytes, 1, 2, 3, u64::MAX), Seen::Foreign);
        }
    }

    #[test]
    fn a_byte_of_another_alphabet_is_foreign() {
        assert_eq!(see(b"a-c", 1, 2, 0, 1 << 40), Seen::Foreign);
        assert_eq!(see(b"aaaaaaaaaaaaaaaaaaa-", 1, 2, 0, 1 << 40), Seen::Foreign);
    }
}
