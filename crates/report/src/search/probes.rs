//! The list of a search's probes.

use model::{Blame, OperationResult, Point, Slo};
use stats::search::{ProbeResult, Purpose};
use stats::tail::{Judgement, Tail};

use super::cell_search::{BlockSearch, CellSearch};
use crate::view::{BeyondView, ProbeReason, ProbeVerdict, ProbeView, Time};

impl CellSearch<'_> {
    /// The probes of a block, without cool-downs after which the store had settled.
    pub(super) fn probes(&self, block: &BlockSearch<'_>) -> Vec<ProbeView> {
        let listed = |(_, (seen, _)): &(usize, (&ProbeResult, &Point))| {
            seen.purpose != Purpose::CoolDown || !seen.settled
        };
        let numbered = block.pairs().enumerate().filter(listed);
        numbered.map(|(i, (seen, point))| self.probe(block, i, seen, point)).collect()
    }

    fn probe(
        &self,
        block: &BlockSearch<'_>,
        index: usize,
        seen: &ProbeResult,
        point: &Point,
    ) -> ProbeView {
        let whole = point.whole();
        let timeout_ns = self.recorded.header.plan.timeout_ns;
        let times = whole.map(|o| o.counts.times(&o.response, timeout_ns));
        let quantile = |q| times.as_ref()?.quantile(q).filter(|time| *time != Time::Of(0));
        let share = |o: &OperationResult| o.counts.error as f64 / o.counts.total().max(1) as f64;
        ProbeView {
            block: block.trial.block,
            number: index as u32 + 1,
            purpose: seen.purpose,
            rate_per_s: (seen.rate_per_s > 0).then_some(seen.rate_per_s),
            length_s: seen.length_ns as f64 / 1e9,
            answered_per_s: seen.answered_per_s,
            response_ns_p50: quantile(0.5),
            response_ns_p99: quantile(0.99),
            error_share: whole.map(share),
            taken_share: point.disturbance.share_of(point.length_ns),
            beyond: self.beyond(seen),
            verdict: verdict(block, seen),
            reason: self.reason(block, seen, point),
            failure: point.failure.as_ref().map(ToString::to_string),
        }
    }

    fn beyond(&self, seen: &ProbeResult) -> Vec<BeyondView> {
        let counted = self.search.slos.iter().filter(|s| seen.batches.contains_key(&s.limit_ns()));
        let beyond = |slo: &Slo| BeyondView {
            limit: slo.to_string(),
            share: Tail::of([seen.batches(slo.limit_ns())]).share(),
        };
        counted.map(beyond).collect()
    }

    fn reason(
        &self,
        block: &BlockSearch<'_>,
        seen: &ProbeResult,
        point: &Point,
    ) -> Option<ProbeReason> {
        match seen.purpose {
            _ if seen.broke => None,
            Purpose::Peak => None,
            Purpose::CoolDown => Some(ProbeReason::StillSlow),
            _ if seen.fell_behind => Some(ProbeReason::QueueGrew),
            _ if block.settings.keeps_limits(seen) => None,
            Purpose::Bracket | Purpose::Confirm | Purpose::Hold => {
                self.search.blame(point).map(|blame| match blame {
                    Blame::Others => ProbeReason::OthersHadCpus,
                    Blame::Generator => ProbeReason::GeneratorLate,
                })
            }
        }
    }
}

fn verdict(block: &BlockSearch<'_>, seen: &ProbeResult) -> Option<ProbeVerdict> {
    match block.settings.judge(seen) {
        _ if seen.broke => Some(ProbeVerdict::Broke),
        _ if !seen.is_judged() => None,
        Judgement::Pass => Some(ProbeVerdict::Holds),
        Judgement::Fail => Some(ProbeVerdict::Missed),
        Judgement::Undecided => Some(ProbeVerdict::Undecided),
    }
}
