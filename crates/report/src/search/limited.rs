//! Limits of a search other than the store: its clients or the generator.

use model::calibration::NULL_FACTOR_MIN;
use model::{Blame, Point};
use stats::search::Purpose;
use stats::tail::Judgement;

use super::cell_search::{BlockSearch, CellSearch};
use crate::blocks::median;
use crate::limits::{BUSY_SHARE_MAX, UNHURRIED_FACTOR_MAX};
use crate::null::{self, NULL_CURE, Nearness};
use crate::show;
use crate::view::{SearchOutcome, Value};

/// Probes up to this multiple of the answer are examined for its limit.
const NEAR: f64 = 1.3;

/// The cause of a limit.
pub(super) struct LimitedBy {
    pub(super) outcome: SearchOutcome,
    pub(super) why: String,
}

impl CellSearch<'_> {
    /// The limit of the answer, if it is not the store.
    pub(super) fn limited_by(&self) -> Option<LimitedBy> {
        self.by_clients().or_else(|| self.by_generator())
    }

    /// The clients, if in most blocks requests above the answer waited for a free client while the
    /// store answered as fast as when idle.
    fn by_clients(&self) -> Option<LimitedBy> {
        let counted = self.counted();
        let limited = counted.iter().filter(|block| self.is_limited_by_clients(block)).count();
        if limited * 2 <= counted.len() {
            return None;
        }
        let load = &self.cell.load;
        let (clients, pipeline) = (load.clients, load.pipeline);
        let why = format!(
            "its clients are the limit: above this rate requests waited for a free one of \
             {clients} client(s) (pipeline {pipeline}) while the store answered as fast as when \
             idle; use more --clients or --pipeline"
        );
        Some(LimitedBy { outcome: SearchOutcome::Clients, why })
    }

    fn is_limited_by_clients(&self, block: &BlockSearch<'_>) -> bool {
        let rest = block.pairs().find(|(s, _)| s.purpose == Purpose::CoolDown);
        let rest = rest.and_then(|(_, point)| point.whole());
        let (Some(rest), Some(Value { center, .. })) = (rest, block.rate()) else { return false };
        let usual_ns = rest.service.quantile_ns(0.5) as f64;
        let near = center..center * NEAR;
        let failing = || {
            // Without CPU time the generator itself delays requests.
            block.pairs().filter(|(s, p)| {
                s.rate_per_s > 0
                    && self.search.blame(p) != Some(Blame::Others)
                    && near.contains(&(s.rate_per_s as f64))
                    && block.settings.judge(s) == Judgement::Fail
            })
        };
        let is_idle = |point: &Point| {
            let Some(whole) = point.whole() else { return false };
            let busy = point.server_cpu_ns.map(|ns| ns as f64 / point.length_ns.max(1) as f64);
            let slow = |limit_ns: u64| {
                let over = whole.service.recorded().filter(|(ns, _)| *ns > limit_ns);
                over.map(|(_, n)| n).sum::<u64>() as f64 / whole.service.count().max(1) as f64
            };
            let keeps = |slo: &model::Slo| slow(slo.limit_ns()) <= slo.allowed();
            busy.is_none_or(|share| share <= BUSY_SHARE_MAX)
                && whole.service.quantile_ns(0.5) as f64 <= usual_ns * UNHURRIED_FACTOR_MAX
                && self.search.slos.iter().all(keeps)
        };
        let (all, idle) = (failing().count(), failing().filter(|(_, p)| is_idle(p)).count());
        idle * 2 > all
    }

    /// The generator, if the answer is too close to its rate on the null server.
    fn by_generator(&self) -> Option<LimitedBy> {
        let (Nearness::Bound(factor), _, null) = self.near_null()? else { return None };
        let why = format!(
            "the generator may be the limit: it reaches {} on a null server ({} as much, at least \
             {NULL_FACTOR_MIN}× is needed); {NULL_CURE}",
            show::rate(null),
            show::ratio(factor),
        );
        Some(LimitedBy { outcome: SearchOutcome::Generator, why })
    }

    /// Closeness of the answer to the null rate, and both rates.
    pub(crate) fn near_null(&self) -> Option<(Nearness, f64, f64)> {
        let answer = self.rate()?.center;
        let phase = self.cell.workload.phases().first()?;
        let known = self.recorded.null_rate(&self.cell.id, &phase.name)?;
        let null = known.rate_per_s?;
        let peaks = || self.blocks.iter().filter_map(|block| block.points.first());
        let by_time = |ns: u64, point: &Point| ns as f64 / point.length_ns.max(1) as f64;
        let threads = f64::from(self.cell.threads());
        let own_limit = || {
            let own = median(peaks().map(|p| by_time(p.generator_cpu_ns, p) / threads))?;
            let server = median(peaks().filter_map(|p| Some(by_time(p.server_cpu_ns?, p))));
            null::at_its_limit((own, server), &self.recorded.header, &self.cell.target, known)
        };
        Some((null::nearness(answer, null, own_limit), answer, null))
    }
}
