//! A search for the highest rate within limits: what is planned, and its probes, which are points
//! of a trial, as [`stats::search`] judges them. Run and report read them by the same function, so
//! that a record leads to the result that the run had.

use serde::{Deserialize, Serialize};
use stats::search::{Limit, Next, ProbeResult, Purpose, Settings, Step};
use stats::tail::Batch;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use crate::trial::{Beyond, Point};

mod slo;

pub use slo::{Slo, SloError};

/// Shortest probe, nanoseconds: with less, nobody can tell how requests depend on each other.
pub const PROBE_NS_MIN: u64 = 500_000_000;
/// Most limits of a search.
pub(crate) const LIMITS_MAX: usize = 16;
/// A store is at rest again when its median is no longer than so many times that of its first rest,
/// or than so small a part of the strictest limit.
const RESTED_FACTOR: u64 = 2;
const RESTED_PART: u64 = 4;
/// Requests of which none may be due by chance.
const FEW: f64 = 20.0;
/// Share of a measurement's time that others may take, where nothing asks for less: one part in
/// twenty is wider than the zone in which two targets count as equal.
pub const TAKEN_SHARE_MAX: f64 = 0.05;
/// By how much of its length a probe may last longer before a queue is said to have grown.
const OVERRUN_MAX: f64 = 0.01;

/// What besides the store may have made a probe miss a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Others had the CPU of the generator or of the server.
    Others,
    /// The generator sent late although a client was free.
    Generator,
}

/// What is searched for, and how thoroughly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Search {
    /// All of them must hold; at least one.
    pub slos: Vec<Slo>,
    /// Shortest length of a probe, nanoseconds, above 0.
    pub probe_ns: u64,
    /// Rounds of the confirmation, at least 1.
    pub rounds: u32,
}

impl Search {
    /// What the search of a block needs to know, by the seed of its plan.
    pub fn settings(&self, seed: u64, block: u32) -> Settings {
        let limit = |slo: &Slo| Limit { limit_ns: slo.limit_ns(), allowed: slo.allowed() };
        Settings {
            limits: self.slos.iter().map(limit).collect(),
            probe_ns: self.probe_ns,
            rounds: self.rounds,
            seed: seed.wrapping_add(u64::from(block)),
        }
    }

    /// Times after which an answer is too late, nanoseconds: each once, the strictest first.
    pub fn limits_ns(&self) -> BTreeSet<u64> {
        self.slos.iter().map(Slo::limit_ns).collect()
    }

    /// The probe that follows on the points of a block's trial; `None` when the search is over.
    pub fn next(&self, (seed, block): (u64, u32), points: &[Point]) -> Option<Step> {
        match self.settings(seed, block).next(&self.seen(points)) {
            Next::Probe(step) => Some(step),
            Next::Done(_) => None,
        }
    }

    /// Points in their order, as they are judged; those that are no probes are left out.
    pub fn seen(&self, points: &[Point]) -> Vec<ProbeResult> {
        let rest = points.iter().find(|p| p.probe.is_some_and(|s| s.purpose == Purpose::CoolDown));
        let usual_ns = rest.and_then(Point::whole).map_or(0, |o| o.service.quantile_ns(0.5));
        points.iter().filter_map(|point| self.one(point, usual_ns)).collect()
    }

    /// Whether a probe that missed a limit may have done so because of others or of the generator:
    /// more of its time was taken, or more of its requests were sent late, than may be beyond the
    /// strictest limit.
    pub fn blame(&self, point: &Point) -> Option<Blame> {
        // Nobody else makes requests fail.
        let of_times = self.slos.iter().filter(|slo| slo.limit_ns() < u64::MAX);
        let allowed = of_times.map(Slo::allowed).reduce(f64::min)?.min(TAKEN_SHARE_MAX);
        if point.disturbance.share_of(point.length_ns) > allowed {
            return Some(Blame::Others);
        }
        let due = point.due.as_ref()?;
        let late = due.late as f64 / (due.due_per_interval.iter().sum::<u64>() as f64).max(1.0);
        (late > allowed).then_some(Blame::Generator)
    }

    fn one(&self, point: &Point, usual_ns: u64) -> Option<ProbeResult> {
        let probe = point.probe?;
        let result = point.whole();
        // Of so few requests none may be due by chance.
        let few = (probe.rate_per_s as f64) * (probe.length_ns as f64) < FEW * 1e9;
        let silent = result.is_none_or(|o| o.counts.total() == 0);
        let broke = point.failure.is_some() || (silent && (probe.rate_per_s == 0 || !few));
        let mut seen = ProbeResult {
            purpose: probe.purpose,
            rate_per_s: probe.rate_per_s,
            answered_per_s: result.map_or(0.0, |o| o.rate_per_s),
            length_ns: probe.length_ns,
            batches: batches(point),
            fell_behind: false,
            broke,
            settled: false,
        };
        let Some(result) = result else { return Some(seen) };
        let overran = probe.rate_per_s > 0 && overran(point, &seen);
        seen.fell_behind = overran || point.unsent > 0;
        let strictest_ns = self.limits_ns().first().copied().unwrap_or(0);
        let at_most_ns = (usual_ns * RESTED_FACTOR).max(strictest_ns.min(1 << 40) / RESTED_PART);
        let as_usual = result.service.quantile_ns(0.5) <= at_most_ns;
        seen.settled = !broke && !seen.fell_behind && as_usual;
        Some(seen)
    }
}

/// What was due in each interval, by limit.
fn batches(point: &Point) -> BTreeMap<u64, Vec<Batch>> {
    let Some(due) = &point.due else { return BTreeMap::new() };
    let of_limit = |beyond: &Beyond| {
        let over = beyond.over_per_interval.iter().copied().chain(iter::repeat(0));
        let batches = due.due_per_interval.iter().zip(over);
        let batches = batches.map(|(requests, over)| Batch { requests: *requests, over });
        (beyond.limit_ns, batches.collect())
    };
    due.beyond.iter().map(of_limit).collect()
}

/// True where the last answers came so late that a queue must have grown: later than what chance
/// piles up where as many come as can go, √n requests.
fn overran(point: &Point, seen: &ProbeResult) -> bool {
    let rate = seen.rate_per_s as f64;
    let due = rate * seen.length_ns as f64 / 1e9;
    let allowed_ns = OVERRUN_MAX * seen.length_ns as f64 + due.sqrt() / rate * 1e9;
    let overrun_ns = point.length_ns as f64 - seen.length_ns as f64;
    overrun_ns > allowed_ns
}
