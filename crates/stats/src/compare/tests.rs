//! Tests of comparisons: tables of cases, agreement of verdict and interval, simulated error rates.

use super::*;
use crate::random::SplitMix64;
use proptest::prelude::*;

/// Judges a single pair with a zone of ±3 % and an alpha of 5 %.
fn alone(a: &[f64], b: &[f64]) -> Comparison {
    verdicts(&[Paired { a, b }], 0.03, 0.05).remove(0)
}

#[test]
fn clear_cases_get_their_verdict_whichever_side_comes_first() {
    let slow = [100.0, 80.0, 120.0, 95.0];
    let fast = [150.0, 121.0, 179.0, 143.0];
    let close = [100.5, 79.8, 120.3, 95.2];
    for (a, b, verdict, ratio) in [
        (&fast, &slow, Verdict::Faster, 1.502),
        (&slow, &fast, Verdict::Slower, 0.6657),
        (&slow, &close, Verdict::Equal, 0.9985),
        (&close, &slow, Verdict::Equal, 1.0015),
    ] {
        let got = alone(a, b);
        assert_eq!((got.verdict, got.doubt), (verdict, None), "{got:?}");
        assert!((got.ratio.unwrap().center - ratio).abs() < 1e-3);
    }
}

#[test]
fn noise_common_to_both_targets_cancels() {
    let b = [50.0, 400.0, 90.0, 1_000.0, 20.0];
    let a: Vec<f64> = b.iter().zip([1.2, 1.21, 1.19, 1.2, 1.22]).map(|(b, f)| b * f).collect();
    assert_eq!(alone(&a, &b).verdict, Verdict::Faster);
}

#[test]
fn a_certain_ratio_inside_the_zone_is_not_a_difference() {
    let b = [100.0; 8];
    let a = [102.0, 102.1, 101.9, 102.0, 102.1, 101.9, 102.0, 102.0];
    assert_eq!(alone(&a, &b).verdict, Verdict::Equal);
    assert_eq!(verdicts(&[Paired { a: &a, b: &b }], 0.01, 0.05)[0].verdict, Verdict::Faster);
}

#[test]
fn a_wide_interval_is_undecided_and_says_so() {
    let got = alone(&[100.0, 140.0, 80.0, 110.0], &[100.0; 4]);
    assert_eq!((got.verdict, got.doubt), (Verdict::Undecided, Some(Doubt::Wide)));
}

#[test]
fn fewer_than_three_blocks_decide_nothing() {
    for n in [1, 2] {
        let got = alone(&[200.0, 201.0][..n], &[100.0, 100.0][..n]);
        assert_eq!((got.verdict, got.p), (Verdict::Undecided, 1.0));
        let doubt = got.doubt.unwrap().to_string();
        let plural = if n == 1 { "" } else { "s" };
        assert_eq!(doubt, format!("{n} block{plural}; 3 are needed"));
        assert_eq!(Doubt::about(n), got.doubt);
        assert_eq!(got.ratio.unwrap().interval, None);
    }
}

#[test]
fn zero_variance_does_not_divide_by_zero() {
    for (a, verdict, p) in [
        (1.5, Verdict::Faster, 0.0),
        (0.5, Verdict::Slower, 0.0),
        (1.0, Verdict::Equal, 1.0),
        (1.02, Verdict::Equal, 1.0),
    ] {
        let b = [7.0, 11.0, 13.0];
        let got = alone(&b.map(|b| b * a), &b);
        assert_eq!((got.verdict, got.p), (verdict, p), "{got:?}");
        assert_eq!(got.doubt, Some(Doubt::Identical { blocks: 3 }));
    }
    let zero_zone = verdicts(&[Paired { a: &[5.0; 4], b: &[5.0; 4] }], 0.0, 0.05);
    assert!(matches!(zero_zone[0].verdict, Verdict::Undecided), "{zero_zone:?}");
}

