//! The point of a load that several processes offer together: the sum of their points.
//!
//! Counts and histograms are added, and rates and percentiles follow from the sums. No percentile
//! is ever computed from those of the contributors.

use super::operation::{OperationResult, Restored};
use super::outage::Outage;
use super::point::{Beyond, Due, Point};
use super::silence::Silence;
use super::slowest::Slowest;

impl Point {
    /// Adds the point of another contributor to the same load over the same span. The server's CPU
    /// time is not added: the driver measures it once.
    pub fn contribute(&mut self, other: &Self) {
        let length_ns = self.length_ns.max(other.length_ns);
        self.own_share = self.mean_own_share(other);
        for theirs in &other.operations {
            let name = &theirs.operation;
            if let Some(own) = self.operations.iter_mut().find(|own| own.operation == *name) {
                own.contribute(theirs, (self.length_ns, other.length_ns));
                continue;
            }
            let has_total = self.whole().is_some_and(|whole| whole.operation == self.phase);
            let at = self.operations.len() - usize::from(has_total);
            let rate = |rate_per_s: f64| scaled(rate_per_s, other.length_ns, length_ns);
            self.operations.insert(
                at,
                OperationResult {
                    rate_per_s: rate(theirs.rate_per_s),
                    calls_rate_per_s: theirs.calls_rate_per_s.map(rate),
                    ..theirs.clone()
                },
            );
        }
        self.length_ns = length_ns;
        self.clients += other.clients;
        self.planned_per_s =
            self.planned_per_s.zip(other.planned_per_s).map(|(own, theirs)| own + theirs);
        self.unsent += other.unsent;
        self.warmup.merge(&other.warmup);
        self.generator_cpu_ns += other.generator_cpu_ns;
        self.generator_run_delay_ns += other.generator_run_delay_ns;
        // Whichever contributor was delayed the most.
        let (own, theirs) = (&mut self.disturbance, &other.disturbance);
        own.generator_ns = own.generator_ns.max(theirs.generator_ns);
        own.paused_ns = own.paused_ns.max(theirs.paused_ns);
        if let Some(theirs) = &other.due {
            self.due.get_or_insert_default().contribute(theirs);
        }
        self.silences = common_silences(&self.silences, &other.silences);
        self.failure = self.failure.take().or_else(|| other.failure.clone());
        self.restored.extend(&other.restored);
        self.rate_restored();
    }

    /// Share of the time that clients of both contributors spent outside operations.
    fn mean_own_share(&self, other: &Self) -> f64 {
        let weight = |one: &Self| f64::from(one.clients) * one.length_ns as f64;
        let (own, theirs) = (weight(self), weight(other));
        let spent = own * self.own_share + theirs * other.own_share;
        spent / (own + theirs).max(f64::MIN_POSITIVE)
    }

    /// Computes the rates from the times of all clients, if they restored records.
    fn rate_restored(&mut self) {
        let Some(all) = self.whole().map(|whole| whole.service.count()) else { return };
        if self.restored.is_empty() {
            return;
        }
        let rate_per_s = Restored::rate_per_s(&self.restored);
        for operation in &mut self.operations {
            let share = operation.service.count() as f64 / all.max(1) as f64;
            operation.rate_per_s = rate_per_s * share;
        }
    }
}

/// A rate over `from_ns` as a rate over `to_ns`.
fn scaled(rate_per_s: f64, from_ns: u64, to_ns: u64) -> f64 {
    rate_per_s * (from_ns as f64 / to_ns.max(1) as f64)
}

