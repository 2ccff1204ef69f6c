//! Tests of the knee on simulated curves with a known capacity.

use super::*;
use crate::random::SplitMix64;
use proptest::prelude::*;

const SECONDS: f64 = 1.0;
const INTERVAL_S: f64 = 0.1;

/// A stage at a rate on a store with a maximum of `capacity`; counts vary by up to the share
/// `noise`.
fn asked(rate: f64, capacity: f64, noise: f64, random: &mut SplitMix64) -> Stage {
    let answered = rate.min(capacity) * (1.0 - noise * random.open_unit());
    Stage::open(rate * SECONDS, answered * SECONDS, SECONDS, INTERVAL_S, 0.0)
}

/// 99th percentile of the time in an M/M/1 system: ln(100) / (capacity − rate).
fn p99(capacity: f64, rate: f64) -> Option<f64> {
    (rate < capacity).then(|| 100f64.ln() / (capacity - rate))
}

proptest! {
    #[test]
    fn the_knee_encloses_a_known_capacity(
        capacity in 20_000.0..500_000.0_f64,
        steps in 4_u32..40,
        noise in 0.0..0.008_f64,
        seed in any::<u64>(),
    ) {
        let mut random = SplitMix64::new(seed);
        let top = 1.3 * capacity;
        let stages: Vec<Stage> = (1..=steps)
            .map(|i| asked(top * f64::from(i) / f64::from(steps), capacity, noise, &mut random))
            .collect();
        let found = knee(&stages);
        prop_assert_eq!(found.against, 0);
        // A stage just above the capacity passes too: it may miss one percent, plus chance.
        let most = capacity / OPEN_SHARE * 1.03;
        let held = found.held.map_or(0.0, |i| stages[i].asked_per_s);
        prop_assert!(held <= most, "{held} of {capacity}");
        let missed = stages[found.missed.unwrap()].asked_per_s;
        prop_assert!(missed >= capacity, "{missed} of {capacity}");
        prop_assert_eq!(found.held.map_or(0, |i| i + 1), found.missed.unwrap());
    }

    #[test]
    fn one_stumble_moves_no_knee_that_is_two_stages_away(
        capacity in 20_000.0..500_000.0_f64,
        steps in 10_u32..40,
        stumbles in 0_usize..40,
    ) {
        let rates = (1..=steps).map(|i| 1.3 * capacity * f64::from(i) / f64::from(steps));
        let mut stages: Vec<Stage> =
            rates.map(|rate| stage(rate, rate.min(capacity))).collect();
        let clean = knee(&stages);
        let at = stumbles % clean.held.unwrap().saturating_sub(1).max(1);
        stages[at] = stage(stages[at].asked_per_s, 0.5 * stages[at].asked_per_s);
        prop_assert_eq!(knee(&stages), Knee { against: 1, ..clean });
    }

    #[test]
    fn clients_that_wait_have_their_knee_where_the_store_is_full(
        capacity in 20_000.0..200_000.0_f64,
        think_s in 0.005..0.05_f64,
        seed in any::<u64>(),
    ) {
        let mut random = SplitMix64::new(seed);
        let service_s = 100e-6;
        let full = capacity * (think_s + service_s);
        let counts: Vec<f64> = (1..=30).map(|i| (full * f64::from(i) / 20.0).ceil()).collect();
        let answered: Vec<f64> = counts
            .iter()
            .map(|n| (n / (think_s + service_s)).min(capacity))
            .map(|rate| rate * (0.995 + 0.01 * random.open_unit()))
            .collect();
        let pairs: Vec<(f64, f64)> = counts.iter().copied().zip(answered.iter().copied()).collect();
        let pace = pace(&pairs).unwrap();
        let stages: Vec<Stage> =
            pairs.iter().map(|(n, x)| Stage::closed(*n, pace, *x, 0.0)).collect();
        let found = knee(&stages);
        let held = stages[found.held.unwrap()].answered_per_s;
        prop_assert!((0.9..1.02).contains(&(held / capacity)), "{held} of {capacity}");
        let missed = counts[found.missed.unwrap()];
        prop_assert!((1.0..1.15).contains(&(missed / full)), "{missed} of {full}");
    }

    #[test]
    fn a_limit_is_kept_up_to_where_the_queue_says(
        capacity in 20_000.0..500_000.0_f64,
        share in 0.3..0.95_f64,
    ) {
        let limit = p99(capacity, capacity * share).unwrap();
        let rates: Vec<f64> = (1..=120).map(|i| capacity * f64::from(i) / 100.0).collect();
        let times: Vec<Option<f64>> = rates.iter().map(|rate| p99(capacity, *rate)).collect();
        let kept = rates[within(&times, limit).unwrap()] / capacity;
        prop_assert!(kept <= share && share - kept <= 0.0101, "{kept} of {share}");
    }

    #[test]
    fn a_value_between_two_stages_lies_between_theirs(
        low in 1.0..1e6_f64,
        high in 1.0..1e6_f64,
        at in 100.0..200.0_f64,
    ) {
        let got = value_at(&[(200.0, high), (100.0, low)], at).unwrap();
        let (least, most) = (low.min(high), low.max(high));
        prop_assert!(got >= least * 0.999_999 && got <= most * 1.000_001);
    }

    #[test]
    fn ways_part_at_the_top_only(mut up in prop::collection::vec(1_u32..1_000, 1..20)) {
        up.sort_unstable();
        up.dedup();
        let up: Vec<f64> = up.into_iter().map(f64::from).collect();
        prop_assert!(ways(&up).iter().all(|way| *way == Way::Up));
        let back: Vec<f64> = up.iter().chain(up.iter().rev().skip(1)).copied().collect();
        let down = ways(&back).iter().filter(|way| **way == Way::Down).count();
        prop_assert_eq!(down, up.len() - 1);
    }
}

