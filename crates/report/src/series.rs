//! Measured points of a cell over all blocks, and their operations.

use model::{
    Arrivals, Cell, OperationResult, Phase, Plan, PlannedTarget, Point, Product, Series, Trial,
    Workload,
};

use crate::limits::{ANSWERED_MIN, FREE_SHARE_MIN};
use crate::recorded::{Recorded, phase_names};

/// One steady phase of one cell over all blocks. For stages of ladders see [`crate::ramp`].
#[derive(Debug)]
pub(crate) struct MeasuredPoint<'a> {
    pub(crate) cell: &'a Cell,
    /// Several for the backend of an application cache.
    pub(crate) products: &'a [Product],
    /// Name of its phase.
    pub(crate) name: &'a str,
    /// The planned phase; `None` if the plan does not contain it.
    pub(crate) planned: Option<&'a Phase>,
    /// In block order, without failed trials.
    pub(crate) trials: Vec<(&'a Trial, &'a Point)>,
    /// Operations, starting with the one for the whole point.
    pub(crate) operations: Vec<Operation<'a>>,
}

/// One operation of a point over all blocks.
#[derive(Debug)]
pub(crate) struct Operation<'a> {
    /// Name of the row: `read`, `mixed`, `mixed.read`.
    pub(crate) name: String,
    /// True for the operation that represents the whole point.
    pub(crate) whole: bool,
    /// In block order.
    pub(crate) blocks: Vec<InBlock<'a>>,
}

/// One operation of a point in one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InBlock<'a> {
    pub(crate) block: u32,
    pub(crate) trial: &'a Trial,
    pub(crate) point: &'a Point,
    pub(crate) result: &'a OperationResult,
    /// True if too few operations were answered for a rate or a comparison.
    pub(crate) few: bool,
}

impl InBlock<'_> {
    /// True if it has a meaningful rate.
    pub(crate) fn usable(&self) -> bool {
        !self.few && self.measured()
    }

    /// True if any operation was answered.
    pub(crate) fn measured(&self) -> bool {
        self.result.rate_per_s.is_finite() && self.result.rate_per_s > 0.0
    }

    /// Operations finished over the course of its phase.
    pub(crate) fn series(&self) -> Option<&Series> {
        self.trial.series(&self.point.phase)
    }

    /// The rate by wall time, which includes the clients' own work between calls.
    pub(crate) fn wall_rate_per_s(&self) -> f64 {
        self.result.rate_per_s * (1.0 - self.point.own_share)
    }
}

impl MeasuredPoint<'_> {
    /// The metric by which targets are compared: the rate, unless think time, the mix or the plan
    /// determines the rate rather than the store.
    pub(crate) fn compared_by(&self, operation: &Operation<'_>) -> &'static str {
        let given = self.cell.workload.is_page() || !operation.whole;
        match self.cell.load.in_phase(self.name).arrivals {
            Arrivals::Constant | Arrivals::Poisson => "response_ns_mean",
            Arrivals::Closed if given => "service_ns_mean",
            Arrivals::Closed => "rate_per_s",
        }
    }

    /// True if a part of the target runs inside the clients, on files.
    pub(crate) fn has_files(&self) -> bool {
        self.products.iter().any(|product| !product.has_server())
    }

    /// Marks blocks of a phase with cleans in which too few operations were answered for a rate.
    fn mark_few(&mut self) {
        if !restores_cleaned(&self.cell.workload, self.planned) {
            return;
        }
        let clients = u64::from(self.cell.load.clients);
        for one in self.operations.iter_mut().flat_map(|o| &mut o.blocks) {
            let Point { phase, length_ns, restored, .. } = one.point;
            let enough_ns = FREE_SHARE_MIN * (length_ns * clients) as f64;
            let free_ns: u64 = restored.iter().map(|r| r.free_ns).sum();
            let whole = one.point.operation(phase).unwrap_or(one.result);
            let few_in_all = !restored.is_empty()
                && whole.service.count() < ANSWERED_MIN * clients
                && (free_ns as f64) < enough_ns;
            let own = &one.result.service;
            let few_of_kind =
                own.count() < ANSWERED_MIN && own.mean_ns() * (own.count() as f64) < enough_ns;
            one.few = few_in_all || few_of_kind;
        }
    }

    /// Finds an operation by its bare name: the phase's only operation, or a part of a list, which
    /// is the only phase of its profile.
    pub(crate) fn operation(&self, name: &str) -> Option<&Operation<'_>> {
        let part = self.is_list().then(|| format!("{}.{name}", self.name));
        self.operations.iter().find(|o| o.name == name || Some(&o.name) == part.as_ref())
    }

    /// True if a list determines the order of operations.
    pub(crate) fn is_list(&self) -> bool {
        self.planned.is_some_and(|p| p.mix.is_empty())
    }

    /// Cell and phase as part of a sentence: `redis/steady/8` read.
    pub(crate) fn label(&self) -> String {
        format!("`{}` {}", self.cell.id, self.name)
    }
}

