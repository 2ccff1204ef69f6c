//! What operations took, with those that failed.

use stats::{Histogram, Times};

use super::counts::Counts;
use super::failure::ErrorClass;

impl Counts {
    /// The times of the operations so counted: those answered took `answered`, and one that timed
    /// out was waited for as long as `timeout_ns`.
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
    fn only_a_timeout_was_waited_for_so_long() {
        let mut counts = Counts::default();
        counts.fail(ErrorClass::Refused, "");
        let p99 = |counts: &Counts| counts.times(&Histogram::new(), 5).quantile(0.99);
        assert_eq!(p99(&counts), Some(Time::Bound { at_least: 0 }));
        counts.fail(ErrorClass::Timeout, "");
        assert_eq!(p99(&counts), Some(Time::Bound { at_least: 5 }));
    }
}
