use super::*;
use crate::kv::KEYS_MAX;
use proptest::prelude::*;
use std::collections::HashSet;

fn name(names: &KeyNames, key: u64) -> String {
    let mut out = b"<".to_vec();
    names.append(&mut out, Key(key));
    assert_eq!(out.len(), 1 + names.bytes(Key(key)), "{key}");
    String::from_utf8(out).unwrap().split_off(1)
}

proptest! {
    #[test]
    fn digits_match_the_number(number: u64, room in 0usize..30) {
        let mut digits = vec![b'0'; room];
        write_over_zeros(&mut digits, number);
        let whole = format!("{number:030}");
        prop_assert_eq!(String::from_utf8(digits).unwrap(), &whole[30 - room..]);
    }

    #[test]
    fn a_name_is_its_prefix_and_number(prefix in "[a-z:{}]{0,9}", key in 0..KEYS_MAX) {
        let names = KeyNames::new(&prefix).unwrap();
        prop_assert_eq!(name(&names, key), format!("{prefix}{key:012}"));
        prop_assert_eq!(names.fixed_bytes(), Some(prefix.len() + 12));
        let mut first = name(&names, 0).into_bytes();
        names.write_over_first(&mut first, Key(key));
        prop_assert_eq!(String::from_utf8(first).unwrap(), format!("{prefix}{key:012}"));
    }
}

#[test]
fn default_names_are_those_of_redis_benchmark() {
    assert_eq!(name(&KeyNames::default(), 42), "key:000000000042");
}

#[test]
fn names_have_the_requested_digits() {
    let names = KeyNames::with_digits("s_", 3, 1_000).unwrap();
    assert_eq!([name(&names, 0), name(&names, 999)], ["s_000", "s_999"]);
    let long = KeyNames::with_digits("", 25, 1_000).unwrap();
    assert_eq!(name(&long, 12), "0000000000000000000000012");
    let one = KeyNames::with_digits("k", 1, 0).unwrap();
    assert_eq!(name(&one, 0), "k0");
}

#[test]
fn lengths_vary_by_key_and_names_are_distinct() {
    let sizes: Sizes = "20-29".parse().unwrap();
    let names = KeyNames::sized("k:", sizes, 7, 100_000).unwrap();
    assert_eq!(names.fixed_bytes(), None);
    let mut lengths = [0u32; 30];
    let mut seen = HashSet::new();
    for key in 0..100_000 {
        let name = name(&names, key);
        lengths[name.len()] += 1;
        let number = name.strip_prefix("k:").unwrap();
        assert_eq!(number.parse(), Ok(key));
        assert!(seen.insert(name), "{key}");
    }
    assert!(lengths[..20].iter().all(|n| *n == 0));
    assert!(lengths[20..].iter().all(|n| n.abs_diff(10_000) < 500), "{lengths:?}");
}

#[test]
fn lengths_of_names_are_unrelated_to_those_of_values() {
    let sizes: Sizes = "20-29".parse().unwrap();
    let names = KeyNames::sized("k:", sizes.clone(), 7, 1_000).unwrap();
    let alike = (0..1_000).filter(|k| names.bytes(Key(*k)) == sizes.bytes(7, Key(*k))).count();
    assert!((50..150).contains(&alike), "{alike}");
}

#[test]
fn published_lengths_are_raised_to_fit_the_number() {
    let names = KeyNames::sized("key:", "etc-keys".parse().unwrap(), 1, 1_000_000_000).unwrap();
    let lengths: Vec<usize> = (0..50_000).map(|k| names.bytes(Key(k))).collect();
    assert_eq!(lengths.iter().min(), Some(&13));
    // Of ETC's keys, 0.0002 are shorter than 13.5 bytes and half are shorter than 33.9.
    assert!(lengths.iter().filter(|l| **l == 13).count() < 40);
    let short = lengths.iter().filter(|l| **l <= 33).count();
    assert!(short.abs_diff(24_000) < 1_500, "{short}");
    assert_eq!(name(&names, 5), format!("key:{:0w$}", 5, w = lengths[5] - 4));
}

#[test]
fn fixed_lengths_are_not_drawn() {
    let names = KeyNames::sized("k", Sizes::all(9), 1, 100_000_000).unwrap();
    assert_eq!(names.fixed_bytes(), Some(9));
    assert_eq!(name(&names, 99_999_999), "k99999999");
}

#[test]
fn names_that_would_be_too_short_are_refused() {
    let error = KeyNames::with_digits("key:", 3, 1_001).unwrap_err().to_string();
    assert_eq!(error, "`3` digits are too few for 1001 keys, expected at least 4");
    let sizes: Sizes = "5-20:3,100".parse().unwrap();
    let error = KeyNames::sized("key:", sizes, 1, 1_001).unwrap_err().to_string();
    assert_eq!(
        error,
        "names of `5-20:3,100:1` bytes are too short for 1001 keys, expected at least 8: the \
         prefix has 4 and the largest number 4"
    );
    assert!(KeyNames::sized("key:", "8-20".parse().unwrap(), 1, 1_001).is_ok());
}

#[test]
fn a_prefix_with_white_space_is_refused() {
    for (prefix, shown) in [("a b", "a b"), ("a\r\nflush_all\r\n", "a\\r\\nflush_all\\r\\n")] {
        assert_eq!(
            KeyNames::new(prefix).unwrap_err().to_string(),
            format!(
                "`{shown}` is not a key prefix, expected one without white space and control \
                 characters"
            )
        );
        assert!(KeyNames::with_digits(prefix, 12, 1).is_err());
        assert!(KeyNames::sized(prefix, Sizes::all(90), 1, 1).is_err());
    }
}
