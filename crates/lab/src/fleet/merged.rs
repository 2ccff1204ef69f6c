//! What several workers measured, as the result of one load.

use load::PhaseRecord;
use model::{Contributor, Failure, OperationResult, Outage, Point};
use std::time::Instant;
use workloads::kv::Written;

use super::clock::Reading;
use super::messages::SentEnd;

/// Result of a load.
#[derive(Default)]
pub(crate) struct Offered {
    pub(crate) phase: PhaseRecord,
    pub(crate) written: Option<Written>,
    pub(crate) failure: Option<Failure>,
    pub(crate) interrupted: bool,
}

/// What is known of a worker during a load.
#[derive(Default)]
pub(super) struct Contribution {
    pub(super) before: Option<Reading>,
    pub(super) after: Option<Reading>,
    pub(super) ready: bool,
    pub(super) ended: Option<SentEnd>,
}

/// Merges the results of one load that started at `begins`, from workers with `threads` threads
/// each. Times of writes count from `since`.
pub(super) fn merge<'a>(
    contributions: impl Iterator<Item = (&'a str, Contribution)>,
    threads: u32,
    begins: Instant,
    since: Instant,
) -> Offered {
    let mut offered = Offered::default();
    for (at, (name, contribution)) in contributions.enumerate() {
        let clock_ns = match (&contribution.before, &contribution.after) {
            (Some(before), Some(after)) => before.bound_until(after),
            // Without the second reading nothing is known of its drift.
            _ => u64::MAX,
        };
        let Some(ended) = contribution.ended else { continue };
        let start_skew_ns = clock_ns.saturating_add(ended.late_ns);
        offered.failure = offered.failure.or(ended.failure.clone());
        let own = |point: &Point| Contributor {
            name: name.into(),
            start_skew_ns,
            threads,
            point: total_of(point),
        };
        let contributors: Vec<Contributor> = ended.points.iter().map(own).collect();
        written(&mut offered, &ended, (begins, since), start_skew_ns);
        let SentEnd { points, series, outages, .. } = ended;
        let phase = PhaseRecord { begun: None, points, series, outages };
        if at == 0 {
            offered.phase = phase;
        } else {
            add(&mut offered.phase, phase);
        }
        for (point, contributor) in offered.phase.points.iter_mut().zip(contributors) {
            point.contributors.push(contributor);
        }
    }
    offered
}

/// Adds what another worker measured. Stages that one of them did not complete are left out.
fn add(phase: &mut PhaseRecord, other: PhaseRecord) {
    phase.points.truncate(other.points.len());
    phase.points.iter_mut().zip(&other.points).for_each(|(own, theirs)| own.contribute(theirs));
    phase.series.add(0, &other.series);
    Outage::contribute(&mut phase.outages, other.outages);
}

/// The point with the total of its operations only, and without what only the sum needs.
fn total_of(point: &Point) -> Point {
    let whole = point.whole().cloned();
    let operations = whole.into_iter().map(|whole| OperationResult { slowest: None, ..whole });
    let operations = operations.collect();
    Point { operations, silences: Vec::new(), due: None, ..point.clone() }
}

/// Adds the writes of a worker. Its clock may be off by `skew_ns`, so each of its writes may have
/// been that much earlier or later.
fn written(
    offered: &mut Offered,
    ended: &SentEnd,
    (begins, since): (Instant, Instant),
    skew_ns: u64,
) {
    let Some(mut written) = ended.written.clone() else { return };
    let begins_ns = begins.saturating_duration_since(since).as_nanos() as u64;
    written.count_from_earlier(begins_ns.saturating_sub(ended.before_start_ns));
    written.widen(skew_ns.min(begins_ns));
    match &mut offered.written {
        Some(all) => all.merge(written),
        None => offered.written = Some(written),
    }
}