/// True if a target has no server, so that all of its work is done by the generator.
pub(crate) fn is_serverless(products: &[Product]) -> bool {
    products.iter().all(|product| !product.has_server())
}

/// True if records removed by cleans are restored between the calls of a phase.
pub(crate) fn restores_cleaned(workload: &Workload, planned: Option<&Phase>) -> bool {
    matches!(workload, Workload::AppCache(_))
        && planned.is_some_and(|planned| planned.mix.contains_key("clean"))
}

/// All measured points in display order: profile, load, phase, target.
pub(crate) fn measured(recorded: &Recorded) -> Vec<MeasuredPoint<'_>> {
    let plan = &recorded.header.plan;
    let mut found: Vec<MeasuredPoint<'_>> = Vec::new();
    for cell in &plan.cells {
        let mut trials = recorded.latest(&cell.id);
        trials.retain(|trial| trial.failure.is_none());
        for name in phase_names(cell, &trials) {
            found.extend(point_of(plan, cell, name, &trials));
        }
    }
    found.sort_by_key(|p| order(plan, p));
    found
}

fn point_of<'a>(
    plan: &'a Plan,
    cell: &'a Cell,
    name: &'a str,
    trials: &[&'a Trial],
) -> Option<MeasuredPoint<'a>> {
    let trials: Vec<(&Trial, &Point)> =
        trials.iter().filter_map(|trial| Some((*trial, trial.point(name)?))).collect();
    let mut point = MeasuredPoint {
        cell,
        products: plan.target(&cell.target).map_or(&[], PlannedTarget::products),
        name,
        planned: cell.workload.phases().iter().find(|p| p.name == name),
        operations: operations_of(name, &trials),
        trials,
    };
    point.mark_few();
    (!point.operations.is_empty()).then_some(point)
}

fn operations_of<'a>(phase: &str, trials: &[(&'a Trial, &'a Point)]) -> Vec<Operation<'a>> {
    let mut found: Vec<Operation<'a>> = Vec::new();
    for (trial, point) in trials {
        for result in point.operations.iter().filter(|o| o.counts.total() > 0) {
            let whole = result.operation == phase;
            let name = if whole { phase.into() } else { format!("{phase}.{}", result.operation) };
            let one = InBlock { block: trial.block, trial, point, result, few: false };
            match found.iter_mut().find(|o| o.name == name) {
                Some(known) => known.blocks.push(one),
                None => found.push(Operation { name, whole, blocks: vec![one] }),
            }
        }
    }
    found.sort_by_key(|o| !o.whole);
    found
}

/// Sort key for the display order.
fn order(plan: &Plan, phase: &MeasuredPoint<'_>) -> (usize, u32, bool, usize, usize) {
    let workload = &phase.cell.workload;
    let at = |found: Option<usize>| found.unwrap_or(usize::MAX);
    (
        at(plan.cells.iter().position(|c| c.workload.profile() == workload.profile())),
        phase.cell.load.clients,
        phase.cell.load.one_session,
        at(workload.phases().iter().position(|p| p.name == phase.name)),
        at(plan.targets.iter().position(|t| t.name == phase.cell.target)),
    )
}