#[test]
fn an_impossible_comparison_is_a_doubt_and_does_not_affect_others() {
    let good = Paired { a: &[150.0, 151.0, 149.0], b: &[100.0, 100.0, 100.0] };
    let bad = [
        (Paired { a: &[1.0, 2.0], b: &[1.0] }, "`2` blocks against `1`, expected the same blocks"),
        (Paired { a: &[], b: &[] }, "no blocks, expected at least one value"),
        (Paired { a: &[1.0], b: &[0.0] }, "block 0 has value `0`, expected a finite number above"),
    ];
    let all = [bad[0].0, good, bad[1].0, bad[2].0];
    let got = verdicts(&all, 0.03, 0.05);
    for (comparison, expected) in [&got[0], &got[2], &got[3]].into_iter().zip(bad) {
        let doubt = comparison.doubt.unwrap().to_string();
        assert!(doubt.starts_with(expected.1), "{doubt}");
        assert_eq!((comparison.verdict, &comparison.ratio), (Verdict::Undecided, &None));
    }
    assert_eq!(got[1], verdicts(&[good], 0.03, 0.05)[0]);
}

#[test]
fn a_single_result_may_not_survive_the_correction() {
    let (a, b) = ([110.0, 118.0, 112.0, 121.0], [100.0; 4]);
    let noise = [104.0, 95.0, 101.0, 99.0];
    assert_eq!(alone(&a, &b).verdict, Verdict::Faster);
    let mut pairs = vec![Paired { a: &noise, b: &b }; 20];
    pairs.push(Paired { a: &a, b: &b });
    let got = verdicts(&pairs, 0.03, 0.05).remove(20);
    assert_eq!(got.verdict, Verdict::Undecided);
    assert_eq!(
        got.doubt.unwrap().to_string(),
        "not significant after correcting for 21 comparisons: run more blocks"
    );
}

#[test]
fn holm_matches_a_manual_calculation_and_skips_untested_values() {
    let got = holm(&[0.01, f64::NAN, 0.04, 0.03, 0.005]);
    let expected = [0.03, 1.0, 0.06, 0.06, 0.02];
    assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{got:?}");
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}

#[test]
fn the_ratio_alone_has_the_same_interval_as_the_verdict() {
    let pair = Paired { a: &[150.0, 160.0, 149.0], b: &[100.0, 101.0, 99.0] };
    let judged = verdicts(&[pair], 0.03, 0.05).remove(0);
    assert_eq!(pair.ratio(0.05).unwrap(), judged.ratio.unwrap());
}

#[test]
fn invalid_settings_decide_nothing_and_do_not_panic() {
    let pair = Paired { a: &[100.0, 90.0, 105.0], b: &[95.0, 100.0, 99.0] };
    for (zone, alpha) in [(f64::NAN, 0.05), (-1.0, 0.05), (0.03, f64::NAN), (0.03, -1.0)] {
        let got = verdicts(&[pair], zone, alpha).remove(0);
        assert_eq!(got.verdict, Verdict::Undecided, "{zone} {alpha}");
    }
}

/// A simulated run: pairs with true ratio `ratio` and noise `noise` on each value. The share
/// `common` of the variance is that of the block and the same for all values.
struct Simulated {
    pairs: usize,
    blocks: usize,
    ratio: f64,
    noise: f64,
    common: f64,
}

impl Simulated {
    /// The verdicts of one run with a zone of ±3 % and an alpha of 5 %.
    fn run(&self, random: &mut SplitMix64) -> Vec<Verdict> {
        let blocks: Vec<f64> = (0..self.blocks).map(|_| random.normal()).collect();
        let mut side = |level: f64| -> Vec<f64> {
            let value = |block: &f64| {
                let z = self.common.sqrt() * block + (1.0 - self.common).sqrt() * random.normal();
                level * (self.noise * z).exp()
            };
            blocks.iter().map(value).collect()
        };
        let values: Vec<_> =
            (0..self.pairs).map(|_| (side(1_000.0 * self.ratio), side(1_000.0))).collect();
        let pairs: Vec<_> = values.iter().map(|(a, b)| Paired { a, b }).collect();
        judge(&pairs, 0.03, 0.05, 100).iter().map(|c| c.verdict).collect()
    }

    /// Share of 2,000 runs whose verdicts satisfy `found`.
    fn share(&self, found: impl Fn(&[Verdict]) -> bool) -> f64 {
        let mut random = SplitMix64::new(20_260_101);
        let hits = (0..2_000).filter(|_| found(&self.run(&mut random))).count();
        hits as f64 / 2_000.0
    }
}

