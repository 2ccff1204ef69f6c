//! Steadiness of a phase's rate.
//!
//! fio's slope rule (`steadystate=iops_slope`) fits a line to the rate over time and limits its
//! slope. On a shared host the rate also changes for reasons outside the store, and a single trial
//! cannot distinguish these from a store that slows down or warms up. But the store behaves alike
//! in every block, so the changes of all blocks are tested together. The phase drifts if their mean
//! is significantly beyond the limit, and is steady if it is significantly within it (two one-sided
//! tests: Schuirmann, "A comparison of the two one-sided tests procedure and the power approach",
//! 1987). Otherwise it is undecided.

use crate::student;

/// Minimum number of whole intervals of a trial.
pub const FEWEST_INTERVALS: usize = 5;

/// Minimum number of blocks to judge a phase.
pub const FEWEST_BLOCKS: usize = 3;

/// Two-sided probability that noise counts as a drift: small, because a run has many phases.
const ALPHA: f64 = 0.01;
/// Probability that a drift at the limit counts as steady.
const ALPHA_STEADY: f64 = 0.05;

/// Change of the least-squares line through the counts of whole intervals, from the start of the
/// first to the end of the last, as a share of the mean: −0.1 is a loss of 10 %.
///
/// The last count is ignored because its interval is partial. `None` below [`FEWEST_INTERVALS`]
/// whole intervals, or if all counts are 0.
pub fn slope_share(done_per_interval: &[u64]) -> Option<f64> {
    let (_, whole) = done_per_interval.split_last()?;
    let n = whole.len() as f64;
    let mean = whole.iter().map(|c| *c as f64).sum::<f64>() / n;
    if whole.len() < FEWEST_INTERVALS || mean == 0.0 {
        return None;
    }
    let middle = (n - 1.0) / 2.0;
    let points = || whole.iter().enumerate().map(|(i, c)| (i as f64 - middle, *c as f64 - mean));
    let spread: f64 = points().map(|(x, _)| x * x).sum();
    let slope = points().map(|(x, y)| x * y).sum::<f64>() / spread;
    Some(slope * n / mean)
}

/// Steadiness of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steady {
    /// The drift is within the limit.
    Yes,
    /// The rate rises (above 0) or falls by this share of its mean.
    No(f64),
    /// Undecided: the rate changes by something between these shares of its mean.
    NotShown(f64, f64),
    /// Too few blocks with enough intervals.
    TooShort,
}

/// Judges a phase by the intervals of its blocks (see [`slope_share`]). `limit_share` is the
/// allowed change as a share of the mean: 0.1 allows 10 % over the phase.
pub fn is_steady<'a>(blocks: impl IntoIterator<Item = &'a [u64]>, limit_share: f64) -> Steady {
    let slopes: Vec<f64> = blocks.into_iter().filter_map(slope_share).collect();
    if slopes.len() < FEWEST_BLOCKS {
        return Steady::TooShort;
    }
    let n = slopes.len() as f64;
    let mean = slopes.iter().sum::<f64>() / n;
    let variance = slopes.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    let surely = mean.abs() - student::critical(ALPHA / 2.0, n - 1.0) * error;
    let reach = student::critical(ALPHA_STEADY, n - 1.0) * error;
    if surely > limit_share {
        Steady::No(mean)
    } else if mean.abs() + reach <= limit_share {
        Steady::Yes
    } else {
        Steady::NotShown(mean - reach, mean + reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// Twenty whole intervals and a partial one: a line that changes by `change` of its mean, with
    /// noise per interval and a step of the host half-way.
    fn block(change: f64, noise: f64, step: f64, random: &mut SplitMix64) -> Vec<u64> {
        let step = step * random.normal();
        let level = |i: u32| {
            let line = 1.0 + change * ((f64::from(i) + 0.5) / 20.0 - 0.5);
            1e4 * if i < 10 { line } else { line * (1.0 + step) }
        };
        let mut counts: Vec<u64> = (0..20)
            .map(|i| (level(i) * (1.0 + noise * random.normal())).max(0.0).round() as u64)
            .collect();
        counts.push(100);
        counts
    }

    fn judge(blocks: &[Vec<u64>]) -> Steady {
        is_steady(blocks.iter().map(Vec::as_slice), 0.1)
    }

    #[test]
    fn a_slope_matches_a_manual_calculation() {
        let got = slope_share(&[8, 9, 11, 10, 12, 3]).unwrap();
        assert!((got - 0.9 * 5.0 / 10.0).abs() < 1e-12, "{got:?}");
    }

    #[test]
    fn the_last_interval_does_not_count() {
        assert_eq!(slope_share(&[100, 100, 100, 100, 100, 100, 0]), Some(0.0));
    }

    #[test]
    fn too_short_is_not_steady() {
        for counts in [&[][..], &[5], &[100, 90, 80, 70, 60], &[0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(slope_share(counts), None, "{counts:?}");
        }
        let falling = vec![100, 90, 80, 70, 60, 50];
        assert_eq!(judge(&[falling.clone(), falling.clone()]), Steady::TooShort);
        assert!(matches!(judge(&vec![falling; 3]), Steady::No(share) if share < -0.4));
    }

    #[test]
    fn a_slope_without_noise_counts_only_beyond_the_limit() {
        let falling = vec![vec![1_000u64, 990, 980, 970, 960, 950, 0]; 4];
        let blocks = || falling.iter().map(Vec::as_slice);
        assert!(matches!(is_steady(blocks(), 0.05), Steady::No(_)));
        assert_eq!(is_steady(blocks(), 0.07), Steady::Yes);
    }

    #[test]
    fn steps_of_the_host_are_not_a_drift_but_a_slowing_store_is() {
        let mut random = SplitMix64::new(11);
        let mut found = |change, blocks: usize| {
            let runs = 2_000;
            let drifts = (0..runs).filter(|_| {
                let blocks: Vec<_> =
                    (0..blocks).map(|_| block(change, 0.05, 0.2, &mut random)).collect();
                matches!(judge(&blocks), Steady::No(_))
            });
            drifts.count() as f64 / f64::from(runs)
        };
        for blocks in [3, 6, 20] {
            let alarms = found(0.0, blocks);
            assert!(alarms <= 0.005, "{alarms} false alarms of {blocks} blocks");
        }
        // A drifting store is not called steady, even with few blocks.
        for (change, blocks) in [(0.1, 3), (-0.3, 3), (0.3, 6), (-0.5, 3)] {
            let called = (0..2_000).filter(|_| {
                let blocks: Vec<_> =
                    (0..blocks).map(|_| block(change, 0.05, 0.1, &mut random)).collect();
                judge(&blocks) == Steady::Yes
            });
            let called = called.count() as f64 / 2_000.0;
            assert!(called <= 0.07, "{called} of drifts by {change} count as steady");
        }
        let mut random = SplitMix64::new(12);
        let mut found = |change, blocks: usize| {
            let drifts = (0..2_000).filter(|_| {
                let blocks: Vec<_> =
                    (0..blocks).map(|_| block(change, 0.05, 0.2, &mut random)).collect();
                matches!(judge(&blocks), Steady::No(_))
            });
            drifts.count() as f64 / 2_000.0
        };
        let seen = found(-0.8, 6);
        assert!(seen >= 0.5, "a loss of 80 % is detected in only {seen} of the runs");
        let seen = found(-0.3, 20);
        assert!(seen >= 0.5, "a loss of 30 % is detected in only {seen} of the runs");
    }
}
