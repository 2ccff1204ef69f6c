//! Times of operations, including failed ones.

use stats::{Histogram, Times};

use super::counts::Counts;
use super::failure::ErrorClass;

impl Counts {
    /// Times of the counted operations: `answered` for successful ones, and at least `timeout_ns`
    /// for failed ones if any timed out.
    pub fn times(&self, answered: &Histogram, timeout_ns: u64) -> Times {
        let timed_out = self.errors_by_class.contains_key(&ErrorClass::Timeout);
        Times::new(answered, self.error, if timed_out { timeout_ns } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Time;

    #[test]
    fn only_timeouts_raise_the_lower_bound() {
        let mut counts = Counts::default();
        counts.fail(ErrorClass::Refused, "");
        let p99 = |counts: &Counts| counts.times(&Histogram::new(), 5).quantile(0.99);
        assert_eq!(p99(&counts), Some(Time::Bound { at_least: 0 }));
        counts.fail(ErrorClass::Timeout, "");
        assert_eq!(p99(&counts), Some(Time::Bound { at_least: 5 }));
    }
}