#[test]
fn comparing_a_target_with_itself_rarely_raises_a_false_alarm() {
    for blocks in [3, 5, 6] {
        let run = Simulated { pairs: 12, blocks, ratio: 1.0, noise: 0.1, common: 0.6 };
        let alarms = run.share(|v| v.contains(&Verdict::Faster) || v.contains(&Verdict::Slower));
        assert!(alarms <= 0.05, "{alarms} with {blocks} blocks");
    }
}

#[test]
fn at_the_edge_of_the_zone_false_verdicts_are_rare() {
    for noise in [0.002, 0.05] {
        let run = Simulated { pairs: 12, blocks: 6, ratio: 1.03, noise, common: 0.6 };
        let differs = run.share(|v| v.contains(&Verdict::Faster) || v.contains(&Verdict::Slower));
        let equal = run.share(|v| v.contains(&Verdict::Equal));
        assert!(differs <= 0.05 && equal <= 0.05, "{differs} {equal} at {noise}");
    }
}

#[test]
fn a_true_ratio_of_1_4_is_found_with_six_blocks() {
    let run = Simulated { pairs: 12, blocks: 6, ratio: 1.4, noise: 0.05, common: 0.0 };
    let found = run.share(|v| v.iter().all(|v| *v == Verdict::Faster));
    assert!(found >= 0.95, "{found}");
}

#[test]
fn equality_is_found_where_noise_allows_it() {
    let run = Simulated { pairs: 12, blocks: 6, ratio: 1.0, noise: 0.01, common: 0.6 };
    let found = run.share(|v| v.iter().all(|v| *v == Verdict::Equal));
    assert!(found >= 0.80, "{found}");
}

/// A family of comparisons, each with several blocks of two similar rates.
fn family() -> impl Strategy<Value = Vec<Vec<(f64, f64)>>> {
    let spread = prop_oneof![Just(0.0), Just(0.001), Just(0.02), Just(0.3)];
    let pair = (0.5..2.0f64, spread, 1..9usize).prop_flat_map(|(ratio, spread, blocks)| {
        let block = (10.0..1e6f64, -1.0..1.0f64)
            .prop_map(move |(b, e)| (b * ratio.powf(0.2) * (spread * e).exp(), b));
        prop::collection::vec(block, blocks)
    });
    prop::collection::vec(pair, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_verdict_never_contradicts_the_interval_printed_with_it(
        family in family(),
        zone in prop_oneof![Just(0.0), Just(0.03), Just(0.1)],
        alpha in prop_oneof![Just(0.05), Just(0.01), Just(0.2)],
    ) {
        let sides: Vec<(Vec<f64>, Vec<f64>)> =
            family.into_iter().map(|blocks| blocks.into_iter().unzip()).collect();
        let pairs: Vec<_> = sides.iter().map(|(a, b)| Paired { a, b }).collect();
        for (got, pair) in judge(&pairs, zone, alpha, 500).iter().zip(&pairs) {
            let ratio = got.ratio.as_ref().unwrap();
            prop_assert!((0.0..=1.0).contains(&got.p));
            let Some(interval) = ratio.interval else {
                prop_assert_eq!(got.verdict, Verdict::Undecided);
                continue;
            };
            let (low, high) = (1.0 / (1.0 + zone), 1.0 + zone);
            let slack = 1e-12;
            match got.verdict {
                Verdict::Faster => prop_assert!(interval.lo > high - slack && got.p <= alpha),
                Verdict::Slower => prop_assert!(interval.hi < low + slack && got.p <= alpha),
                Verdict::Equal => prop_assert!(
                    interval.lo >= low - slack && interval.hi <= high + slack
                ),
                Verdict::Undecided => prop_assert!(got.doubt.is_some()),
            }
            prop_assert!(pair.a.len() >= 3 || got.verdict == Verdict::Undecided);
        }
    }

    #[test]
    fn swapping_the_sides_swaps_the_verdict(blocks in prop::collection::vec(
        (50.0..150.0f64, 50.0..150.0f64), 3..9,
    )) {
        let (a, b): (Vec<_>, Vec<_>) = blocks.into_iter().unzip();
        let there = alone(&a, &b);
        let back = alone(&b, &a);
        let expected = match there.verdict {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            same => same,
        };
        prop_assert_eq!(back.verdict, expected);
        prop_assert!((there.p - back.p).abs() < 1e-9);
        prop_assert!((there.ratio.unwrap().center * back.ratio.unwrap().center - 1.0).abs() < 1e-9);
    }
}
