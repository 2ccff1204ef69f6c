//! Deletion of expired sessions: a phase with it against the same load without it.

use model::{OperationResult, SessionGc, Workload};

use crate::blocks::over_blocks;
use crate::metrics::Whole;
use crate::recorded::Recorded;
use crate::series::{InBlock, MeasuredPoint, Operation};
use crate::view::{DeletionPhase, DeletionView, Row, Value};

/// Name of the operation that deletes.
const GC: &str = "gc";

/// One line for each target and load of a profile with deletion, in display order.
pub(crate) fn deletions(
    recorded: &Recorded,
    phases: &[MeasuredPoint<'_>],
    rows: &[Row],
) -> Vec<DeletionView> {
    let pair = |with: &MeasuredPoint<'_>| {
        let gc = gc_of(with).filter(|gc| gc.phases.iter().any(|phase| phase == with.name))?;
        let is_without = |p: &&MeasuredPoint<'_>| {
            p.cell.id == with.cell.id && !gc.phases.contains(&p.name.into())
        };
        let without = phases.iter().find(is_without)?;
        Pair { recorded, rows, without, with }.view()
    };
    phases.iter().filter_map(pair).collect()
}

fn gc_of<'a>(phase: &MeasuredPoint<'a>) -> Option<&'a SessionGc> {
    match &phase.cell.workload {
        Workload::Sessions(sessions) => sessions.gc.as_ref(),
        _ => None,
    }
}

/// The two phases of a cell.
struct Pair<'a> {
    recorded: &'a Recorded,
    rows: &'a [Row],
    without: &'a MeasuredPoint<'a>,
    with: &'a MeasuredPoint<'a>,
}

impl Pair<'_> {
    fn view(&self) -> Option<DeletionView> {
        let Self { without, with, .. } = self;
        let (plain, deleting) = (whole(without)?, whole(with)?);
        let collections: Vec<&OperationResult> =
            with.trials.iter().filter_map(|(_, point)| point.operation(GC)).collect();
        let p99 = |block: &InBlock<'_>| {
            let OperationResult { counts, service, .. } = block.result;
            let timeout_ns = self.recorded.header.plan.timeout_ns;
            counts.times(service, timeout_ns).known(0.99).map(|ns| ns as f64)
        };
        Some(DeletionView {
            target: with.cell.target.clone(),
            workload: with.cell.workload.profile().into(),
            load: with.cell.load.clone(),
            by_handler: self.by_handler(),
            without: self.phase(without),
            with: self.phase(with),
            rate_ratio: self.ratio((deleting, plain), |block| Some(block.result.rate_per_s)),
            p99_ratio: self.ratio((deleting, plain), p99),
            collections: collections.iter().map(|gc| gc.counts.total()).sum(),
            longest_ns: collections.iter().map(|gc| gc.service.max_ns()).max(),
        })
    }

    /// The ratio of a value with deletion to that without it, over blocks with both.
    fn ratio(
        &self,
        (of, to): (&Operation<'_>, &Operation<'_>),
        value: impl Fn(&InBlock<'_>) -> Option<f64>,
    ) -> Option<Value> {
        let of_block = |one: &InBlock<'_>| {
            let other = to.blocks.iter().find(|b| b.block == one.block && b.usable())?;
            Some(value(one)? / value(other)?)
        };
        let ratios = of.blocks.iter().filter(|b| b.usable()).filter_map(of_block);
        over_blocks(ratios, self.recorded.header.plan.seed).map(|(value, _)| value)
    }

    fn phase(&self, phase: &MeasuredPoint<'_>) -> DeletionPhase {
        let cell = phase.cell;
        let own = |row: &&Row| {
            (row.workload.as_str(), &*row.target, &*row.operation, &row.load)
                == (cell.workload.profile(), &*cell.target, phase.name, &cell.load)
        };
        let row = self.rows.iter().find(own);
        let metric = |name: &str| row.and_then(|row| row.metrics.get(name)).copied();
        DeletionPhase {
            phase: phase.name.into(),
            rate_per_s: metric("rate_per_s"),
            service_ns_p99: metric("service_ns_p99"),
            deleted: self.deleted(phase),
        }
    }

    /// Sessions that handlers deleted, or that the server reports as expired.
    fn deleted(&self, phase: &MeasuredPoint<'_>) -> Option<u64> {
        if self.by_handler() {
            let wholes = phase.trials.iter().filter_map(|(_, point)| point.whole());
            return Some(wholes.map(|whole| whole.counts.deleted).sum());
        }
        let expired = phase.trials.iter().map(|(trial, point)| {
            let samples = self.recorded.samples_of(trial);
            Whole { point, samples, events: &trial.events }.expired()
        });
        expired.sum::<Option<f64>>().map(|expired| expired.round() as u64)
    }

    /// False if the target is a server that expires sessions by itself.
    fn by_handler(&self) -> bool {
        !self.with.products.iter().any(|product| product.keeps_keys())
    }
}

fn whole<'a>(phase: &'a MeasuredPoint<'a>) -> Option<&'a Operation<'a>> {
    phase.operations.iter().find(|operation| operation.whole)
}
