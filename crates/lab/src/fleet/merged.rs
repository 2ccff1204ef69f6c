//! What several workers measured, as the result of one load.
//!
//! Results are merged as they arrive, since those of many workers over a long time do not fit into
//! memory at once. What remains of each is the total of its operations.

use load::PhaseRecord;
use model::{Contributor, Failure, OperationResult, Outage, Point, ReadBack};
use std::mem;
use std::time::Instant;
use workloads::kv::Written;

use super::clock::Reading;
use super::messages::SentEnd;

/// Result of a load.
#[derive(Default)]
pub struct Offered {
    /// What was measured.
    pub phase: PhaseRecord,
    /// Writes to a sample of keys, if they are kept.
    pub written: Option<Written>,
    /// Result of reading the last writes of blocking clients back.
    pub read_back: Option<ReadBack>,
    /// Why the load ended early.
    pub failure: Option<Failure>,
    /// True if the user stopped it.
    pub interrupted: bool,
}

/// What is known of a worker during a load.
#[derive(Default)]
pub(super) struct Contribution {
    pub(super) before: Option<Reading>,
    pub(super) after: Option<Reading>,
    pub(super) ready: bool,
    /// Its end, after [`Sum::take`].
    pub(super) ended: Option<SentEnd>,
    /// True if the worker is gone.
    pub(super) gone: bool,
}

impl Contribution {
    /// Bound on the difference between its start and the planned one, nanoseconds. `None` without
    /// the second reading of its clock: then nothing is known of its drift.
    fn start_skew_ns(&self, late_ns: u64) -> Option<u64> {
        let (before, after) = self.before.as_ref().zip(self.after.as_ref())?;
        Some(before.bound_until(after).saturating_add(late_ns))
    }
}

/// Who contributed.
pub(super) struct By {
    pub(super) name: String,
    pub(super) threads: u32,
    pub(super) shares_cpus: bool,
}

/// The sum of all workers that have ended.
#[derive(Default)]
pub(super) struct Sum {
    phase: Option<PhaseRecord>,
    /// True if a worker may have nothing to do.
    may_be_idle: bool,
}

impl Sum {
    /// Of workers that may have nothing to do, or not.
    pub(super) fn new(may_be_idle: bool) -> Self {
        Self { may_be_idle, ..Self::default() }
    }

    /// Adds the results of a worker, and leaves only the totals of its points in `ended`. Stages
    /// that one of the workers did not complete are left out.
    pub(super) fn take(&mut self, ended: &mut SentEnd) {
        if self.may_be_idle && ended.points.is_empty() {
            return;
        }
        let totals = ended.points.iter().map(total_of).collect();
        let points = mem::replace(&mut ended.points, totals);
        let (series, outages) = (mem::take(&mut ended.series), mem::take(&mut ended.outages));
        let Some(phase) = &mut self.phase else {
            self.phase = Some(PhaseRecord { begun: None, points, series, outages });
            return;
        };
        phase.points.truncate(points.len());
        phase.points.iter_mut().zip(&points).for_each(|(own, theirs)| own.contribute(theirs));
        phase.series.add(0, &series);
        Outage::contribute(&mut phase.outages, outages);
    }

    /// The result of a load that started at `begins`. Times of writes count from `since`.
    pub(super) fn complete(
        self,
        contributions: impl Iterator<Item = (By, Contribution)>,
        (begins, since): (Instant, Instant),
    ) -> Offered {
        let mut offered = Offered { phase: self.phase.unwrap_or_default(), ..Offered::default() };
        for (By { name, threads, shares_cpus }, mut contribution) in contributions {
            let Some(ended) = contribution.ended.take() else { continue };
            let skew_ns = contribution.start_skew_ns(ended.late_ns);
            let SentEnd { points, written, before_start_ns, read_back, failure, .. } = ended;
            offered.failure = offered.failure.or(failure);
            if let Some(read) = read_back {
                offered.read_back.get_or_insert_default().merge(read);
            }
            if let Some(start_skew_ns) = skew_ns {
                for (whole, point) in offered.phase.points.iter_mut().zip(points) {
                    let name = name.clone();
                    let one = Contributor { name, start_skew_ns, threads, shares_cpus, point };
                    whole.contributors.push(one);
                }
            }
            if let Some(mut written) = written {
                let begins_ns = begins.saturating_duration_since(since).as_nanos() as u64;
                written.count_from_earlier(begins_ns.saturating_sub(before_start_ns));
                // Its clock may be off, so each write may have been earlier or later.
                written.widen(skew_ns.map_or(begins_ns, |skew_ns| skew_ns.min(begins_ns)));
                match &mut offered.written {
                    Some(all) => all.merge(written),
                    None => offered.written = Some(written),
                }
            }
        }
        offered
    }
}

/// The point with the total of its operations only, and without what only the sum needs.
fn total_of(point: &Point) -> Point {
    let whole = point.whole().cloned();
    let operations = whole.into_iter().map(|whole| OperationResult { slowest: None, ..whole });
    let (operations, silences) = (operations.collect(), Vec::new());
    let Point { phase, stage, probe, begun_ns, length_ns, planned_per_s, clients, .. } = point;
    Point {
        phase: phase.clone(),
        stage: *stage,
        probe: *probe,
        begun_ns: *begun_ns,
        length_ns: *length_ns,
        planned_per_s: *planned_per_s,
        clients: *clients,
        operations,
        unsent: point.unsent,
        warmup: point.warmup.clone(),
        generator_cpu_ns: point.generator_cpu_ns,
        generator_run_delay_ns: point.generator_run_delay_ns,
        disturbance: point.disturbance,
        own_share: point.own_share,
        silences,
        failure: point.failure.clone(),
        ..Point::default()
    }
}

#[cfg(test)]
#[path = "merged_tests.rs"]
mod tests;
