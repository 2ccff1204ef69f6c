use super::*;
use crate::kv::values_of;

const SEED: u64 = 7;

/// Judgement of a key's value if it has that version.
fn held(written: &Written, key: u64, version: u64) -> Option<StoredVersion> {
    let (sizes, values) = values_of("40", SEED).unwrap();
    let mut value = Vec::new();
    values.append(&mut value, key, version, 40);
    written.held(Key(key), Some(&value), (&values, &sizes, SEED))
}

fn keys(written: &Written) -> Vec<u64> {
    written.keys().map(|key| key.0).collect()
}

#[test]
fn a_write_sent_after_another_was_acknowledged_replaces_it() {
    let mut written = Written::default();
    written.acknowledged(Key(5), 1, 10, 20);
    written.acknowledged(Key(5), 2, 21, 30);
    assert_eq!(held(&written, 5, 2), Some(StoredVersion::Last));
    assert_eq!(held(&written, 5, 1), Some(StoredVersion::Older));
    assert_eq!(keys(&written), [5]);
}

#[test]
fn any_of_several_overlapping_writes_may_be_the_last() {
    let mut written = Written::default();
    // In the order of their replies.
    written.acknowledged(Key(5), 1, 10, 20);
    written.acknowledged(Key(5), 2, 15, 25);
    written.acknowledged(Key(5), 3, 12, 30);
    for version in [1, 2, 3] {
        assert_eq!(held(&written, 5, version), Some(StoredVersion::Last), "{version}");
    }
    written.acknowledged(Key(5), 4, 26, 40);
    let after = [1, 2, 3, 4].map(|version| held(&written, 5, version).unwrap());
    assert_eq!(
        after,
        [StoredVersion::Older, StoredVersion::Older, StoredVersion::Last, StoredVersion::Last]
    );
}

#[test]
fn threads_and_loads_are_merged_by_time() {
    let (mut one, mut other) = (Written::default(), Written::default());
    one.acknowledged(Key(5), 1, 10, 20);
    one.acknowledged(Key(6), 3, 10, 20);
    other.acknowledged(Key(5), 2, 50, 60);
    for (mut first, second) in [(one.clone(), &other), (other.clone(), &one)] {
        first.merge(second.clone());
        assert_eq!(held(&first, 5, 1), Some(StoredVersion::Older));
        assert_eq!(held(&first, 5, 2), Some(StoredVersion::Last));
    }
    // The other load's clock started later.
    let mut later = Written::default();
    later.acknowledged(Key(5), 9, 1, 2);
    later.count_from_earlier(100);
    assert_eq!(later.sent_ns(Key(5)), Some(101));
    one.followed_by(later);
    assert_eq!(held(&one, 5, 1), Some(StoredVersion::Older));
    assert_eq!(held(&one, 5, 9), Some(StoredVersion::Last));
    assert_eq!(held(&one, 6, 3), Some(StoredVersion::Last));
}

/// A load with `writes` writes to keys that are `spacing` apart.
fn load(writes: u64, spacing: u64, version: u64, at_ns: u64) -> Written {
    let mut written = Written::default();
    (0..writes).for_each(|n| written.acknowledged(Key(n * spacing), version, at_ns, at_ns + 1));
    written
}

/// A fill writes every key, then a load at a low rate writes few of them; the latter decide.
#[test]
fn all_writes_of_a_small_load_are_sampled() {
    let mut written = load(100_000, 1, 1, 10);
    let few = load(1_000, 7, 2, 20);
    written.followed_by(few.clone());
    let all = keys(&written);
    assert!(keys(&few).iter().all(|key| all.contains(key)));
    assert!(all.len() > keys(&few).len() && all.len() <= 2 * SAMPLED_MAX, "{}", all.len());
    assert!(keys(&few).iter().all(|key| held(&written, *key, 1) == Some(StoredVersion::Older)));
    // Nothing is known of keys that the load may have overwritten but that are not in its sample.
    let mut written = load(1_000, 1, 1, 10);
    let many = load(100_000, 1, 2, 20);
    written.followed_by(many.clone());
    assert!(keys(&written) == keys(&many), "{}", keys(&written).len());
    // Steps of a fill, each with all of its keys in the sample.
    let mut written = Written::default();
    for step in 0..100 {
        let mut keys = Written::default();
        (0..500).for_each(|n| keys.acknowledged(Key(step * 500 + n), 1, step, step + 1));
        written.followed_by(keys);
    }
    assert!(keys(&written).len() <= 2 * SAMPLED_MAX, "{}", keys(&written).len());
}

#[test]
fn merging_keeps_the_keys_in_both_samples() {
    let (many, few) = (load(50_000, 1, 1, 10), load(100, 1, 2, 20));
    for (mut first, second) in [(many.clone(), &few), (few.clone(), &many)] {
        first.merge(second.clone());
        assert!(keys(&first) == keys(&many), "{}", keys(&first).len());
        assert_eq!(held(&first, 0, 2), Some(StoredVersion::Last));
        assert_eq!(held(&first, 0, 1), Some(StoredVersion::Older));
    }
}

#[test]
fn a_lifetime_starts_with_the_earliest_candidate_for_the_last_write() {
    let mut written = Written::default();
    written.acknowledged(Key(5), 1, 10, 20);
    written.acknowledged(Key(5), 2, 15, 25);
    assert_eq!(written.sent_ns(Key(5)), Some(10));
    written.acknowledged(Key(5), 3, 22, 40);
    assert_eq!(written.sent_ns(Key(5)), Some(15));
    assert_eq!(written.sent_ns(Key(6)), None);
}

#[test]
fn a_failed_write_may_be_found_or_not() {
    let mut written = Written::default();
    written.acknowledged(Key(5), 1, 10, 20);
    written.failed(Key(5), 2);
    assert_eq!(held(&written, 5, 1), Some(StoredVersion::Last));
    assert_eq!(held(&written, 5, 2), Some(StoredVersion::Last));
    written.failed(Key(6), 2);
    assert_eq!(keys(&written), [5], "a key with only failed writes is not judged");
    for version in 0..=CANDIDATES_MAX as u64 {
        written.failed(Key(5), version);
    }
    assert!(keys(&written).is_empty());
    assert_eq!(written.given_up(), 1);
}

#[test]
fn unknown_values_are_wrong_and_absent_ones_are_missing() {
    let (sizes, values) = values_of("40", SEED).unwrap();
    let mut written = Written::default();
    written.acknowledged(Key(5), 1, 10, 20);
    let data = (&values, &sizes, SEED);
    let mut of_another = Vec::new();
    values.append(&mut of_another, 6, 1, 40);
    assert_eq!(written.held(Key(5), Some(&of_another), data), Some(StoredVersion::Wrong));
    assert_eq!(written.held(Key(5), Some(b"short"), data), Some(StoredVersion::Wrong));
    assert_eq!(written.held(Key(5), None, data), Some(StoredVersion::Missing));
    assert_eq!(written.held(Key(9), None, data), None);
}

#[test]
fn about_a_thousand_of_any_number_of_keys_are_sampled() {
    for all in [1, 1_000, 1_024, 3_000, 100_000] {
        let sampled = keys(&load(all, 1, 1, 10)).len() as u64;
        assert!(sampled <= 2 * SAMPLED_MIN, "{sampled} of {all}");
        assert!(sampled >= all.min(SAMPLED_MIN), "{sampled} of {all}");
    }
}
