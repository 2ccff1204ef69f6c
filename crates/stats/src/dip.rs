//! Effect of an event on a rate: its lowest value and its recovery time.

/// Intervals per window: rates are means over a window, to reduce noise. At low rates they are
/// judged over wider ones.
const WINDOW: usize = 5;
/// Maximum number of windows before the event that determine the earlier rate.
const BEFORE: usize = 100;
/// A rate has recovered when it is at least this share of the earlier rate, or within chance of it.
pub const BACK_SHARE: f64 = 0.95;
/// Standard errors by which a recovered rate may be lower by chance.
const BACK_ERRORS: f64 = 2.0;
/// Standard errors below which a rate has fallen: the lowest of many windows is often two lower.
const FALLEN_ERRORS: f64 = 3.0;
/// Operations that must be expected in a window: with fewer, half of them may lack by chance.
pub const LEAST: f64 = 36.0;
/// Intervals for which a recovered rate must last, or one window if that is longer, so that a
/// random peak does not count.
const BACK_FOR: usize = 14;

/// The rate before, during and after an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dip {
    /// Median rate before the event, per second, above 0.
    pub before_per_s: f64,
    /// Lowest rate during the event, as a share of the rate before.
    pub lowest_share: f64,
    /// Time from the start of the event until the rate had recovered for good, nanoseconds. 0 if it
    /// never fell, `None` if it did not recover.
    pub recovery_ns: Option<u64>,
}

