use super::*;
use crate::app_cache::memory::workload;
use proptest::prelude::*;

/// The original's defaults.
fn original(keys: u64) -> AppCache {
    AppCache { keys, tags: 2000, record_bytes: (1, 1024), ..workload(&[&[]]) }
}

fn tags_of(data: &DataSet, record: u64) -> Vec<u64> {
    let mut tags = Vec::new();
    data.tags_of_into(&mut tags, record);
    tags
}

#[test]
fn key_and_tag_names_match_the_original() {
    let data = DataSet::drawn(&original(10_000), 1);
    let key = |record| {
        let mut key = String::new();
        data.key_into(&mut key, record);
        key
    };
    assert_eq!(key(0), "cfcd208495d565ef66e7dff9f98764da");
    assert_eq!(key(9999), "fa246d0262c3925617b0c72bb20eeb1d");
    for (tags, tag, expected) in [
        (2000, 0, "TAG_0001"),
        (2000, 1999, "TAG_2000"),
        (9, 8, "TAG_9"),
        (10, 0, "TAG_01"),
        (99, 9, "TAG_10"),
        (1, 0, "TAG_1"),
    ] {
        let mut name = String::new();
        DataSet::drawn(&AppCache { tags, ..original(1) }, 1).tag_into(&mut name, tag);
        assert_eq!(name, expected);
    }
}

#[test]
fn distributions_match_the_original() {
    let data = DataSet::drawn(&original(10_000), 5);
    let mut by_count = [0u64; 16];
    let (mut bytes, mut own, mut lifetimes) = (0, 0u64, 0);
    for record in 0..10_000 {
        by_count[tags_of(&data, record).len()] += 1;
        bytes += data.bytes(record);
        own += u64::from(data.expires_s(record).is_some());
        lifetimes += data.expires_s(record).unwrap_or(0);
        assert!((1..=1024).contains(&data.bytes(record)));
        assert!(data.expires_s(record).is_none_or(|s| (10..=14_400).contains(&s)));
    }
    // Four standard deviations each. No tags: 2/16; 1/16 each for 2 to 15 tags.
    assert!(by_count[0].abs_diff(1250) < 132 && by_count[1] == 0, "{by_count:?}");
    assert!(by_count[2..].iter().all(|n| n.abs_diff(625) < 97), "{by_count:?}");
    let tags: u64 = by_count.iter().zip(0..).map(|(n, count)| n * count).sum();
    assert!((tags as f64 / 10_000.0 - 7.4375).abs() < 0.19, "{tags}");
    assert!((tags as f64 / 2000.0 - 37.19).abs() < 0.95, "{tags}");
    assert!((bytes as f64 / 10_000.0 - 512.5).abs() < 12.0, "{bytes}");
    assert!((own as f64 - 1666.7).abs() < 150.0, "{own}");
    assert!((lifetimes as f64 / own as f64 - 7205.0).abs() < 410.0, "{lifetimes}");
}

#[test]
fn every_tag_is_equally_frequent() {
    let data = DataSet::drawn(&AppCache { tags: 50, ..original(20_000) }, 3);
    let mut carried = vec![0u64; 50];
    for record in 0..20_000 {
        for tag in tags_of(&data, record) {
            carried[tag as usize] += 1;
        }
    }
    let mean = carried.iter().sum::<u64>() as f64 / 50.0;
    assert!(carried.iter().all(|n| (*n as f64 - mean).abs() < 4.0 * mean.sqrt()), "{carried:?}");
}

#[test]
fn quirks_apply_only_to_the_originals_data_set() {
    let plan = AppCache { as_original: false, ..original(2000) };
    let data = DataSet::drawn(&plan, 5);
    assert!((0..2000).all(|record| data.expires_s(record).is_none()));
    let with_one = (0..2000).filter(|record| tags_of(&data, *record).len() == 1).count();
    assert!((80..170).contains(&with_one), "{with_one}");
    let few = AppCache { tags: 3, tags_of_record: (5, 5), ..plan.clone() };
    assert_eq!(tags_of(&DataSet::drawn(&few, 1), 0), [0, 1, 2]);
    // The original's PHP cannot pick five tags out of three.
    let few = AppCache { as_original: true, ..few };
    assert!(tags_of(&DataSet::drawn(&few, 1), 0).is_empty());
    let data = DataSet::drawn(&AppCache { keys: 4, ..plan }, 5);
    let mut chosen = [0u64; 4];
    (0..40_000).for_each(|n| chosen[data.choose(mix(&[n]), Choice::Popularity) as usize] += 1);
    assert!(chosen.iter().all(|n| n.abs_diff(10_000) < 400), "{chosen:?}");
}

#[test]
fn records_are_chosen_by_weight() {
    let data = DataSet::drawn(&original(50), 7);
    for choice in [Choice::Popularity, Choice::Volatility] {
        let weights: Vec<u64> = (0..50).map(|record| data.weight(record, choice)).collect();
        assert!(weights.iter().all(|w| (1..=100).contains(w)));
        let all: u64 = weights.iter().sum();
        let mut chosen = vec![0u64; 50];
        let draws = 200_000u64;
        (0..draws).for_each(|n| chosen[data.choose(mix(&[n]), choice) as usize] += 1);
        for (count, weight) in chosen.iter().zip(&weights) {
            let expected = (draws * weight) as f64 / all as f64;
            assert!((*count as f64 - expected).abs() < 4.5 * expected.sqrt() + 1.0, "{chosen:?}");
        }
    }
    let weights = |choice| (0..50).map(|record| data.weight(record, choice)).collect::<Vec<_>>();
    assert_ne!(weights(Choice::Popularity), weights(Choice::Volatility));
}

proptest! {
    #[test]
    fn tags_are_distinct_ascending_and_known(
        seed: u64, record: u64, tags in 1..60u64, least in 0..20u64, more in 0..40u64,
        as_original: bool
    ) {
        let plan = AppCache { tags, tags_of_record: (least, least + more), as_original,
            ..original(1) };
        let data = DataSet::drawn(&plan, seed);
        let chosen = tags_of(&data, record);
        prop_assert!(chosen.is_sorted_by(|a, b| a < b));
        prop_assert!(chosen.iter().all(|tag| *tag < tags));
        prop_assert!(chosen.len() as u64 <= least + more);
        prop_assert!(as_original || chosen.len() as u64 >= least.min(tags));
        prop_assert_eq!(&tags_of(&data, record), &chosen);
    }

    #[test]
    fn a_value_has_the_records_length(seed: u64, record in 0..1000u64, version in 0..1u64 << 50) {
        let data = DataSet::drawn(&original(1000), seed);
        let mut value = Vec::new();
        data.value_into(&mut value, record, version);
        prop_assert_eq!(value.len(), data.bytes(record));
    }
}
