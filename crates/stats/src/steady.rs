//! Whether a phase's rate was steady while it was measured.
//!
//! fio's slope rule (`steadystate=iops_slope`) fits a line through the rate over time and asks how
//! much it changes. On a shared host the rate also steps up and down for reasons that are not the
//! store's; a single trial cannot tell these from a store that wears out or warms up. What the
//! store does, it does in every block: so the changes of all blocks are taken together. The phase
//! drifts when their mean surely lies beyond the limit, and is steady when it surely lies within
//! (two one-sided tests: Schuirmann, "A comparison of the two one-sided tests procedure and the
//! power approach", 1987). Between the two nothing is shown.

use crate::student;

/// Whole intervals below which a trial says nothing.
pub const FEWEST_INTERVALS: usize = 5;

/// Blocks below which a phase cannot be judged.
pub const FEWEST_BLOCKS: usize = 3;

/// Two-sided chance that noise alone passes for a drift: small, because a run has many phases.
const ALPHA: f64 = 0.01;
/// Chance that a drift at the limit passes for steady.
const ALPHA_STEADY: f64 = 0.05;

/// Change of the line fitted by least squares through the counts of whole intervals, from the
/// start of the first to the end of the last, as a share of the mean: −0.1 is a loss of 10 %.
///
/// The last count is left out: the interval in which a measurement ends is a partial one. `None`
/// below [`FEWEST_INTERVALS`] whole intervals, or when nothing was finished in them.
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

/// What can be said of a phase's rate over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steady {
    /// Surely no drift beyond the limit.
    Yes,
    /// Over the blocks, the rate rises (above 0) or falls by this share of its mean.
    No(f64),
    /// Neither: the rate may change by anything between these shares of its mean.
    NotShown(f64, f64),
    /// Too few blocks with enough intervals.
    TooShort,
}

/// Judges a phase by the intervals of each of its blocks (see [`slope_share`]) and a limit as a
/// share of the mean: 0.1 allows a change of 10 % over the span.
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
    /// noise of each interval and, half-way, a step of the host.
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
    fn a_hand_reckoned_line_has_its_slope() {
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
    fn a_host_that_steps_is_no_drift_and_a_store_that_wears_out_is() {
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
        // A store that drifts is not called steady, however few blocks there are.
        for (change, blocks) in [(0.1, 3), (-0.3, 3), (0.3, 6), (-0.5, 3)] {
            let called = (0..2_000).filter(|_| {
                let blocks: Vec<_> =
                    (0..blocks).map(|_| block(change, 0.05, 0.1, &mut random)).collect();
                judge(&blocks) == Steady::Yes
            });
            let called = called.count() as f64 / 2_000.0;
            assert!(called <= 0.07, "{called} of drifts by {change} pass for steady");
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
        assert!(seen >= 0.5, "a loss of 80 % is seen in {seen} of the runs only");
        let seen = found(-0.3, 20);
        assert!(seen >= 0.5, "a loss of 30 % is seen in {seen} of the runs only");
    }
}
