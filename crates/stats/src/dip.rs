//! What an event did to a rate: how low it fell, and when it was back.

/// Counts are looked at in windows of so many intervals, so that chance decides less.
const WINDOW: usize = 5;
/// The rate before is that of at most so many windows ahead of the event.
const BEFORE: usize = 100;
/// A rate is back where it is at least this share of the rate before.
pub const BACK_SHARE: f64 = 0.95;
/// For so many windows on end, so that one that is high by chance ends nothing.
const BACK_FOR: usize = 10;

/// A rate around an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dip {
    /// Median rate before the event, per second, above 0.
    pub before_per_s: f64,
    /// The lowest rate while the event lasted, as a share of that.
    pub lowest_share: f64,
    /// From the event's begin until the rate was back and stayed, nanoseconds; 0 where it never
    /// fell, `None` where it did not come back.
    pub recovery_ns: Option<u64>,
}

/// What happened to a rate from interval `from` on, when an event began that ended at interval
/// `until`; the number of intervals where it has no end.
///
/// `counts` are operations in consecutive intervals of `interval_ns`; each rate is the mean of five
/// of them. The lowest is that of the event, and back is the first rate after it that stays for ten
/// intervals. `None` with less than ten intervals before the event, where nothing was done then, or
/// with nothing after it.
pub fn dip(counts: &[u64], interval_ns: u64, (from, until): (usize, usize)) -> Option<Dip> {
    let per_s = |count: u64| count as f64 / (WINDOW as f64 * interval_ns as f64 / 1e9);
    let rates: Vec<f64> = counts.windows(WINDOW).map(|w| per_s(w.iter().sum())).collect();
    // Windows that end before the event begins.
    let ahead = (from + 1).checked_sub(WINDOW).filter(|ahead| *ahead > WINDOW)?;
    let mut before = rates.get(ahead.saturating_sub(BEFORE)..ahead)?.to_vec();
    before.sort_by(f64::total_cmp);
    let before_per_s = before[before.len() / 2];
    let after = rates.get(from..).filter(|after| !after.is_empty() && before_per_s > 0.0)?;
    let during = &after[..until.saturating_sub(from).clamp(1, after.len())];
    let lowest = during.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    let (at, lowest_per_s) = lowest?;
    let is_back = |rate: &f64| *rate >= BACK_SHARE * before_per_s;
    // A window that is back by what was answered at once after a silence begins in that silence.
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

    /// 10,000 a second, but for `low` of that from interval `from` to `until`.
    fn counts(low: f64, (from, until): (usize, usize)) -> Vec<u64> {
        let count = |i| if (from..until).contains(&i) { (low * 1e3) as u64 } else { 1_000 };
        (0..200).map(count).collect()
    }

    #[test]
    fn a_rate_that_falls_is_back_when_it_stays() {
        let found = dip(&counts(0.4, (100, 130)), INTERVAL_NS, (100, 150)).unwrap();
        assert!((found.before_per_s - 10_000.0).abs() < 1e-6, "{found:?}");
        assert!((found.lowest_share - 0.4).abs() < 1e-9, "{found:?}");
        assert_eq!(found.recovery_ns, Some(3_000_000_000));
        // A few good intervals in between are none.
        let mut counts = counts(0.4, (100, 130));
        counts[110..114].fill(1_000);
        assert_eq!(dip(&counts, INTERVAL_NS, (100, 150)).unwrap(), found);
    }

    #[test]
    fn what_waited_and_is_answered_at_once_moves_no_recovery() {
        let mut counts = counts(0.0, (100, 120));
        counts[120] = 21_000;
        let found = dip(&counts, INTERVAL_NS, (100, 200)).unwrap();
        assert_eq!(found.recovery_ns, Some(2_000_000_000));
    }

    #[test]
    fn a_rate_that_never_falls_needs_no_recovery() {
        let found = dip(&counts(0.97, (100, 130)), INTERVAL_NS, (100, 200)).unwrap();
        assert_eq!(found.recovery_ns, Some(0));
    }

    #[test]
    fn a_rate_that_stays_low_does_not_recover() {
        let found = dip(&counts(0.0, (100, 200)), INTERVAL_NS, (100, 200)).unwrap();
        assert_eq!((found.lowest_share, found.recovery_ns), (0.0, None));
    }

    #[test]
    fn without_a_rate_before_nothing_is_said() {
        assert_eq!(dip(&counts(0.5, (3, 9)), INTERVAL_NS, (5, 9)), None);
        assert_eq!(dip(&[0; 100], INTERVAL_NS, (50, 60)), None);
        assert_eq!(dip(&[5; 60], INTERVAL_NS, (60, 60)), None);
    }
}
