use super::*;
use crate::kv::counts::{assert_drawn, moments};
use crate::kv::numbers;

/// Midpoints of equal parts of the range from 0 to 1.
const PARTS: usize = 1_000_000;

fn parts() -> impl Iterator<Item = f64> {
    (0..PARTS).map(|i| (i as f64 + 0.5) / PARTS as f64)
}

/// Drawn lengths.
fn draws(published: Published, count: u64) -> impl Iterator<Item = usize> {
    let mut random = numbers(12, 0, 0);
    (0..count).map(move |_| published.bytes(&mut random))
}

/// Γ(1 − x) for x from 0 to 0.5, by the series of its logarithm: γx + Σ ζ(n)xⁿ/n.
fn gamma_of_1_minus(x: f64) -> f64 {
    let zeta = |n: i32| {
        let first: f64 = (1..1_000).map(|k| f64::from(k).powi(-n)).sum();
        first + 999.5f64.powi(1 - n) / f64::from(n - 1)
    };
    let series: f64 = (2..60).map(|n| zeta(n) * x.powi(n) / f64::from(n)).sum();
    (0.577_215_664_901_532_9 * x + series).exp()
}

#[test]
fn small_values_of_etc_match_the_table() {
    let mut counts = [0; 15];
    parts().map(etc_value).filter(|bytes| *bytes < 15).for_each(|bytes| counts[bytes] += 1);
    for (bytes, share) in ETC_SMALL.iter().enumerate() {
        let expected = (share * PARTS as f64).round() as u64;
        assert!(expected.abs_diff(counts[bytes]) <= 1, "{bytes}: {} {expected}", counts[bytes]);
    }
    // From the paper: nearly half of the values have 2, 3 or 11 bytes or are otherwise below 15.
    assert!((ETC_SMALL.iter().sum::<f64>() - 0.44155).abs() < 1e-12);
}

#[test]
fn large_values_of_etc_match_their_pareto_distribution() {
    let tail: Vec<f64> =
        draws(Published::EtcValues, 4_000_000).filter(|b| *b > 14).map(|b| b as f64).collect();
    let share = tail.len() as f64 / 4e6;
    assert!((share - (1.0 - 0.44155)).abs() < 0.001, "{share}");
    // Mean: location + scale / (1 − shape), minus half a byte for the truncation.
    let (mean, _) = moments(tail.iter().copied());
    let published = 15.0 + 214.476 / (1.0 - 0.348_238);
    assert!((mean - (published - 0.5)).abs() < 2.0, "{mean}, published {published}");
    // The fourth moment does not exist, so the deviation converges slowly, unlike quantiles.
    for (quantile, expected) in [(0.25, 79.8), (0.5, 183.1), (0.9, 772.4), (0.99, 2_461.0)] {
        let above = tail.iter().filter(|b| **b > expected).count() as f64 / tail.len() as f64;
        let by_formula = (1.0 + 0.348_238 * (expected - 15.0) / 214.476).powf(-1.0 / 0.348_238);
        assert!((by_formula - (1.0 - quantile)).abs() < 0.002, "{quantile}: {by_formula}");
        assert!((above - by_formula).abs() < 0.003, "{quantile}: {above}");
    }
}

#[test]
fn the_mean_of_etc_values_matches_the_draws() {
    let small: f64 = ETC_SMALL.iter().enumerate().map(|(n, p)| n as f64 * p).sum();
    let longer = |n: usize| (1.0 + 0.348_238 * (n - 15) as f64 / 214.476).powf(-1.0 / 0.348_238);
    let large = 15.0 + (16..=ETC_MAX).map(longer).sum::<f64>();
    let exact = small + (1.0 - 0.44155) * large;
    let mean = Published::EtcValues.mean();
    assert!((mean - exact).abs() < 1e-3, "{mean} {exact}");
    let (drawn, _) = moments(draws(Published::EtcValues, 4_000_000).map(|b| b as f64));
    assert!((drawn - mean).abs() < 1.5, "{drawn} {mean}");
}

#[test]
fn keys_of_etc_match_their_extreme_value_distribution() {
    let (middle, scale, shape) = (30.7984, 8.204_49, 0.078_688);
    let (g1, g2) = (gamma_of_1_minus(shape), gamma_of_1_minus(2.0 * shape));
    let published = (middle + scale / shape * (g1 - 1.0), scale / shape * (g2 - g1 * g1).sqrt());
    let (mean, deviation) = moments(parts().map(|u| etc_key(u) as f64));
    assert!((mean - published.0).abs() < 0.01, "{mean} {published:?}");
    assert!((deviation / published.1 - 1.0).abs() < 0.01, "{deviation} {published:?}");
    assert!((Published::EtcKeys.mean() - mean).abs() < 0.001, "{mean}");
    let mut counts = vec![0; 251];
    draws(Published::EtcKeys, 500_000).for_each(|bytes| counts[bytes] += 1);
    let below = |n: usize| if n == 0 { 0.0 } else { etc_keys_below(n as f64 + 0.5) };
    let shares: Vec<f64> =
        (0..=250).map(|n| if n == 0 { 0.0 } else { below(n) - below(n - 1) }).collect();
    assert_drawn(&counts, &shares, "keys");
}

#[test]
fn all_quantiles_are_within_the_limits() {
    let extremes = [0.0, f64::EPSILON / 2.0, 0.44155, 0.5, 1.0 - f64::EPSILON / 2.0];
    for u in extremes {
        assert!(etc_value(u) <= Published::EtcValues.max(), "{u}");
        let key = etc_key(u);
        assert!((Published::EtcKeys.min()..=Published::EtcKeys.max()).contains(&key), "{u}: {key}");
    }
    assert!(parts().map(etc_value).is_sorted());
    assert!(parts().map(etc_key).is_sorted());
    // Frequency of lengths beyond the limits, as stated in the comments of the constants.
    let beyond = (1.0 + 0.348_238 * 1e6 / 214.476f64).powf(-1.0 / 0.348_238) * 0.55845;
    assert!((1e-10..1e-9).contains(&beyond), "{beyond}");
    let beyond = 1.0 - etc_keys_below(250.0);
    assert!((1e-7..1e-5).contains(&beyond), "{beyond}");
}
