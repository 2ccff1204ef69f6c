//! Effect of an event on a rate: its lowest value and its recovery time.

/// Intervals per window: rates are means over a window, to reduce noise.
const WINDOW: usize = 5;
/// Maximum number of windows before the event that determine the earlier rate.
const BEFORE: usize = 100;
/// A rate has recovered when it is at least this share of the earlier rate.
pub const BACK_SHARE: f64 = 0.95;
/// Consecutive windows for which a recovered rate must last, so that a random peak does not count.
const BACK_FOR: usize = 10;

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
/// `counts` are operations in consecutive intervals of `interval_ns`; rates are means of five
/// intervals. The rate has recovered from the first window after its lowest point that starts ten
/// windows in a row at the earlier level. `None` with fewer than ten intervals before the event, if
/// there were no operations in them, or with no intervals after it.
pub fn dip(counts: &[u64], interval_ns: u64, (from, until): (usize, usize)) -> Option<Dip> {
    let per_s = |count: u64| count as f64 / (WINDOW as f64 * interval_ns as f64 / 1e9);
    let rates: Vec<f64> = counts.windows(WINDOW).map(|w| per_s(w.iter().sum())).collect();
    // Windows that end before the event starts.
    let ahead = (from + 1).checked_sub(WINDOW).filter(|ahead| *ahead > WINDOW)?;
    let mut before = rates.get(ahead.saturating_sub(BEFORE)..ahead)?.to_vec();
    before.sort_by(f64::total_cmp);
    let before_per_s = before[before.len() / 2];
    let after = rates.get(from..).filter(|after| !after.is_empty() && before_per_s > 0.0)?;
    let during = &after[..until.saturating_sub(from).clamp(1, after.len())];
    let lowest = during.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    let (at, lowest_per_s) = lowest?;
    let is_back = |rate: &f64| *rate >= BACK_SHARE * before_per_s;
    // After a silence, queued requests complete together. A window that recovers only by those
    // starts in the silence and does not count.
    let first = |at: usize| counts[from + at] as f64 / (interval_ns as f64 / 1e9);
    let stays = |at: &usize| {
        let next = &after[*at..after.len().min(at + BACK_FOR)];
        let begins = first(*at) >= BACK_SHARE / 2.0 * before_per_s;
        begins && next.len() == BACK_FOR && next.iter().all(is_back)
    };
    let back = if is_back(&lowest_per_s) { Some(0) } else { (at..after.len()).find(stays) };
    Some(Dip {
        before_per_s,
        lowest_share: lowest_per_s / before_per_s,
        recovery_ns: back.map(|intervals| intervals as u64 * interval_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn without_an_earlier_rate_there_is_no_result() {
        assert_eq!(dip(&counts(0.5, (3, 9)), INTERVAL_NS, (5, 9)), None);
        assert_eq!(dip(&[0; 100], INTERVAL_NS, (50, 60)), None);
        assert_eq!(dip(&[5; 60], INTERVAL_NS, (60, 60)), None);
    }
}