fn stage(asked: f64, answered: f64) -> Stage {
    Stage::open(asked, answered, SECONDS, INTERVAL_S, 0.0)
}

#[test]
fn a_failed_stage_is_forgiven_if_two_higher_ones_pass() {
    let stages = [
        stage(10e3, 10e3),
        stage(20e3, 20e3),
        stage(30e3, 25e3),
        stage(40e3, 40e3),
        stage(50e3, 50e3),
        stage(60e3, 51e3),
        stage(70e3, 70e3),
        stage(80e3, 51e3),
    ];
    let knee_of = |held, missed, against| Knee { held, missed, against };
    assert_eq!(knee(&stages), knee_of(Some(4), Some(5), 2));
    assert_eq!(knee(&stages[..4]), knee_of(Some(1), Some(2), 1), "one higher stage is not enough");
    assert_eq!(knee(&stages[..5]), knee_of(Some(4), None, 1));
    assert_eq!(knee(&stages[..2]), knee_of(Some(1), None, 0));
    assert_eq!(knee(&stages[2..3]), knee_of(None, Some(0), 0));
    assert_eq!(knee(&[]), Knee::default());
}

#[test]
fn one_percent_may_be_missing_and_one_per_mille_may_fail() {
    assert!(stage(1e6, 0.991e6).holds() && !stage(1e6, 0.989e6).holds());
    let failing = |share| Stage::open(1e6, 1e6, SECONDS, INTERVAL_S, share);
    assert!(failing(0.0009).holds() && !failing(0.001).holds());
    assert!(Stage::closed(100.0, 100.0, 9_501.0, 0.0).holds());
    assert!(!Stage::closed(100.0, 100.0, 9_499.0, 0.0).holds());
    assert!(!stage(0.0, 0.0).holds(), "no requests and no answers");
}

#[test]
fn few_requests_may_miss_by_chance() {
    // 500/s are 50 per interval; three standard deviations are 21.
    assert!(stage(500.0, 480.0).holds() && !stage(500.0, 470.0).holds());
}

#[test]
fn stages_in_random_order_all_belong_to_the_way_up() {
    assert_eq!(ways(&[3.0, 1.0, 2.0, 1.0]), [Way::Up; 4]);
    assert_eq!(ways(&[1.0, 3.0, 2.0, 2.5]), [Way::Up; 4]);
    assert_eq!(ways(&[1.0, 2.0, 2.0]), [Way::Up; 3]);
    assert_eq!(ways(&[1.0, 2.0, 1.0]), [Way::Up, Way::Up, Way::Down]);
    assert_eq!(ways(&[]), []);
}

#[test]
fn values_are_not_extrapolated() {
    let points = [(10.0, 1.0), (20.0, 4.0)];
    assert_eq!(value_at(&points, 9.9), None);
    assert_eq!(value_at(&points, 20.1), None);
    assert_eq!(value_at(&[], 1.0), None);
    assert_eq!(value_at(&points, 10.0), Some(1.0));
    assert!((value_at(&points, 15.0).unwrap() - 2.0).abs() < 1e-9, "half-way on logarithms");
}

#[test]
fn the_pace_comes_from_the_stages_with_the_fewest_clients() {
    let stages = [(50.0, 100.0), (1.0, 10.0), (2.0, 24.0), (3.0, 33.0), (0.0, 0.0)];
    assert_eq!(pace(&stages), Some(11.0));
    assert_eq!(pace(&[(0.0, 5.0)]), None);
}

#[test]
fn a_limit_exceeded_from_the_start_has_no_rate() {
    assert_eq!(within(&[Some(2.0), Some(1.0)], 1.5), None);
    assert_eq!(within(&[Some(1.0), None, Some(1.0)], 1.5), Some(0));
    assert_eq!(within(&[Some(2.0), Some(1.0), Some(1.0), Some(2.0)], 1.5), Some(2));
    assert_eq!(within(&[], 1.5), None);
}
