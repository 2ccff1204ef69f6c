//! A search for the highest rate within limits: its plan, and the conversion of a trial's points to
//! probe results for [`stats::search`]. Run and report use the same conversion, so a record gives
//! the same result as the run.

use serde::{Deserialize, Serialize};
use stats::search::{Limit, Next, ProbeResult, Purpose, Settings, Step};
use stats::tail::Batch;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use crate::trial::{Beyond, Point};

mod slo;

pub use slo::{Slo, SloError};

/// Minimum length of a probe, nanoseconds: a shorter one cannot show how requests are correlated.
pub const PROBE_NS_MIN: u64 = 500_000_000;
/// Rounds of the confirmation of a study's search.
pub(crate) const ROUNDS: u32 = 5;
/// Maximum number of limits of a search.
pub(crate) const LIMITS_MAX: usize = 16;
/// A store has settled if its median is at most `SETTLED_FACTOR` times that of its first
/// cool-down, or at most the strictest limit divided by `SETTLED_DIVISOR`.
const SETTLED_FACTOR: u64 = 2;
const SETTLED_DIVISOR: u64 = 4;
/// Below this number of expected requests, it is possible that none is due.
const FEW: f64 = 20.0;
/// Default maximum share of stolen CPU time in a measurement; 5 % is wider than the equivalence
/// zone.
pub const TAKEN_SHARE_MAX: f64 = 0.05;
/// Share of its length by which a probe can overrun before this counts as a growing queue.
const OVERRUN_MAX: f64 = 0.01;

/// Possible cause of a missed limit other than the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// Other processes used the CPU of the generator or the server.
    Others,
    /// The generator sent requests late although a client was free.
    Generator,
}

/// Plan of a search.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Search {
    /// Limits that must all be met; at least one.
    pub slos: Vec<Slo>,
    /// Minimum length of a probe, nanoseconds, above 0.
    pub probe_ns: u64,
    /// Rounds of the confirmation, at least 1.
    pub rounds: u32,
}

impl Search {
    /// Settings of the search in a block, for the plan's seed.
    pub fn settings(&self, seed: u64, block: u32) -> Settings {
        let limit = |slo: &Slo| Limit { limit_ns: slo.limit_ns(), allowed: slo.allowed() };
        Settings {
            limits: self.slos.iter().map(limit).collect(),
            probe_ns: self.probe_ns,
            rounds: self.rounds,
            seed: seed.wrapping_add(u64::from(block)),
        }
    }

    /// Distinct limits of response time, nanoseconds, the strictest first.
    pub fn limits_ns(&self) -> BTreeSet<u64> {
        self.slos.iter().map(Slo::limit_ns).collect()
    }

    /// The next probe after these points of a block's trial; `None` if the search is over.
    pub fn next(&self, (seed, block): (u64, u32), points: &[Point]) -> Option<Step> {
        match self.settings(seed, block).next(&self.probe_results(points)) {
            Next::Probe(step) => Some(step),
            Next::Done(_) => None,
        }
    }

    /// Results of the points that are probes, in order.
    pub fn probe_results(&self, points: &[Point]) -> Vec<ProbeResult> {
        let first = points.iter().find(|p| p.probe.is_some_and(|s| s.purpose == Purpose::CoolDown));
        let idle_ns = first.and_then(Point::whole).map_or(0, |o| o.service.quantile_ns(0.5));
        points.iter().filter_map(|point| self.probe_result(point, idle_ns)).collect()
    }

    /// Possible cause of a missed limit other than the store: the share of stolen CPU time or of
    /// requests sent late exceeds the share that the strictest limit allows.
    pub fn blame(&self, point: &Point) -> Option<Blame> {
        // Only the store makes requests fail.
        let of_times = self.slos.iter().filter(|slo| slo.limit_ns() < u64::MAX);
        let allowed = of_times.map(Slo::allowed).reduce(f64::min)?.min(TAKEN_SHARE_MAX);
        if point.disturbance.share_of(point.length_ns) > allowed {
            return Some(Blame::Others);
        }
        let due = point.due.as_ref()?;
        let late = due.late as f64 / (due.due_per_interval.iter().sum::<u64>() as f64).max(1.0);
        (late > allowed).then_some(Blame::Generator)
    }

    fn probe_result(&self, point: &Point, idle_ns: u64) -> Option<ProbeResult> {
        let probe = point.probe?;
        let result = point.whole();
        // With so few expected requests, it is possible that none was due.
        let few = (probe.rate_per_s as f64) * (probe.length_ns as f64) < FEW * 1e9;
        let silent = result.is_none_or(|o| o.counts.total() == 0);
        let broke = point.failure.is_some() || (silent && (probe.rate_per_s == 0 || !few));
        let mut evaluated = ProbeResult {
            purpose: probe.purpose,
            rate_per_s: probe.rate_per_s,
            answered_per_s: result.map_or(0.0, |o| o.rate_per_s),
            length_ns: probe.length_ns,
            batches: batches(point),
            fell_behind: false,
            broke,
            settled: false,
        };
        let Some(result) = result else { return Some(evaluated) };
        let overran = probe.rate_per_s > 0 && overran(point, &evaluated);
        evaluated.fell_behind = overran || point.unsent > 0;
        let strictest_ns = self.limits_ns().first().copied().unwrap_or(0);
        let max_ns = (idle_ns * SETTLED_FACTOR).max(strictest_ns.min(1 << 40) / SETTLED_DIVISOR);
        let is_idle = result.service.quantile_ns(0.5) <= max_ns;
        evaluated.settled = !broke && !evaluated.fell_behind && is_idle;
        Some(evaluated)
    }
}

/// Requests due in each interval and those beyond the limit, by limit.
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

/// True if the last replies came so late that a queue must have grown: later than random
/// accumulation at full utilization explains, which is √n requests.
fn overran(point: &Point, probe: &ProbeResult) -> bool {
    let rate = probe.rate_per_s as f64;
    let due = rate * probe.length_ns as f64 / 1e9;
    let allowed_ns = OVERRUN_MAX * probe.length_ns as f64 + due.sqrt() / rate * 1e9;
    let overrun_ns = point.length_ns as f64 - probe.length_ns as f64;
    overrun_ns > allowed_ns
}
