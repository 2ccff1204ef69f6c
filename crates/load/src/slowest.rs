//! The longest time in each short interval of a phase. It shows how many separate slow episodes a
//! store had, which no histogram shows.

use crate::intervals::merge_by;

/// Shortest and longest interval, nanoseconds.
const SHORTEST_NS: u64 = 5_000_000;
const LONGEST_NS: u64 = 100_000_000;

/// The longest time among the requests due in each interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slowest {
    interval_ns: u64,
    /// 0 if nothing was due, `u64::MAX` if something failed.
    longest_ns: Vec<u64>,
    /// Index of the last request's interval, and its start.
    at: usize,
    starts_ns: u64,
}

impl Slowest {
    pub(crate) fn new(interval_ns: u64) -> Self {
        Self { interval_ns, longest_ns: vec![0], ..Self::default() }
    }

    pub(crate) fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Records the time of a request that was due `due_ns` after the start of the measurement.
    #[inline]
    pub(crate) fn record(&mut self, due_ns: u64, ns: u64) {
        if due_ns.wrapping_sub(self.starts_ns) >= self.interval_ns {
            self.advance_to(due_ns);
        }
        if let Some(longest_ns) = self.longest_ns.get_mut(self.at)
            && ns > *longest_ns
        {
            *longest_ns = ns;
        }
    }

    /// Records a failed request.
    pub(crate) fn fail(&mut self, due_ns: u64) {
        self.record(due_ns, u64::MAX);
    }

    fn advance_to(&mut self, due_ns: u64) {
        if self.interval_ns == 0 {
            return;
        }
        self.at = (due_ns / self.interval_ns) as usize;
        self.starts_ns = self.at as u64 * self.interval_ns;
        if self.longest_ns.len() <= self.at {
            self.longest_ns.resize(self.at + 1, 0);
        }
    }

    /// Adds the records of `other`, which has intervals of the same length.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.interval_ns = self.interval_ns.max(other.interval_ns);
        merge_by(&mut self.longest_ns, &other.longest_ns, u64::max);
    }

    /// Clears everything but keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.longest_ns.fill(0);
    }

    /// Converts to the format of a record; `response` is given where response times are kept
    /// separately.
    pub(crate) fn to_record(&self, response: Option<&Self>) -> model::Slowest {
        let of = |slowest: &Self| slowest.longest_ns.clone();
        model::Slowest {
            interval_ns: self.interval_ns,
            service: of(self),
            response: response.map(of).unwrap_or_default(),
        }
    }
}

/// Length of an interval in a measurement of that length: a hundredth of it, within limits.
pub(crate) fn interval_ns(length_ns: Option<u64>) -> u64 {
    length_ns.map_or(LONGEST_NS, |ns| (ns / 100).clamp(SHORTEST_NS, LONGEST_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interval_keeps_its_longest() {
        let mut slowest = Slowest::new(10);
        for (due_ns, ns) in [(0, 3), (9, 5), (9, 4), (31, 7), (12, 2), (33, 6)] {
            slowest.record(due_ns, ns);
        }
        assert_eq!(slowest.longest_ns, [5, 2, 0, 7]);
        let mut other = Slowest::new(10);
        other.record(1, 9);
        other.fail(45);
        slowest.merge(&other);
        assert_eq!(slowest.longest_ns, [9, 2, 0, 7, u64::MAX]);
        let mut empty = Slowest::default();
        empty.merge(&slowest);
        assert_eq!(empty.to_record(None).service, slowest.longest_ns);
        slowest.clear();
        slowest.record(20, 1);
        assert_eq!(slowest.longest_ns, [0, 0, 1, 0, 0]);
    }
}