impl OperationResult {
    /// Adds the same operation of another contributor, over spans of both lengths.
    fn contribute(&mut self, other: &Self, (own_ns, other_ns): (u64, u64)) {
        let longest_ns = own_ns.max(other_ns);
        let sum = |own: f64, theirs: f64| {
            scaled(own, own_ns, longest_ns) + scaled(theirs, other_ns, longest_ns)
        };
        self.counts.merge(&other.counts);
        self.rate_per_s = sum(self.rate_per_s, other.rate_per_s);
        self.calls_rate_per_s = match (self.calls_rate_per_s, other.calls_rate_per_s) {
            (Some(own), Some(theirs)) => Some(sum(own, theirs)),
            (own, theirs) => own.or(theirs),
        };
        self.service.merge(&other.service);
        self.response.merge(&other.response);
        self.lag.merge(&other.lag);
        self.lock_wait.merge(&other.lock_wait);
        match (&mut self.slowest, &other.slowest) {
            (Some(own), Some(theirs)) => own.contribute(theirs),
            (own, theirs) => *own = own.take().or_else(|| theirs.clone()),
        }
    }
}

impl Slowest {
    /// The slowest of both contributors in each interval.
    fn contribute(&mut self, other: &Self) {
        merge_by(&mut self.service, &other.service, u64::max);
        merge_by(&mut self.response, &other.response, u64::max);
    }
}

impl Due {
    /// Adds the counts of another contributor.
    fn contribute(&mut self, other: &Self) {
        merge_by(&mut self.due_per_interval, &other.due_per_interval, |own, theirs| own + theirs);
        for theirs in &other.beyond {
            let limit_ns = theirs.limit_ns;
            let at = self.beyond.iter().position(|own| own.limit_ns == limit_ns);
            let at = at.unwrap_or_else(|| {
                self.beyond.push(Beyond { limit_ns, ..Beyond::default() });
                self.beyond.len() - 1
            });
            let own = &mut self.beyond[at].over_per_interval;
            merge_by(own, &theirs.over_per_interval, |own, theirs| own + theirs);
        }
        self.late += other.late;
    }
}

/// Combines numbers by interval; intervals that one of them lacks are 0 there.
fn merge_by(own: &mut Vec<u64>, theirs: &[u64], both: impl Fn(u64, u64) -> u64) {
    own.resize(own.len().max(theirs.len()), 0);
    own.iter_mut().zip(theirs).for_each(|(own, theirs)| *own = both(*own, *theirs));
}

/// Periods in which neither of two contributors got an answer. Each lasts at least
/// [`Silence::SHORTEST_NS`], so it is part of a silence of both.
fn common_silences(own: &[Silence], theirs: &[Silence]) -> Vec<Silence> {
    let both = |own: &Silence, theirs: &Silence| {
        let begun_ns = own.begun_ns.max(theirs.begun_ns);
        let ends_ns = (own.begun_ns + own.length_ns).min(theirs.begun_ns + theirs.length_ns);
        let length_ns = ends_ns.checked_sub(begun_ns)?;
        let is_same = own.operation == theirs.operation && length_ns >= Silence::SHORTEST_NS;
        is_same.then(|| Silence { operation: own.operation.clone(), begun_ns, length_ns })
    };
    own.iter().flat_map(|own| theirs.iter().filter_map(move |theirs| both(own, theirs))).collect()
}

impl Outage {
    /// Adds the outages that another contributor saw. Those of the same server that overlap become
    /// one, from its first lost answer to its last.
    pub fn contribute(all: &mut Vec<Self>, theirs: Vec<Self>) {
        for outage in theirs {
            let end_of = |o: &Self| o.begun_ns + o.length_ns;
            let overlaps = |own: &&mut Self| {
                own.server == outage.server
                    && own.begun_ns <= end_of(&outage)
                    && outage.begun_ns <= end_of(own)
            };
            match all.iter_mut().find(overlaps) {
                Some(own) => {
                    let end_ns = end_of(own).max(end_of(&outage));
                    own.begun_ns = own.begun_ns.min(outage.begun_ns);
                    own.length_ns = end_ns - own.begun_ns;
                    own.to_the_end |= outage.to_the_end;
                    own.taken_over_by = own.taken_over_by.take().or(outage.taken_over_by);
                }
                None => all.push(outage),
            }
        }
    }
}

#[cfg(test)]
#[path = "merging_tests.rs"]
mod tests;
