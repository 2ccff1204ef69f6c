//! Tests of slopes: cases calculated by hand, properties, and coverage by simulation.

use super::*;
use crate::random::SplitMix64;
use proptest::prelude::*;

fn slope(center: f64, bounds: Option<(f64, f64)>) -> Slope {
    Slope { center, bounds, blocks: 3 }
}

#[test]
fn a_slope_matches_a_manual_calculation() {
    // ln(cost) is 0, 1 and 5 at ln(size) 0, 1 and 2: Σ(x−1)(y−2) ÷ Σ(x−1)² = 5 ÷ 2.
    let e = std::f64::consts::E;
    let got = power_law_slope(&[(1.0, 1.0), (e, e), (e * e, e.powi(5))]).unwrap();
    assert!((got - 2.5).abs() < 1e-12, "{got}");
}

#[test]
fn fewer_than_two_sizes_have_no_slope() {
    let bad = f64::NAN;
    for pairs in [
        &[][..],
        &[(10.0, 5.0)],
        &[(10.0, 5.0), (10.0, 50.0)],
        &[(10.0, 5.0), (100.0, 0.0)],
        &[(10.0, 5.0), (0.0, 5.0), (100.0, bad), (bad, 5.0), (-1.0, 5.0)],
    ] {
        assert_eq!(power_law_slope(pairs), None, "{pairs:?}");
    }
    assert_eq!(slope_over_blocks([&[(1.0, 1.0)][..]], 0.95), None);
    assert_eq!(slope_over_blocks([&[(1.0, 1.0), (2.0, 2.0)][..]], 1.0), None);
}

#[test]
fn three_blocks_are_as_wide_as_students_t() {
    let blocks = [0.9, 1.0, 1.1].map(|slope: f64| [(1.0, 3.0), (10.0, 3.0 * 10f64.powf(slope))]);
    let got = slope_over_blocks(blocks.iter().map(|b| &b[..]), 0.95).unwrap();
    let reach = 4.302_65 * 0.1 / 3f64.sqrt();
    let (lo, hi) = got.bounds.unwrap();
    assert!((got.center - 1.0).abs() < 1e-9 && got.blocks == 3);
    assert!((lo - (1.0 - reach)).abs() < 1e-5 && (hi - (1.0 + reach)).abs() < 1e-5, "{got:?}");
    let one = slope_over_blocks([&blocks[2][..], &[]], 0.95).unwrap();
    assert!((one.center - 1.1).abs() < 1e-9);
    assert_eq!((one.bounds, one.blocks), (None, 1));
}

#[test]
fn the_interval_decides_the_class_of_a_slope() {
    for (center, lo, hi, expected) in [
        (0.02, -0.05, 0.09, Growth::DoesNotGrow),
        (0.05, 0.03, 0.07, Growth::DoesNotGrow),
        (0.05, -0.3, 0.4, Growth::DoesNotGrow),
        // Reaches too far towards 1.
        (0.05, -0.5, 0.6, Growth::Undecided),
        // Outside the zone, but 0 is not excluded.
        (0.2, -0.1, 0.5, Growth::Undecided),
        (0.15, 0.1, 0.2, Growth::Slower),
        (0.5, 0.3, 0.7, Growth::Slower),
        (0.85, 0.8, 0.9, Growth::Slower),
        (0.95, 0.93, 0.97, Growth::InProportion),
        (0.95, 0.6, 1.3, Growth::InProportion),
        (0.8, 0.5, 1.1, Growth::Undecided),
        (1.05, 1.01, 1.2, Growth::Faster),
        (2.0, 1.8, 2.2, Growth::Faster),
        (-0.5, -0.8, -0.2, Growth::Shrinks),
        (-0.5, -1.2, 0.2, Growth::Undecided),
    ] {
        let got = slope(center, Some((lo, hi))).growth();
        assert_eq!(got, expected, "{center} [{lo}, {hi}]");
    }
    assert_eq!(slope(1.0, None).growth(), Growth::Undecided);
    assert_eq!(slope(0.0, Some((0.0, 0.0))).growth(), Growth::DoesNotGrow);
    let two = Slope { blocks: 2, ..slope(0.0, Some((0.0, 0.0))) };
    assert_eq!(two.growth(), Growth::Undecided);
}

/// Costs have noise per size and much larger noise per block. The interval of the slope has its
/// nominal coverage regardless of the noise per block.
#[test]
fn the_interval_covers_the_truth() {
    let mut random = SplitMix64::new(5);
    let mut block = |truth: f64| {
        let level = 1e6 * (0.5 * random.normal()).exp();
        [2e3, 5e3, 2e4]
            .map(|size: f64| (size, level * size.powf(truth) * (0.1 * random.normal()).exp()))
    };
    for (truth, blocks) in [(0.0, 3), (1.0, 3), (0.7, 8)] {
        let runs = 2_000;
        let covered = (0..runs).filter(|_| {
            let blocks: Vec<_> = (0..blocks).map(|_| block(truth)).collect();
            let got = slope_over_blocks(blocks.iter().map(|b| &b[..]), 0.95).unwrap();
            got.bounds.is_some_and(|(lo, hi)| lo <= truth && truth <= hi)
        });
        let share = covered.count() as f64 / f64::from(runs);
        assert!((0.935..=0.965).contains(&share), "{share} of runs with {blocks} blocks");
    }
}

/// Between 2 and 6 different sizes.
fn sizes() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::btree_set(1u32..100_000, 2..7)
        .prop_map(|sizes| sizes.into_iter().map(f64::from).collect())
}

proptest! {
    #[test]
    fn a_known_exponent_is_found(
        sizes in sizes(),
        (exponent, factor) in (-3.0..3.0f64, 1e-3..1e6f64),
    ) {
        let pairs: Vec<(f64, f64)> =
            sizes.iter().map(|size| (*size, factor * size.powf(exponent))).collect();
        let got = power_law_slope(&pairs).unwrap();
        prop_assert!((got - exponent).abs() < 1e-6, "{got} for {exponent}");
    }

    #[test]
    fn units_and_order_do_not_matter(
        sizes in sizes(),
        costs in prop::collection::vec(1.0..1e9f64, 7),
        (size_unit, cost_unit) in (1e-3..1e3f64, 1e-6..1e6f64),
    ) {
        let pairs: Vec<(f64, f64)> = sizes.iter().copied().zip(costs).collect();
        let slope = power_law_slope(&pairs).unwrap();
        let others: Vec<(f64, f64)> =
            pairs.iter().rev().map(|(size, cost)| (size * size_unit, cost * cost_unit)).collect();
        let got = power_law_slope(&others).unwrap();
        prop_assert!((got - slope).abs() < 1e-6 * slope.abs().max(1.0), "{got} and {slope}");
    }
}
