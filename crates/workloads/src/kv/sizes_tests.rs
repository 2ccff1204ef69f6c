use super::*;
use crate::kv::counts::{assert_drawn, moments};
use proptest::prelude::*;

fn sizes(text: &str) -> Sizes {
    text.parse().unwrap()
}

fn drawn(sizes: &Sizes, keys: u64) -> impl Iterator<Item = usize> {
    (0..keys).map(|key| sizes.bytes(5, Key(key)))
}

#[test]
fn a_single_size_applies_to_all_keys() {
    for (text, bytes) in [("1024", 1_024), ("1KiB", 1_024), ("7-7", 7), ("0", 0), ("9:3", 9)] {
        let sizes = sizes(text);
        assert_eq!(sizes, Sizes::all(bytes), "{text}");
        assert_eq!(sizes.fixed(), Some(bytes));
        assert_eq!((sizes.min(), sizes.max()), (bytes, bytes));
        assert!((sizes.mean() - bytes as f64).abs() < 1e-12);
        assert!(drawn(&sizes, 100).all(|b| b == bytes));
    }
}

#[test]
fn all_sizes_of_a_range_are_equally_likely() {
    let sizes = sizes("10-19");
    assert_eq!((sizes.fixed(), sizes.min(), sizes.max()), (None, 10, 19));
    assert!((sizes.mean() - 14.5).abs() < 1e-12);
    let mut counts = vec![0; 10];
    drawn(&sizes, 100_000).for_each(|bytes| counts[bytes - 10] += 1);
    assert_drawn(&counts, &[0.1; 10], "range");
}

#[test]
fn sizes_of_a_list_are_drawn_by_weight() {
    let sizes = sizes("100:3, 1KiB:1, 10-11:4");
    assert_eq!((sizes.fixed(), sizes.min(), sizes.max()), (None, 10, 1_024));
    let mean = (3.0 * 100.0 + 1_024.0 + 4.0 * 10.5) / 8.0;
    assert!((sizes.mean() - mean).abs() < 1e-9);
    let mut counts = vec![0; 4];
    for bytes in drawn(&sizes, 200_000) {
        counts[[100, 1_024, 10, 11].iter().position(|b| *b == bytes).unwrap()] += 1;
    }
    assert_drawn(&counts, &[3.0 / 8.0, 1.0 / 8.0, 0.25, 0.25], "list");
    assert_eq!(sizes.to_string(), "100:3,1024:1,10-11:4");
}

#[test]
fn the_mean_matches_the_drawn_sizes() {
    for (text, within) in [("64-4096", 5.0), ("1:99,1000", 0.5), ("etc", 3.0), ("etc-keys", 0.1)] {
        let sizes = sizes(text);
        let (mean, _) = moments(drawn(&sizes, 1_000_000).map(|bytes| bytes as f64));
        assert!((mean - sizes.mean()).abs() < within, "{text}: {mean}, said {}", sizes.mean());
        assert!(drawn(&sizes, 100_000).all(|b| (sizes.min()..=sizes.max()).contains(&b)));
    }
}

#[test]
fn a_size_is_determined_by_seed_and_key() {
    let sizes = sizes("0-1000000");
    let twice = |seed, key| (sizes.bytes(seed, Key(key)), sizes.clone().bytes(seed, Key(key)));
    assert_eq!(twice(1, 2).0, twice(1, 2).1);
    let differ =
        |a: (u64, u64), b: (u64, u64)| sizes.bytes(a.0, Key(a.1)) != sizes.bytes(b.0, Key(b.1));
    assert!(differ((1, 2), (1, 3)) && differ((1, 2), (2, 2)));
    assert_eq!(sizes.bytes(1, Key(2)), 12_216, "the same in later versions");
}

proptest! {
    #[test]
    fn printed_sizes_can_be_parsed(
        entries in prop::collection::vec(
            (0u64..=VALUE_BYTES_MAX, 0u64..=VALUE_BYTES_MAX, 0.001..1e6f64),
            1..5,
        )
    ) {
        let parts = entries.iter().map(|(a, b, weight)| match a.cmp(b) {
            std::cmp::Ordering::Equal => format!("{a}:{weight}"),
            _ => format!("{}-{}:{weight}", a.min(b), a.max(b)),
        });
        let read = sizes(&parts.collect::<Vec<_>>().join(","));
        prop_assert_eq!(sizes(&read.to_string()), read);
    }
}

#[test]
fn published_distributions_are_parsed_by_name() {
    for name in ["etc", "etc-keys"] {
        let sizes = sizes(name);
        assert_eq!(sizes.to_string(), name);
        assert!(sizes.is_published() && sizes.fixed().is_none());
    }
    assert!(!sizes("1-2").is_published());
}

#[test]
fn invalid_sizes_are_explained() {
    let error = |text: &str| text.parse::<Sizes>().unwrap_err().to_string();
    for (text, part) in [
        ("", ""),
        ("1K", "1K"),
        ("-5", "-5"),
        ("5-", "5-"),
        ("1-2-3", "1-2-3"),
        ("etcetera", "etcetera"),
        ("100:1,x", "x"),
        ("1,,2", ""),
        ("1,etc", "etc"),
    ] {
        assert_eq!(
            error(text),
            format!(
                "`{part}` in `{text}` is not a size, expected BYTES or LEAST-MOST, a list of them \
                 with weights, etc or etc-keys: for example 1KiB, 64-4096 or 100:3,1024:1"
            )
        );
    }
    for (text, weight) in
        [("1:0", "0"), ("1:2,3:-1", "-1"), ("1:", ""), ("1:2:3", "2:3"), ("1:inf", "inf")]
    {
        assert_eq!(
            error(text),
            format!(
                "`{weight}` in `{text}` is not a weight, expected a number above 0: for example \
                 100:3,1024:1"
            )
        );
    }
    assert_eq!(
        error("9-3"),
        "`9-3` in `9-3` is not a range, expected the smaller size first: for example 64-4096"
    );
    for text in ["512MiB", "536870912"] {
        assert_eq!(sizes(text).max(), 536_870_912);
    }
    for part in ["513MiB", "1-99999999999999999999"] {
        let error = error(&format!("1,{part}"));
        assert_eq!(error, format!("`{part}` in `1,{part}` is too large, expected at most 512MiB"));
    }
}
