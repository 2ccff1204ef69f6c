use super::*;
use crate::kv::counts::assert_drawn;
use crate::values::version_of;
use proptest::prelude::*;
use std::sync::LazyLock;

static VALUES: LazyLock<Values> = LazyLock::new(|| Values::new(7));

fn value(key: u64, version: u64, bytes: usize) -> Vec<u8> {
    let mut out = b"before".to_vec();
    VALUES.append(&mut out, key, version, bytes);
    assert_eq!(out[..6], *b"before");
    assert_eq!(out.len(), 6 + bytes);
    out.split_off(6)
}

/// Result of checking `body` in pieces of the given lengths, repeated as needed.
fn checked(key: u64, bytes: usize, body: &[u8], pieces: &[usize]) -> (bool, ValueCheck) {
    let (mut check, mut left) = (ValueCheck::new(key, bytes), body);
    let mut right = VALUES.check(&mut check, &[]);
    for piece in pieces.iter().cycle() {
        if left.is_empty() {
            break;
        }
        let (now, later) = left.split_at((*piece).min(left.len()));
        let so_far = VALUES.check(&mut check, now);
        assert!(right || !so_far, "once wrong, always wrong");
        (right, left) = (so_far, later);
    }
    (right, check)
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![0usize..40, 0usize..3_000, POOL - 20..POOL + 40]
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        prop::collection::vec(1usize..20, 1..5),
        prop::collection::vec(0usize..2_000, 1..5).prop_map(|mut p| {
            p.push(1_000);
            p
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_value_is_verified_in_any_pieces(
        key: u64, version: u64, bytes in lengths(), pieces in pieces(),
    ) {
        let body = value(key, version, bytes);
        let (right, check) = checked(key, bytes, &body, &pieces);
        prop_assert!(right);
        prop_assert_eq!(check.version(), (bytes >= STAMP).then_some(version));
        prop_assert_eq!(version_of(&body).filter(|_| bytes >= STAMP), check.version());
    }

    #[test]
    fn a_changed_byte_is_detected(
        key: u64, version: u64, bytes in 27usize..3_000, at: prop::sample::Index, to: u8,
        pieces in pieces(),
    ) {
        let mut body = value(key, version, bytes);
        let at = at.index(bytes);
        prop_assume!(body[at] != to);
        body[at] = to;
        let (right, check) = checked(key, bytes, &body, &pieces);
        prop_assert!(!right);
        prop_assert_eq!(check.version(), None);
    }

    #[test]
    fn a_changed_byte_of_a_short_value_is_detected(
        key: u64, bytes in 1usize..STAMP, at: prop::sample::Index, to: u8,
    ) {
        let mut body = value(key, 1, bytes);
        let at = at.index(bytes);
        prop_assume!(body[at] != to);
        body[at] = to;
        prop_assert!(!checked(key, bytes, &body, &[3]).0);
    }

    #[test]
    fn the_value_of_another_key_or_length_is_detected(
        keys in prop::array::uniform2(0u64..1_000_000),
        bytes in prop::array::uniform2(27usize..2_000), version: u64, pieces in pieces(),
    ) {
        let body = value(keys[0], version, bytes[0]);
        if keys[0] != keys[1] {
            prop_assert!(!checked(keys[1], bytes[0], &body, &pieces).0);
        }
        if bytes[0] != bytes[1] {
            prop_assert!(!checked(keys[0], bytes[1], &body, &pieces).0);
        }
    }
}

#[test]
fn excess_bytes_are_detected() {
    for bytes in [0, 5, 11, 100] {
        let mut body = value(1, 2, bytes);
        assert!(checked(1, bytes, &body, &[7]).0);
        // The following bytes of the pool, so only the length is wrong.
        let (head, version) = if bytes < STAMP { (0, 0) } else { (STAMP, 2) };
        let end = VALUES.offset(1, version, bytes) + bytes - head;
        body.push(VALUES.pool[end % POOL]);
        assert!(!checked(1, bytes, &body, &[7]).0, "{bytes}");
        assert!(!checked(1, bytes, &body, &[bytes.max(1)]).0, "{bytes}");
        assert!(!checked(1, bytes, &body, &[200]).0, "{bytes}");
    }
}

#[test]
fn values_around_the_stamp_and_pool_lengths_match_the_definition() {
    for bytes in (0..64).chain([POOL, POOL + STAMP, POOL + STAMP + 1, 3 * POOL + 5]) {
        for key in 0..4 {
            let version = 1_000 + key;
            let (head, of) = if bytes < STAMP { (0, 0) } else { (STAMP, version) };
            let from = VALUES.offset(key, of, bytes);
            let rest = (0..bytes - head).map(|i| VALUES.pool[(from + i) % POOL]);
            let body = value(key, version, bytes);
            assert!(body[head..].iter().copied().eq(rest), "{bytes}");
            assert!(checked(key, bytes, &body, &[4_096]).0, "{bytes}");
        }
    }
}

#[test]
fn short_values_do_not_depend_on_the_version() {
    assert_eq!(value(5, 1, 10), value(5, 2, 10));
    assert_ne!(value(5, 1, 30)[STAMP..], value(5, 2, 30)[STAMP..]);
    assert_eq!(checked(5, 10, &value(5, 1, 10), &[10]).1.version(), None);
}

#[test]
fn the_version_is_unknown_until_the_stamp_is_complete() {
    let body = value(9, 12_345, 100);
    let mut check = ValueCheck::new(9, 100);
    assert!(VALUES.check(&mut check, &body[..10]));
    assert_eq!(check.version(), None);
    assert!(VALUES.check(&mut check, &body[10..11]));
    assert_eq!(check.version(), Some(12_345));
}

#[test]
fn stamps_encode_exactly_the_64_bit_versions() {
    for version in [0, 1, 61, 62, 62u64.pow(6) - 1, 62u64.pow(6), u64::MAX - 1, u64::MAX] {
        assert_eq!(version_of(&stamp(version)), Some(version));
        assert_eq!(checked(3, 11, &stamp(version), &[11]).1.version(), Some(version));
    }
    assert_eq!(stamp(62 * 62 + 35), *b"0000000010z");
    // The first one exceeds 64 bits.
    for wrong in [b"ZZZZZZZZZZZ", b"0000000000-", b"\0\0\0\0\0\0\0\0\0\0\0"] {
        assert!(!checked(3, 11, wrong, &[11]).0, "{wrong:?}");
    }
}

#[test]
fn offsets_are_spread_over_the_pool() {
    let mut counts = [0; 64];
    for key in 0..40_000 {
        for version in 0..5 {
            counts[VALUES.offset(key, version, 100) * 64 / POOL] += 1;
        }
    }
    assert_drawn(&counts, &[1.0 / 64.0; 64], "offsets");
    let lengths = (20..50_000).map(|bytes| VALUES.offset(1, 1, bytes));
    let mut different: Vec<usize> = lengths.collect();
    different.sort_unstable();
    different.dedup();
    // 49,980 draws from 2¹⁷ are expected to give this many offsets, with a standard deviation of
    // 71.
    assert!(different.len().abs_diff(41_555) < 350, "{}", different.len());
}

#[test]
fn the_pool_is_evenly_distributed_over_the_alphabet() {
    assert_eq!(VALUES.pool.len(), POOL);
    let mut counts = vec![0; 62];
    for character in VALUES.pool.iter() {
        counts[ALPHABET.iter().position(|c| c == character).unwrap()] += 1;
    }
    assert_drawn(&counts, &[1.0 / 62.0; 62], "characters");
}

#[test]
fn a_value_is_determined_by_the_seed() {
    let body = |seed| {
        let mut out = Vec::new();
        Values::new(seed).append(&mut out, 42, 7, 32);
        String::from_utf8(out).unwrap()
    };
    // A store filled by one run may be read by another, even by a later version of the program.
    assert_eq!(body(1), "00000000007VzLxEaexmefBnBBOORq7B");
    assert_ne!(body(1)[STAMP..], body(2)[STAMP..]);
}

#[test]
fn a_check_is_small_and_values_have_short_debug_output() {
    assert!(size_of::<ValueCheck>() <= 48);
    assert!(format!("{:?}", *VALUES).len() < 80);
}
