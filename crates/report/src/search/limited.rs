//! What held the answer of a search down that is not the store: its clients, or the generator.

use model::calibration::NULL_FACTOR_MIN;
use model::{Blame, Trial, Workload};
use stats::search::{Found, Purpose};
use stats::tail::Judgement;

use super::{Judged, LimitedBy};
use crate::findings::Findings;
use crate::limits::{BUSY_SHARE_MAX, UNHURRIED_FACTOR_MAX};
use crate::notes::Notes;
use crate::null::{self, Nearness, busy};
use crate::series::MeasuredPoint;
use crate::show;

/// Rates up to so many times the answer are looked at for what limited it.
const NEAR: f64 = 1.3;

impl Judged<'_> {
    /// What held the answer down that is not the store.
    pub(super) fn limited_by(
        &self,
        found: Option<Found>,
        phases: &[MeasuredPoint<'_>],
        findings: &mut Findings,
        notes: &mut Notes,
    ) -> Option<LimitedBy> {
        let Some(Found::Rate { center, .. }) = found else { return None };
        self.by_clients(center).or_else(|| self.by_generator(center, phases, findings, notes))
    }

    /// Above the answer requests waited for a free client, while the store answered as it does at
    /// rest.
    fn by_clients(&self, center: f64) -> Option<LimitedBy> {
        let rest = self.pairs().find(|(s, _)| s.purpose == Purpose::Rest)?;
        let usual_ns = rest.1.points.first()?.whole()?.service.quantile_ns(0.5) as f64;
        let near = center..center * NEAR;
        let failing = || {
            // Who has no CPU keeps others waiting, whatever they could do.
            self.pairs().filter(|(s, t)| {
                s.rate_per_s > 0
                    && self.search.blame(t) != Some(Blame::Others)
                    && near.contains(&(s.rate_per_s as f64))
                    && self.settings.judge(s) == Judgement::Fail
            })
        };
        let unhurried = |trial: &Trial| {
            let Some(point) = trial.points.first() else { return false };
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
        let (all, idle) = (failing().count(), failing().filter(|(_, t)| unhurried(t)).count());
        if all == 0 || idle * 2 <= all {
            return None;
        }
        let load = &self.recorded.header.plan.cells.first()?.load;
        let (clients, pipeline) = (load.clients(), load.pipeline());
        let why = format!(
            "its clients are the limit, above it requests waited for one of {clients} client(s) \
             with room (pipeline {pipeline}) while the store answered as quickly as at rest: give \
             it more --clients or --pipeline"
        );
        Some(LimitedBy { outcome: "clients", why })
    }

    /// The answer is too near to what the generator reaches on a server that does nothing.
    fn by_generator(
        &self,
        center: f64,
        phases: &[MeasuredPoint<'_>],
        findings: &mut Findings,
        notes: &mut Notes,
    ) -> Option<LimitedBy> {
        let header = &self.recorded.header;
        let peak = header.null_rates.first()?;
        let known = self.recorded.null_rate(&peak.cell, &peak.phase)?;
        let Some(null) = known.rate_per_s else {
            let why = known.not_checked.as_deref().unwrap_or("no reason was recorded");
            notes.add(format!("not checked against the null server: {why}"));
            return None;
        };
        let peak = phases.iter().find(|p| Some(&p.cell.id) == Some(&known.cell));
        let own_limit = || match &peak?.cell.workload {
            Workload::Kv(kv) => null::at_its_limit(
                busy(&peak?.trials, kv.threads)?,
                header,
                &peak?.cell.target,
                known,
            ),
            _ => None,
        };
        let cure = "give it more --threads and CPUs, or measure on a larger machine";
        let near = null::nearness(center, null, own_limit);
        if let Some(note) = near.note("at the peak", cure) {
            notes.add(note);
        }
        if let Nearness::Disturbed = near {
            null::disturbed("the answer is", center, null, findings);
        }
        let Nearness::Bound(factor) = near else { return None };
        let why = format!(
            "the generator may be the limit, it reaches {} on a null server ({} as much, at least \
             {NULL_FACTOR_MIN}× must be): {cure}",
            show::rate(null),
            show::ratio(factor),
        );
        Some(LimitedBy { outcome: "generator", why })
    }
}