/// Analyzes a rate around an event that lasts from interval `from` to interval `until` (the number
/// of intervals if it does not end).
///
/// `counts` are operations in consecutive intervals of `interval_ns`; rates are means over windows
/// of five intervals. Independent requests vary from window to window by chance, with a standard
/// error of the square root of their number. So windows are widened, up to a second, until two
/// standard errors are at most 5 %; at lower rates, two standard errors are allowed instead of 5 %.
/// The rate has fallen if a window is lower than before by three standard errors, and 5 %. It has
/// recovered from the first window after the lowest one that is at the earlier level with each of
/// its beginnings, if all windows within 14 intervals from its start are. `None` with fewer than
/// ten intervals before the event, with fewer than [`LEAST`] operations expected in a window, or
/// with no window after the event.
pub fn dip(counts: &[u64], interval_ns: u64, (from, until): (usize, usize)) -> Option<Dip> {
    let sums = |size: usize| counts.windows(size).map(|w| w.iter().sum::<u64>() as f64);
    // Windows that end before the event starts.
    let ahead = (from + 1).checked_sub(WINDOW).filter(|ahead| *ahead > WINDOW)?;
    let all: Vec<f64> = sums(WINDOW).collect();
    let mut before = all.get(ahead.saturating_sub(BEFORE)..ahead)?.to_vec();
    before.sort_by(f64::total_cmp);
    let before = before.get(before.len() / 2)? / WINDOW as f64;
    let widest = widest(before, interval_ns)?;
    let shares = |size: usize| sums(size).skip(from).map(move |sum| sum / (before * size as f64));
    let level = |size: usize, errors: f64| level(before * size as f64, errors);
    let lowest = |size: usize| {
        let during = shares(size).take(until.saturating_sub(from).max(1)).enumerate();
        during.min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let (narrow, wide) = (lowest(WINDOW)?, lowest(widest)?);
    let sized = [(narrow, WINDOW), (wide, widest)];
    let fallen = sized.iter().filter(|((_, share), size)| *share < level(*size, FALLEN_ERRORS));
    let at = fallen.map(|((at, _), _)| *at).max();
    // After a silence, queued requests complete together. A window that recovers only by those
    // starts in the silence and does not count.
    let begins = |at: usize| counts[from + at] as f64 >= BACK_SHARE / 2.0 * before;
    let sum = |at: usize, size: usize| counts[from + at..][..size].iter().sum::<u64>() as f64;
    let is_back =
        |at: usize, size: usize| sum(at, size) >= level(size, BACK_ERRORS) * before * size as f64;
    let windows = (BACK_FOR + 1).saturating_sub(widest).max(1);
    let starts = (counts.len() - from + 2).saturating_sub(widest + windows);
    let stays = |at: &usize| {
        begins(*at)
            && (WINDOW..=widest).all(|size| is_back(*at, size))
            && (*at..*at + windows).all(|at| is_back(at, widest))
    };
    let back = at.map_or(Some(0), |at| (at..starts).find(stays));
    Some(Dip {
        before_per_s: before / (interval_ns as f64 / 1e9),
        lowest_share: narrow.1,
        recovery_ns: back.map(|intervals| intervals as u64 * interval_ns),
    })
}

/// Intervals of the window over which a rate of `before` operations per interval is judged; `None`
/// if chance hides whatever happens to it.
fn widest(before: f64, interval_ns: u64) -> Option<usize> {
    let in_second = (1e9 / interval_ns as f64).ceil().max(WINDOW as f64);
    let enough = (BACK_ERRORS / (1.0 - BACK_SHARE)).powi(2);
    let size = (enough / before).ceil().clamp(WINDOW as f64, in_second);
    (before * size >= LEAST).then_some(size as usize)
}

/// The share of `expected` operations that is still at the earlier level, within that number of
/// standard errors.
fn level(expected: f64, errors: f64) -> f64 {
    BACK_SHARE.min(1.0 - errors / expected.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    const INTERVAL_NS: u64 = 100_000_000;

    /// 10,000/s, except for a share `low` of that from interval `from` to `until`.
    fn counts(low: f64, (from, until): (usize, usize)) -> Vec<u64> {
        let count = |i| if (from..until).contains(&i) { (low * 1e3) as u64 } else { 1_000 };
        (0..200).map(count).collect()
    }

    #[test]
    fn a_rate_has_recovered_when_it_stays_up() {
        let found = dip(&counts(0.4, (100, 130)), INTERVAL_NS, (100, 150)).unwrap();
        assert!((found.before_per_s - 10_000.0).abs() < 1e-6, "{found:?}");
        assert!((found.lowest_share - 0.4).abs() < 1e-9, "{found:?}");
        assert_eq!(found.recovery_ns, Some(3_000_000_000));
        // A few good intervals in between do not count.
        let mut counts = counts(0.4, (100, 130));
        counts[110..114].fill(1_000);
        assert_eq!(dip(&counts, INTERVAL_NS, (100, 150)).unwrap(), found);
    }

    #[test]
    fn queued_requests_do_not_shorten_the_recovery() {
        let mut counts = counts(0.0, (100, 120));
        counts[120] = 21_000;
        let found = dip(&counts, INTERVAL_NS, (100, 200)).unwrap();
        assert_eq!(found.recovery_ns, Some(2_000_000_000));
    }

    #[test]
    fn a_rate_that_never_falls_recovers_in_zero_time() {
        let found = dip(&counts(0.97, (100, 130)), INTERVAL_NS, (100, 200)).unwrap();
        assert_eq!(found.recovery_ns, Some(0));
    }

    #[test]
    fn a_rate_that_stays_low_does_not_recover() {
        let found = dip(&counts(0.0, (100, 200)), INTERVAL_NS, (100, 200)).unwrap();
        assert_eq!((found.lowest_share, found.recovery_ns), (0.0, None));
    }

    /// Independent requests, on average `per_interval` in each of 100 intervals, none in those of
    /// `silent`.
    fn by_chance(per_interval: f64, silent: std::ops::Range<usize>, seed: u64) -> Vec<u64> {
        let mut random = SplitMix64::new(seed);
        let mut poisson = || {
            let mut product = random.unit();
            let mut count = 0;
            while product > (-per_interval).exp() {
                product *= random.unit();
                count += 1;
            }
            count
        };
        let count = |i: usize| if silent.contains(&i) { 0 } else { poisson() };
        (0..100).map(count).collect()
    }

    /// Times until 200 rates recovered from silence in intervals `silent`.
    fn recoveries(per_interval: f64, silent: &std::ops::Range<usize>) -> Vec<Option<u64>> {
        let found = |seed| {
            dip(&by_chance(per_interval, silent.clone(), seed), INTERVAL_NS, (30, 100)).unwrap()
        };
        (0..200).map(|seed| found(seed).recovery_ns).collect()
    }

    #[test]
    fn chance_at_a_low_rate_is_not_a_fall() {
        for per_interval in [5.0, 30.0, 100.0, 300.0] {
            let found = recoveries(per_interval, &(0..0));
            let at_once = found.iter().filter(|ns| **ns == Some(0)).count();
            let never = found.iter().filter(|ns| ns.is_none()).count();
            assert!(at_once >= 165 && never <= 15, "{per_interval}: {at_once} {never}");
        }
    }

    #[test]
    fn a_low_rate_recovers_from_silence_and_not_before_its_end() {
        for per_interval in [5.0, 30.0, 100.0, 300.0] {
            let mut found = recoveries(per_interval, &(30..50));
            found.sort_unstable();
            let never = found.iter().filter(|ns| ns.is_none()).count();
            assert!(never <= 6, "{per_interval}: {never}");
            assert_eq!(found[never], Some(2_000_000_000), "{per_interval}");
            assert!(found[never + 120] <= Some(2_200_000_000), "{per_interval}: {found:?}");
        }
    }

    #[test]
    fn a_wide_window_needs_no_longer_measurement() {
        let counts: Vec<u64> =
            (0..64).map(|i| if (30..50).contains(&i) { 0 } else { 30 }).collect();
        assert_eq!(dip(&counts, INTERVAL_NS, (30, 64)).unwrap().recovery_ns, Some(2_000_000_000));
        assert_eq!(dip(&counts[..63], INTERVAL_NS, (30, 63)).unwrap().recovery_ns, None);
    }

    #[test]
    fn a_rate_that_chance_hides_has_no_result() {
        assert_eq!(dip(&[3; 100], INTERVAL_NS, (30, 100)), None);
        assert!(dip(&[4; 100], INTERVAL_NS, (30, 100)).is_some());
    }

    #[test]
    fn without_an_earlier_rate_there_is_no_result() {
        assert_eq!(dip(&counts(0.5, (3, 9)), INTERVAL_NS, (5, 9)), None);
        assert_eq!(dip(&[0; 100], INTERVAL_NS, (50, 60)), None);
        assert_eq!(dip(&[5; 60], INTERVAL_NS, (60, 60)), None);
    }
}
