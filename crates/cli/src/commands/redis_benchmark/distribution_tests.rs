//! Tests of the listings against lines printed by redis-benchmark 7.0.15.

use super::*;

fn of(us: &[u64]) -> Latencies {
    let mut histogram = Histogram::new();
    for us in us {
        histogram.record(us * 1_000);
    }
    Latencies::new(&histogram, 3)
}

fn lines(lines: &[Line]) -> Vec<(f64, u64, u64)> {
    lines.iter().map(|line| (line.percent, line.up_to_us, line.count)).collect()
}

#[test]
fn levels_halve_the_distance_to_100_percent_and_are_listed_once() {
    let mut us: Vec<u64> = (1..=10).map(|n| n * 100).collect();
    // `redis-benchmark -n 10` lists 0, 50, 75, 87.5, 93.75 and 100 for ten different latencies.
    let expected = [
        (0.0, 100, 1),
        (50.0, 500, 5),
        (75.0, 800, 8),
        (87.5, 900, 9),
        (93.75, 1000, 10),
        (100.0, 1000, 10),
    ];
    assert_eq!(lines(&of(&us).by_level()), expected);
    us.truncate(1);
    assert_eq!(lines(&of(&us).by_level()), [(0.0, 100, 1), (100.0, 100, 1)]);
    // Levels reached by the same latency share one line, except for the last.
    let expected = [(0.0, 5, 3), (87.5, 9, 4), (100.0, 9, 4)];
    let got = of(&[5, 5, 5, 9]).by_level();
    assert_eq!((got[0], got.len()), (Line { percent: 0.0, up_to_us: 5, count: 3 }, expected.len()));
    assert_eq!(lines(&got), expected);
}

#[test]
fn times_are_listed_in_steps_up_to_the_maximum() {
    // The first step is always listed, later ones only if the count grows.
    let expected = [(0.0, 100, 0), (25.0, 300, 1), (75.0, 1000, 3), (100.0, 3101, 4)];
    assert_eq!(lines(&of(&[250, 950, 1000, 2500]).by_time()), expected);
    let expected = [(0.0, 100, 0), (50.0, 2000, 1), (100.0, 2101, 2)];
    assert_eq!(lines(&of(&[2000, 2001]).by_time()), expected);
    assert_eq!(lines(&of(&[50]).by_time()), [(100.0, 100, 1)]);
}

#[test]
fn an_empty_distribution_lists_nothing() {
    let none = of(&[]);
    assert_eq!((none.by_level(), none.by_time()), (Vec::new(), Vec::new()));
    assert_eq!((none.min_ms(), none.max_ms(), none.quantile_ms(0.5)), (0.0, 0.0, 0.0));
}

#[test]
fn quantiles_match_the_latencies() {
    let all: Vec<u64> = (1..=1000).collect();
    let latencies = of(&all);
    for (q, ms) in [(0.0, 0.001), (0.5, 0.5), (0.95, 0.95), (0.99, 0.99), (1.0, 1.0)] {
        let got = latencies.quantile_ms(q);
        assert!((got - ms).abs() < 0.0011, "{got} at {q}");
    }
    assert!((latencies.mean_ms() - 0.5005).abs() < 0.001);
    assert!((latencies.min_ms() - 0.001).abs() < 1e-9);
    assert!((latencies.max_ms() - 1.0).abs() < 0.0011);
}

#[test]
fn fewer_digits_mean_larger_steps() {
    assert_eq!(step_of(2047, 3), (2047, 2047));
    assert_eq!(step_of(2049, 3), (2048, 2049));
    assert_eq!(step_of(100_000, 3), (99_968, 100_031));
    assert_eq!(step_of(1000, 1), (992, 1023));
    assert_eq!(step_of(0, 3), (0, 0));
    let mut histogram = Histogram::new();
    (1..=1000).for_each(|us| histogram.record(us * 1000));
    let coarse = Latencies::new(&histogram, 1);
    assert!((coarse.max_ms() - 1.023).abs() < 1e-9, "{}", coarse.max_ms());
    assert_eq!(coarse.by_level().last().map(|line| line.count), Some(1000));
}

#[test]
fn latencies_above_three_seconds_are_not_clipped() {
    let latencies = of(&[7_000_000]);
    assert!((latencies.max_ms() / 7_000.0 - 1.0).abs() < 0.002, "{}", latencies.max_ms());
}
