//! Whether a trial's rate was steady while it was measured.
//!
//! fio's slope rule (`steadystate=iops_slope`) fits a line through the rate over time and asks how
//! much it changes. On short or noisy trials the fitted line always changes somewhat; a slope
//! counts here only when Student's t of the fit says that it is not noise.

use crate::student;

/// Whole intervals below which nothing is said.
pub const FEWEST_INTERVALS: usize = 5;

/// Two-sided chance that noise alone passes for a slope: small, because a run has many trials.
const ALPHA: f64 = 0.01;

/// The line fitted by least squares through the counts of whole intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steadiness {
    /// Change of the line from the start of the first to the end of the last interval, as a share
    /// of the mean: −0.1 is a loss of 10 % of the mean rate.
    pub slope_share: f64,
    /// Slope by its standard error; 0 for a level line, infinite for a sloping line without noise.
    pub t: f64,
    /// Whole intervals that it rests on.
    pub intervals: usize,
}

impl Steadiness {
    /// Fits operations finished in each interval of equal length.
    ///
    /// The last count is left out: the interval in which a measurement ends is a partial one.
    /// `None` below [`FEWEST_INTERVALS`] whole intervals, or when nothing was finished in them.
    pub fn of(done_per_interval: &[u64]) -> Option<Self> {
        let (_, whole) = done_per_interval.split_last()?;
        let n = whole.len() as f64;
        let mean = whole.iter().map(|c| *c as f64).sum::<f64>() / n;
        if whole.len() < FEWEST_INTERVALS || mean == 0.0 {
            return None;
        }
        let middle = (n - 1.0) / 2.0;
        let points =
            || whole.iter().enumerate().map(|(i, c)| (i as f64 - middle, *c as f64 - mean));
        let spread: f64 = points().map(|(x, _)| x * x).sum();
        let slope = points().map(|(x, y)| x * y).sum::<f64>() / spread;
        let residual: f64 = points().map(|(x, y)| (y - slope * x).powi(2)).sum();
        let error = (residual / (n - 2.0) / spread).sqrt();
        let t = if slope == 0.0 { 0.0 } else { slope / error };
        Some(Self { slope_share: slope * n / mean, t, intervals: whole.len() })
    }

    /// True when the line changes by more than `limit_share` of the mean and not by noise.
    pub fn drifts(&self, limit_share: f64) -> bool {
        let critical = student::critical(ALPHA / 2.0, self.intervals as f64 - 2.0);
        self.slope_share.abs() > limit_share && self.t.abs() > critical
    }
}

/// What can be said of a trial's rate over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steady {
    /// No slope beyond the limit is shown.
    Yes,
    /// The rate rose or fell by more than the limit, and not by noise.
    No,
    /// Too few whole intervals, or nothing finished in them.
    TooShort,
}

/// Judges `done_per_interval` (see [`Steadiness::of`]) by a limit as a share of the mean: 0.1
/// allows a change of 10 % over the span.
pub fn is_steady(done_per_interval: &[u64], limit_share: f64) -> Steady {
    match Steadiness::of(done_per_interval) {
        None => Steady::TooShort,
        Some(line) if line.drifts(limit_share) => Steady::No,
        Some(_) => Steady::Yes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// Counts of `n` whole intervals and a partial one: a line from `start` to `end` with noise.
    fn line(n: u32, start: f64, end: f64, noise: f64, random: &mut SplitMix64) -> Vec<u64> {
        let step = (end - start) / f64::from(n);
        let level = |i: u32| start + step * (f64::from(i) + 0.5);
        let mut counts: Vec<u64> = (0..n)
            .map(|i| (level(i) * (1.0 + noise * random.normal())).max(0.0).round() as u64)
            .collect();
        counts.push((end / 7.0) as u64);
        counts
    }

    #[test]
    fn a_hand_reckoned_line_has_its_slope_and_t() {
        let got = Steadiness::of(&[8, 9, 11, 10, 12, 3]).unwrap();
        assert!((got.slope_share - 0.9 * 5.0 / 10.0).abs() < 1e-12, "{got:?}");
        assert!((got.t - 0.9 / (1.9f64 / 3.0 / 10.0).sqrt()).abs() < 1e-9, "{got:?}");
        assert_eq!(got.intervals, 5);
    }

    #[test]
    fn the_last_interval_does_not_count() {
        assert_eq!(is_steady(&[100, 100, 100, 100, 100, 1], 0.01), Steady::Yes);
        let whole = Steadiness::of(&[100, 100, 100, 100, 100, 100, 0]).unwrap();
        assert_eq!((whole.slope_share, whole.t, whole.intervals), (0.0, 0.0, 6));
    }

    #[test]
    fn too_short_is_not_steady() {
        for counts in [&[][..], &[5], &[100, 90, 80, 70, 60], &[0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(is_steady(counts, 0.1), Steady::TooShort, "{counts:?}");
        }
        assert_eq!(is_steady(&[100, 90, 80, 70, 60, 50], 0.1), Steady::No);
    }

    #[test]
    fn a_slope_without_noise_counts_only_beyond_the_limit() {
        let falling = [1_000, 990, 980, 970, 960, 950, 0];
        let got = Steadiness::of(&falling).unwrap();
        assert!(got.t < -1e6, "{got:?}");
        assert_eq!(is_steady(&falling, 0.05), Steady::No);
        assert_eq!(is_steady(&falling, 0.07), Steady::Yes);
    }

    #[test]
    fn noise_is_seldom_taken_for_a_slope_and_a_slope_seldom_for_noise() {
        let mut random = SplitMix64::new(11);
        let mut share = |n, end, noise| {
            let mut found = || is_steady(&line(n, 1e4, end, noise, &mut random), 0.1) == Steady::No;
            f64::from((0..2_000).map(|_| u32::from(found())).sum::<u32>()) / 2_000.0
        };
        for n in [5, 10, 40] {
            assert!(share(n, 1e4, 0.2) <= 0.02, "false alarms of {n} intervals");
        }
        assert!(share(20, 7e3, 0.05) >= 0.95, "a loss of 30 % goes unseen");
    }
}
