//! Values that contain the version of their record.
//!
//! A version is the tick of the clients' shared clock at which its write started, so no two writes
//! have the same version. Content of a value by its length:
//!
//! - 11 bytes and more: the version in base 62, then characters drawn from (seed, record, version),
//!   as in [`crate::values`]. Version and content can be checked to the last byte.
//! - 1 to 10 bytes: the last digits of (version + offset of the record) in base 62. They give the
//!   version modulo 62 to the power of the length, which identifies it from five bytes on. A
//!   shorter value of another record, or an old one, may pass for a correct one: one in 62 does
//!   with one byte, one in 3,844 with two.
//! - 0 bytes: nothing.
//!
//! The length is always checked.

use crate::values::{ALPHABET, STAMP, digit_of, mix, value_into, version_of};

/// Version of a value, in relation to the versions that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueVersion {
    /// This version, or one with the same digits; it is allowed.
    Fresh(u64),
    /// A version that should be gone.
    Old,
    /// No version that was ever written.
    Foreign,
}

/// Replaces `out` with the value of a version, `bytes` long.
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

/// Judges a value by its version, which should be at least `floor` and must be less than `below`.
pub(crate) fn judge_version(
    value: &[u8],
    seed: u64,
    record: u64,
    floor: u64,
    below: u64,
) -> ValueVersion {
    if value.len() >= STAMP {
        return match version_of(value) {
            Some(version) if version >= below => ValueVersion::Foreign,
            Some(version) if version < floor => ValueVersion::Old,
            Some(version) => ValueVersion::Fresh(version),
            None => ValueVersion::Foreign,
        };
    }
    let versions = short_versions(value.len());
    let digits =
        value.iter().try_fold(0u64, |all, character| Some(all * 62 + digit_of(*character)?));
    let Some(digits) = digits else { return ValueVersion::Foreign };
    let version = (digits + versions - short_offset(seed, record, versions)) % versions;
    // The first version from the floor on with these digits.
    let first = floor + (version + versions - floor % versions) % versions;
    if first < below {
        ValueVersion::Fresh(first)
    } else if version < floor {
        ValueVersion::Old
    } else {
        ValueVersion::Foreign
    }
}

/// Number of versions that a value of fewer than [`STAMP`] bytes can distinguish.
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
        fn a_value_contains_its_version(
            seed: u64, record: u64, version in 0..1u64 << 40, bytes in 0..40usize
        ) {
            let mut value = Vec::new();
            value_of_version(&mut value, seed, record, version, bytes);
            prop_assert_eq!(value.len(), bytes);
            prop_assert!(value.iter().all(u8::is_ascii_alphanumeric));
            let judge_version = |floor, below| judge_version(&value, seed, record, floor, below);
            prop_assert_eq!(judge_version(version, version + 1), ValueVersion::Fresh(version));
            prop_assert!(matches!(judge_version(0, version + 1), ValueVersion::Fresh(_)));
            if bytes >= 7 {
                prop_assert_eq!(judge_version(version + 1, version + 2), ValueVersion::Old);
                prop_assert_eq!(judge_version(0, version), ValueVersion::Foreign);
            }
        }

        #[test]
        fn short_values_distinguish_recent_versions(
            seed: u64, record: u64, version in 10..1u64 << 40
        ) {
            let mut value = Vec::new();
            value_of_version(&mut value, seed, record, version, 1);
            let judged = judge_version(&value, seed, record, version + 1, version + 50);
            prop_assert_eq!(judged, ValueVersion::Old);
        }

        #[test]
        fn bytes_without_a_version_are_foreign(
            bytes in prop::collection::vec(any::<u8>(), 1..30), at in 0..STAMP
        ) {
            let mut bytes = bytes;
            let at = at % bytes.len();
            bytes[at] |= 0x80;
            prop_assert_eq!(judge_version(&bytes, 1, 2, 3, u64::MAX), ValueVersion::Foreign);
        }
    }

    #[test]
    fn a_byte_outside_the_alphabet_is_foreign() {
        assert_eq!(judge_version(b"a-c", 1, 2, 0, 1 << 40), ValueVersion::Foreign);
        assert_eq!(judge_version(b"aaaaaaaaaaaaaaaaaaa-", 1, 2, 0, 1 << 40), ValueVersion::Foreign);
    }
}
