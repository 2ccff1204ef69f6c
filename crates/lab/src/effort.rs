//! When enough was measured, and how long it will take.

use model::{Cell, Effort, Phase, Plan, Stop, Trial};
use std::collections::BTreeSet;
use std::fmt;

/// Why no more blocks are added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopReason {
    /// The largest number of blocks was measured.
    Blocks(u32),
    /// As many as fit into the budget, nanoseconds, if all last as long as the first.
    Budget(u64),
    /// Every target was left out.
    NothingLeft,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocks(1) => f.write_str("one block was asked for"),
            Self::Blocks(blocks) => write!(f, "{blocks} blocks requested"),
            Self::Budget(ns) => {
                let budget = stats::format_ns(*ns as f64);
                write!(
                    f,
                    "as many blocks as fit into the budget of {budget}, by the length of the first"
                )
            }
            Self::NothingLeft => f.write_str("every target failed over and over"),
        }
    }
}

/// Decides after `blocks` whole blocks. How many there are is fixed by the plan and by how long the
/// first block took: a number that followed from later blocks would follow from what they gave, as
/// slow ones take longer, and who stops when intervals are narrow stops where they are by chance.
pub fn stop_reason(plan: &Plan, trials: &[Trial], blocks: u32) -> Option<StopReason> {
    let Effort { budget_ns, blocks_min, blocks_max } = plan.effort;
    if blocks < blocks_min.max(1) {
        return None;
    }
    if blocks >= blocks_max {
        return Some(StopReason::Blocks(blocks));
    }
    let fit = budget_ns / block_ns(trials, 0).max(1);
    (budget_ns > 0 && u64::from(blocks) >= fit).then_some(StopReason::Budget(budget_ns))
}

fn block_ns(trials: &[Trial], block: u32) -> u64 {
    trials.iter().filter(|t| t.block == block).map(|t| t.took_ns).sum()
}

/// Time that a trial is taken to need beside its phases, until one has told.
const STARTING_NS: u64 = 1_000_000_000;

/// Time that a cell's phases last at least; those bounded by a count are not known.
fn measured_ns(cell: &Cell) -> u64 {
    let of_phase = |phase: &Phase| match phase.stop {
        Stop::AfterNs(_) if cell.load.search().is_some() => cell.load.search_ns(phase.warmup_ns),
        Stop::AfterNs(ns) => ns.saturating_add(phase.warmup_ns),
        Stop::Count(_) => 0,
    };
    cell.workload.phases().iter().map(of_phase).sum()
}

/// Share of the run that is done, and nanoseconds left, as far as they can be foreseen from the
/// trials so far and the limits of the plan.
pub fn foresee(
    plan: &Plan,
    ready: &BTreeSet<String>,
    trials: &[Trial],
    spent_ns: u64,
) -> (f64, u64) {
    let of_cells = || plan.cells.iter().filter(|c| ready.contains(&c.target));
    let blocks = u64::from(plan.effort.blocks_max);
    if trials.is_empty() {
        let timed_ns: u64 = of_cells().map(|cell| measured_ns(cell) + STARTING_NS).sum();
        let planned_ns = timed_ns.saturating_mul(blocks);
        let of_count = |phase: &Phase| matches!(phase.stop, Stop::Count(_));
        let is_timed = !of_cells().any(|c| c.workload.phases().iter().any(of_count));
        return match plan.effort.budget_ns {
            0 => (0.0, planned_ns),
            budget_ns if is_timed => (0.0, planned_ns.min(budget_ns)),
            budget_ns => (0.0, budget_ns),
        };
    }
    let cells = of_cells().count() as u64;
    let planned = cells * blocks;
    let mean_ns = spent_ns / trials.len() as u64;
    let to_the_last = planned.saturating_sub(trials.len() as u64) * mean_ns;
    let demanded = cells * u64::from(plan.effort.blocks_min);
    let still_demanded = demanded.saturating_sub(trials.len() as u64) * mean_ns;
    let to_the_budget = match plan.effort.budget_ns {
        0 => u64::MAX,
        budget_ns => budget_ns.saturating_sub(spent_ns),
    };
    let left_ns = to_the_last.min(to_the_budget).max(still_demanded);
    (spent_ns as f64 / (spent_ns + left_ns).max(1) as f64, left_ns)
}

#[cfg(test)]
#[path = "effort_tests.rs"]
mod tests;
