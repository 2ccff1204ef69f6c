//! Tests of intervals: tables of cases, properties, and coverage by simulation.

use super::*;
use proptest::prelude::*;

fn at_95(values: &[f64]) -> Estimate {
    geometric_mean_interval(values, 0.95, 1).unwrap()
}

#[test]
fn the_centre_is_the_geometric_mean() {
    let got = at_95(&[1.0, 10.0, 100.0]);
    assert!((got.center - 10.0).abs() < 1e-9);
    assert_eq!((got.blocks, got.interval.unwrap().center), (3, got.center));
}

#[test]
fn three_blocks_are_as_wide_as_students_t() {
    let got = at_95(&[0.9f64.exp(), 1.0f64.exp(), 1.1f64.exp()]);
    let reach = 4.302_65 * 0.1 / 3f64.sqrt();
    assert!((got.lo().unwrap().ln() - (1.0 - reach)).abs() < 1e-5, "{got:?}");
    assert!((got.hi().unwrap().ln() - (1.0 + reach)).abs() < 1e-5, "{got:?}");
}

#[test]
fn a_skewed_sample_has_a_skewed_interval() {
    let mut values = vec![1.0; 30];
    values.extend([50.0, 50.0]);
    let logs = logs_of(&values).unwrap();
    let moments = Moments::of(&logs);
    let reach = student::critical(0.025, 31.0) * moments.error;
    let got = at_95(&values);
    assert!(got.hi().unwrap().ln() > moments.mean + reach * 1.05, "{got:?}");
    assert!((got.lo().unwrap().ln() - (moments.mean - reach)).abs() < 1e-9, "{got:?}");
}

#[test]
fn fewer_than_three_blocks_have_a_centre_only() {
    for values in [vec![42.0], vec![42.0, 42.0]] {
        let got = at_95(&values);
        assert!((got.center - 42.0).abs() < 1e-9);
        assert_eq!((got.interval, got.lo(), got.hi()), (None, None, None));
        assert_eq!(got.warnings, [Warning::NoInterval { have: values.len() }]);
    }
    let words = at_95(&[42.0]).warnings[0].to_string();
    assert_eq!(words, "an interval needs 3 blocks (there are 1)");
}

#[test]
fn few_or_identical_blocks_give_warnings() {
    let few = at_95(&[1.0, 1.1, 1.2]).warnings;
    assert_eq!(few, [Warning::FewBlocks { have: 3, need: 6 }]);
    assert_eq!(
        few[0].to_string(),
        "with fewer than 6 blocks the interval assumes log-normal noise (there are 3)"
    );
    assert!(at_95(&[1.0, 1.1, 1.2, 1.0, 1.3, 1.1]).warnings.is_empty());
    assert_eq!(at_95(&[5.0; 6]).warnings, [Warning::Identical { blocks: 6 }]);
    let strict = geometric_mean_interval(&[1.0, 2.0, 1.5], 0.99, 1).unwrap();
    assert_eq!(strict.warnings, [Warning::FewBlocks { have: 3, need: 8 }]);
}

#[test]
fn identical_blocks_have_no_width() {
    let got = at_95(&[123.456; 4]).interval.unwrap();
    assert_eq!((got.lo, got.hi), (got.center, got.center));
    assert!((got.center - 123.456).abs() < 1e-9);
}

#[test]
fn an_interval_contains_its_bounds() {
    let interval = Interval { center: 100.0, lo: 95.0, hi: 110.0 };
    assert!(interval.contains(95.0) && !interval.contains(110.1));
}

#[test]
fn invalid_input_is_refused_with_its_value_and_the_expected_one() {
    let cases = [
        (&[][..], 0.95, "no blocks, expected at least one value"),
        (&[1.0, 0.0], 0.95, "block 1 has value `0`, expected a finite number above 0"),
        (&[f64::NAN], 0.95, "block 0 has value `NaN`, expected a finite number above 0"),
        (&[1.0, -2.0], 0.95, "block 1 has value `-2`, expected a finite number above 0"),
        (&[f64::INFINITY], 0.95, "block 0 has value `inf`, expected a finite number above 0"),
        (&[1.0], 95.0, "confidence `95`, expected a number between 0 and 1, for example 0.95"),
        (&[1.0], f64::NAN, "confidence `NaN`, expected a number between 0 and 1, for example 0.95"),
    ];
    for (values, confidence, expected) in cases {
        let error = geometric_mean_interval(values, confidence, 1).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

/// Coverage of 95 % intervals over `runs` samples of `n` values; `draw` gives their logs with true
/// mean 0.
fn coverage(n: usize, runs: u32, mut draw: impl FnMut() -> f64) -> f64 {
    let mut held = 0u32;
    for run in 0..runs {
        let logs: Vec<f64> = (0..n).map(|_| draw()).collect();
        let interval = estimate(&logs, 0.05, 200, u64::from(run)).interval.unwrap();
        held += u32::from(interval.contains(1.0));
    }
    f64::from(held) / f64::from(runs)
}

#[test]
fn intervals_of_log_normal_blocks_have_their_nominal_coverage() {
    let mut random = SplitMix64::new(20_190_611);
    for n in [3, 5, 8, 12] {
        let got = coverage(n, 4_000, || 0.1 * random.normal());
        assert!((0.94..=0.98).contains(&got), "{got} for {n} blocks");
    }
}

#[test]
fn a_plain_percentile_bootstrap_would_fail_the_same_simulation() {
    let mut random = SplitMix64::new(20_190_611);
    let mut held = 0u32;
    for run in 0..2_000 {
        let logs: Vec<f64> = (0..5).map(|_| 0.1 * random.normal()).collect();
        let mut means = resampled_means(&logs, 400, run);
        let lo = nth_from_below(&mut means, 0.025);
        let hi = nth_from_above(&mut means, 0.025);
        held += u32::from(lo <= 0.0 && 0.0 <= hi);
    }
    assert!(held < 1_800, "{held} of 2000");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bounds_enclose_the_centre_and_the_seed_repeats_them(
        values in prop::collection::vec(1e-3..1e12f64, 3..20),
        seed: u64,
    ) {
        let got = geometric_mean_interval(&values, 0.95, seed).unwrap();
        let interval = got.interval.unwrap();
        prop_assert!(0.0 <= interval.lo && interval.lo <= interval.center);
        prop_assert!(interval.center <= interval.hi);
        prop_assert_eq!(geometric_mean_interval(&values, 0.95, seed).unwrap(), got);
    }

    #[test]
    fn a_change_of_unit_changes_nothing_else(
        values in prop::collection::vec(1.0..1e6f64, 3..10),
    ) {
        let scaled: Vec<f64> = values.iter().map(|v| v * 1e9).collect();
        let (a, b) = (at_95(&values).interval.unwrap(), at_95(&scaled).interval.unwrap());
        for (a, b) in [(a.center, b.center), (a.lo, b.lo), (a.hi, b.hi)] {
            prop_assert!((a * 1e9 / b - 1.0).abs() < 1e-6);
        }
    }
}
