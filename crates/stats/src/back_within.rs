//! When a latency is within a limit again after an event.

/// Share of the intervals that must be within the limit, so that a single delay of the machine
/// does not count.
pub const WITHIN_SHARE: f64 = 0.95;
/// Minimum number of intervals that show that a latency stays within its limit.
const STAYS_FOR: usize = 5;

/// A latency around an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackWithin {
    /// True if it was within the limit before the event.
    pub was_within: bool,
    /// Time from the event until it was within the limit for good, nanoseconds; 0 if it never
    /// left it, `None` if it was not until the end.
    pub after_ns: Option<u64>,
}

/// Analyzes percentiles of consecutive intervals, each with its end, nanoseconds, around an event
/// at `event_ns`. It is within the limit for good from the start of the first interval that is, if
/// 95 % of all intervals from there to the end are, at least five. `None` without an interval
/// before the event or after it.
pub fn back_within(percentiles: &[(u64, u64)], limit_ns: u64, event_ns: u64) -> Option<BackWithin> {
    let split = percentiles.partition_point(|(until_ns, _)| *until_ns <= event_ns);
    let (before, after) = percentiles.split_at(split);
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let is_within = |intervals: &[(u64, u64)]| {
        let within = intervals.iter().filter(|(_, ns)| *ns <= limit_ns).count();
        within as f64 >= WITHIN_SHARE * intervals.len() as f64
    };
    let is_start = |at: &usize| after[*at].1 <= limit_ns && is_within(&after[*at..]);
    let last = after.len().saturating_sub(STAYS_FOR - 1);
    let starts_ns = |at: usize| percentiles[split + at - 1].0;
    let after_ns = (0..last).find(is_start).map(|at| starts_ns(at).saturating_sub(event_ns));
    Some(BackWithin { was_within: is_within(before), after_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of 100 each; those from `from` to `until` exceed the limit of 10.
    fn intervals((from, until): (usize, usize)) -> Vec<(u64, u64)> {
        let p99 = |i| if (from..until).contains(&i) { 99 } else { 5 };
        (0..100).map(|i| (100 * (i as u64 + 1), p99(i))).collect()
    }

    #[test]
    fn it_is_back_when_it_stays_within_the_limit() {
        let mut all = intervals((20, 50));
        let expected = BackWithin { was_within: true, after_ns: Some(3_000) };
        assert_eq!(back_within(&all, 10, 2_000), Some(expected));
        // A few good intervals in between, and one bad one later, make no difference.
        all[30].1 = 5;
        all[80].1 = 99;
        assert_eq!(back_within(&all, 10, 2_000), Some(expected));
    }

    #[test]
    fn a_latency_that_never_leaves_the_limit_is_back_at_once() {
        let found = back_within(&intervals((0, 0)), 10, 2_050).unwrap();
        assert_eq!(found, BackWithin { was_within: true, after_ns: Some(0) });
    }

    #[test]
    fn a_latency_that_stays_beyond_the_limit_is_not_back() {
        let found = back_within(&intervals((20, 97)), 10, 2_000).unwrap();
        assert_eq!(found.after_ns, None);
        let found = back_within(&intervals((10, 40)), 10, 2_000).unwrap();
        assert!(!found.was_within);
    }

    #[test]
    fn without_intervals_on_both_sides_there_is_no_result() {
        assert_eq!(back_within(&[], 10, 0), None);
        assert_eq!(back_within(&[(100, 5)], 10, 200), None);
        assert_eq!(back_within(&[(100, 5)], 10, 50), None);
    }
}
