use super::*;
use crate::kv::counts::{assert_drawn, moments};
use crate::kv::numbers;
use proptest::prelude::*;

fn choice(text: &str, keys: u64) -> KeyChoice {
    KeyChoice::new(text.parse().unwrap(), keys).unwrap()
}

/// Keys of operations 0 to `draws` − 1, each from separate random numbers, as in an engine.
fn picks(choice: &KeyChoice, draws: u64) -> impl Iterator<Item = u64> {
    (0..draws).map(|n| choice.pick(&mut numbers(11, 0, n), n).0)
}

fn counts(choice: &KeyChoice, draws: u64) -> Vec<u64> {
    let mut counts = vec![0; choice.keys() as usize];
    picks(choice, draws).for_each(|key| counts[key as usize] += 1);
    counts
}

fn zipf(count: usize, exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=count).map(|k| (k as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|w| w / sum).collect()
}

#[test]
fn uniform_keys_are_equally_frequent() {
    assert_drawn(&counts(&choice("uniform", 100), 200_000), &[0.01; 100], "uniform");
}

#[test]
fn sequential_keys_are_consecutive() {
    let keys: Vec<u64> = picks(&choice("sequential", 3), 7).collect();
    assert_eq!(keys, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn zipf_keys_follow_zipfs_law_in_order_or_scattered() {
    let law = zipf(200, 0.99);
    let ordered = counts(&choice("zipf:0.99:ordered", 200), 300_000);
    assert_drawn(&ordered, &law, "ordered");
    let mut scattered = counts(&choice("zipf:0.99", 200), 300_000);
    let hottest = (0..200).max_by_key(|key| scattered[*key]).unwrap();
    assert_ne!(hottest, 0);
    let places = Permutation::new(200);
    let by_rank: Vec<u64> = (0..200).map(|rank| scattered[places.place(rank) as usize]).collect();
    assert_eq!(by_rank, ordered, "the same draws, but scattered");
    scattered.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
    assert!(scattered[0].abs_diff((law[0] * 3e5) as u64) < 1_500);
}

#[test]
fn hot_keys_get_their_share() {
    for (text, hot, share) in
        [("hot:0.1:0.9:ordered", 10_u8, 0.9), ("hot:0.25:0.25:ordered", 25, 0.25)]
    {
        let counts = counts(&choice(text, 100), 200_000);
        let law: Vec<f64> = (0..100)
            .map(|k| {
                if k < hot { share / f64::from(hot) } else { (1.0 - share) / f64::from(100 - hot) }
            })
            .collect();
        assert_drawn(&counts, &law, text);
    }
    let scattered = counts(&choice("hot:0.1:0.9", 100), 200_000);
    let hot: Vec<usize> = (0..100).filter(|key| scattered[*key] > 9_000).collect();
    assert_eq!(hot.len(), 10);
    assert!(hot[9] - hot[0] > 30, "{hot:?}");
    for (text, only) in [("hot:0:1:ordered", 1), ("hot:1:0:ordered", 100)] {
        let used = counts(&choice(text, 100), 10_000).iter().filter(|n| **n > 0).count();
        assert_eq!(used, only, "{text}");
    }
}

#[test]
fn a_bell_has_its_mean_and_deviation() {
    for (text, mean, deviation) in [
        ("gauss:0.5:0.1", 4_999.5, 1_000.0),
        ("gauss:3000:500", 3_000.0, 500.0),
        ("gauss", 4_999.5, 1_644.0),
        // Half of a bell curve: its mean is deviation · √(2/π), its deviation is deviation · √(1 −
        // 2/π).
        ("gauss:0:0.1", 798.0, 602.8),
        ("gauss:1:0.1", 9_201.0, 602.8),
    ] {
        let (m, d) = moments(picks(&choice(text, 10_000), 200_000).map(|key| key as f64));
        assert!((m - mean).abs() < 0.02 * deviation, "{text}: mean {m}, expected {mean}");
        assert!((d / deviation - 1.0).abs() < 0.01, "{text}: deviation {d}, expected {deviation}");
    }
    // Truncated at three deviations, both ends are within the keys.
    let keys: Vec<u64> = picks(&choice("gauss:0.5:0.16666666666666666", 1_000), 100_000).collect();
    assert!(keys.iter().all(|key| *key < 1_000));
    assert!(*keys.iter().min().unwrap() < 30 && *keys.iter().max().unwrap() > 970);
    // As narrow as possible, at the very ends.
    for (text, key) in [("gauss:1:1e-300", 9), ("gauss:0:1e-300", 0)] {
        assert!(picks(&choice(text, 10), 100).all(|k| k == key), "{text}");
    }
}

/// Share of a standard normal distribution from `a` to `b`, by the midpoint rule.
fn normal(a: f64, b: f64) -> f64 {
    let width = (b - a) / 1_000.0;
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    (0..1_000).map(|i| density(a + (f64::from(i) + 0.5) * width) * width).sum()
}

#[test]
fn a_bell_gives_each_key_the_area_around_it() {
    for (text, mean, deviation) in [("gauss:0.5:0.2", 4.5, 2.0), ("gauss:7:0.5", 7.0, 5.0)] {
        let part = |key: u8| {
            let from = f64::from(key) - 0.5 - mean;
            normal(from / deviation, (from + 1.0) / deviation)
        };
        let all: f64 = (0..10).map(part).sum();
        let law: Vec<f64> = (0..10).map(|key| part(key) / all).collect();
        assert_drawn(&counts(&choice(text, 10), 200_000), &law, text);
    }
}

#[test]
fn latest_makes_the_newest_keys_the_hottest() {
    let latest = choice("latest:0.99", 200);
    let mut by_age = vec![0; 200];
    for n in 0..200_000 {
        let newest = 199 + n / 20;
        let key = latest.pick_with_newest(&mut numbers(2, 0, n), n, Key(newest));
        by_age[(newest - key.0) as usize] += 1;
    }
    assert_drawn(&by_age, &zipf(200, 0.99), "latest");
    assert_eq!(counts(&latest, 10_000).iter().max(), counts(&latest, 10_000).last());
}

#[test]
fn the_newest_key_matters_only_to_latest() {
    for text in ["uniform", "zipf", "ycsb-zipfian", "gauss", "hot", "sequential"] {
        let choice = choice(text, 1_000);
        for n in 0..100 {
            let random = || numbers(5, 0, n);
            let other = choice.pick_with_newest(&mut random(), n, Key(5_000));
            assert_eq!(choice.pick(&mut random(), n), other, "{text}");
        }
    }
}

proptest! {
    #[test]
    fn all_chosen_keys_exist(
        keys in prop_oneof![1u64..20, 1..=KEYS_MAX],
        n: u64,
        text in prop::sample::select(vec![
            "uniform", "zipf", "zipf:0", "zipf:1:ordered", "zipf:2.5", "gauss", "gauss:1:1",
            "sequential", "hot", "hot:1:1", "hot:0:0", "latest", "latest:1", "ycsb-zipfian",
            "ycsb-latest",
        ]),
        inserted in prop_oneof![Just(0), 0..=KEYS_MAX],
    ) {
        let choice = choice(text, keys);
        let mut random = numbers(1, 2, n);
        for n in n..n.saturating_add(20) {
            prop_assert!(choice.pick(&mut random, n).0 < keys);
            let newest = Key(keys - 1 + inserted);
            prop_assert!(choice.pick_with_newest(&mut random, n, newest) <= newest);
        }
    }
}

#[test]
fn invalid_choices_are_explained() {
    let error =
        |text: &str, keys| KeyChoice::new(text.parse().unwrap(), keys).unwrap_err().to_string();
    assert_eq!(error("uniform", 0), "`0` is not a number of keys, expected 1 to 1000000000000");
    assert!(KeyChoice::new(Distribution::Uniform, KEYS_MAX + 1).is_err());
    assert_eq!(
        error("gauss:500:20", 500),
        "`500` is not a mean for 500 keys, expected a share from 0 to 1 or the number of a key \
         above 1 and below 500"
    );
    assert_eq!(
        error("gauss:0.5:501", 500),
        "`501` is not a standard deviation for 500 keys, expected a share above 0 and up to 1 or a \
         number of keys up to 500"
    );
    for wrong in [
        Distribution::Zipf { exponent: -0.5, scattered: true },
        Distribution::Latest { exponent: f64::NAN },
        Distribution::Hot { keys: 2.0, operations: 0.5, scattered: true },
        Distribution::Hot { keys: 0.5, operations: -0.1, scattered: true },
    ] {
        let error = KeyChoice::new(wrong, 10).unwrap_err().to_string();
        let expected = format!(
            "`{wrong}` is not a distribution, expected an exponent from 0 and shares from 0 to 1"
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn given_keys_are_chosen_in_turn() {
    let choice = KeyChoice::in_turn(&[Key(7), Key(3), Key(9)], 2).unwrap();
    let picked: Vec<u64> = (0..8).map(|n| choice.pick(&mut numbers(5, 0, n), n).0).collect();
    assert_eq!(picked, [7, 7, 3, 3, 9, 9, 7, 7]);
    assert_eq!(KeyChoice::in_turn(&[], 2).unwrap_err(), invalid_count(0));
}
