//! Requests due in each interval of an open load, and how many of them were answered too late. A
//! search for the highest rate within limits decides by these counts.
//!
//! Requests count in the interval in which they were due, however late they are answered. Failed
//! requests exceed every limit.

use model::{Beyond, Due};

use super::row::{INTERVAL_NS, Times};
use crate::intervals::{add_at, merge};

/// Counts of one thread, or merged counts of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct DueCounts(Due);

impl DueCounts {
    /// Empty counts for these limits.
    pub(crate) fn new(limits_ns: &[u64]) -> Self {
        let beyond = |limit_ns: &u64| Beyond { limit_ns: *limit_ns, ..Beyond::default() };
        Self(Due { beyond: limits_ns.iter().map(beyond).collect(), ..Due::default() })
    }

    /// Counts requests that were answered at `done_ns`, or failed (`None`), in a measurement that
    /// started at `from_ns`.
    pub(crate) fn count(
        &mut self,
        intended_ns: u64,
        done_ns: Option<u64>,
        (requests, from_ns): (u64, u64),
    ) {
        let interval = (intended_ns.saturating_sub(from_ns) / INTERVAL_NS) as usize;
        let ns = done_ns.map(|done_ns| done_ns.saturating_sub(intended_ns));
        add_at(&mut self.0.due_per_interval, interval, requests);
        for beyond in &mut self.0.beyond {
            if ns.is_none_or(|ns| ns > beyond.limit_ns) {
                add_at(&mut beyond.over_per_interval, interval, requests);
            }
        }
    }

    /// Counts a request if it was sent late by more than half of the lowest limit although a client
    /// was free.
    pub(crate) fn count_if_late(&mut self, times: &Times) {
        let late_ns = times.sent_ns.saturating_sub(times.intended_ns);
        let limits_ns = self.0.beyond.iter().map(|beyond| beyond.limit_ns);
        self.0.late += u64::from(late_ns > limits_ns.min().unwrap_or(u64::MAX) / 2);
    }

    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        merge(&mut self.0.due_per_interval, &other.0.due_per_interval);
        for own in &mut self.0.beyond {
            if let Some(theirs) = other.0.beyond(own.limit_ns) {
                merge(&mut own.over_per_interval, &theirs.over_per_interval);
            }
        }
        self.0.late += other.0.late;
    }

    /// Clears everything but keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.0.due_per_interval.fill(0);
        self.0.beyond.iter_mut().for_each(|beyond| beyond.over_per_interval.fill(0));
        self.0.late = 0;
    }

    /// Converts to the format of a record, in which each limit has a count for every interval.
    pub(crate) fn to_due(&self) -> Due {
        let mut due = self.0.clone();
        let intervals = due.due_per_interval.len();
        due.beyond.iter_mut().for_each(|beyond| beyond.over_per_interval.resize(intervals, 0));
        due
    }
}
