//! When a run has enough blocks, and how long it will still take.

use model::{Cell, Effort, Phase, Plan, Stop, Trial};
use stats::compare::FEWEST_BLOCKS;
use std::collections::BTreeSet;
use std::fmt;

/// Why no more blocks are added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopReason {
    /// The maximum number of blocks was measured.
    Blocks(u32),
    /// No further block fits into this budget, nanoseconds, if each takes as long as the first.
    Budget(u64),
    /// Every target was skipped.
    NothingLeft,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocks(1) => f.write_str("1 block requested"),
            Self::Blocks(blocks) => write!(f, "{blocks} blocks requested"),
            Self::Budget(ns) => {
                let budget = stats::format_ns(*ns as f64);
                write!(
                    f,
                    "as many blocks as fit into the budget of {budget}, judging by the first block"
                )
            }
            Self::NothingLeft => f.write_str("no target was left to measure: all kept failing"),
        }
    }
}

/// Decides after `blocks` whole blocks. The plan and the duration of the first block fix their
/// number. If it depended on later blocks it would depend on their results, because slow blocks
/// take longer; and stopping once intervals are narrow would favor blocks that agree by chance.
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

/// Assumed time of a trial besides its phases until the first trial is done, nanoseconds.
const STARTING_NS: u64 = 1_000_000_000;

/// Lower bound of the duration of a cell's phases; those with a request count are unknown.
fn measured_ns(cell: &Cell) -> u64 {
    let of_phase = |phase: &Phase| match phase.stop {
        Stop::AfterNs(_) if cell.load.search().is_some() => cell.load.search_ns(phase.warmup_ns),
        Stop::AfterNs(ns) => ns.saturating_add(phase.warmup_ns),
        Stop::Count(_) => 0,
    };
    cell.workload.phases().iter().map(of_phase).sum()
}

/// Estimated duration of one block of these cells, nanoseconds: the timed phases, which are a lower
/// bound if some end by count, and the start of each trial.
fn first_block_ns<'a>(cells: impl Iterator<Item = &'a Cell>) -> u64 {
    cells.map(|cell| measured_ns(cell) + STARTING_NS).sum()
}

/// Number of blocks that the budget allows, and the estimated duration of one block in nanoseconds,
/// if all stores are available and the blocks are too few to compare them. Known before the run.
pub fn too_small_a_budget(plan: &Plan) -> Option<(u64, u64)> {
    let Effort { budget_ns, blocks_min, blocks_max } = plan.effort;
    let block_ns = first_block_ns(plan.cells.iter());
    let fit = (budget_ns / block_ns.max(1)).max(blocks_min.max(1).into());
    let is_cause = budget_ns > 0 && blocks_max as usize >= FEWEST_BLOCKS;
    (is_cause && fit < FEWEST_BLOCKS as u64).then_some((fit, block_ns))
}

/// Estimates the share of the run that is done and the nanoseconds left, from the trials so far and
/// the limits of the plan.
pub fn estimate_remaining(
    plan: &Plan,
    ready: &BTreeSet<String>,
    trials: &[Trial],
    spent_ns: u64,
) -> (f64, u64) {
    let of_cells = || plan.cells.iter().filter(|c| ready.contains(&c.target));
    let blocks = u64::from(plan.effort.blocks_max);
    if trials.is_empty() {
        let block_ns = first_block_ns(of_cells());
        let planned_ns = block_ns.saturating_mul(blocks);
        let required_ns = block_ns.saturating_mul(u64::from(plan.effort.blocks_min.max(1)));
        let of_count = |phase: &Phase| matches!(phase.stop, Stop::Count(_));
        let is_timed = !of_cells().any(|c| c.workload.phases().iter().any(of_count));
        return match plan.effort.budget_ns {
            0 => (0.0, planned_ns),
            budget_ns if is_timed => (0.0, planned_ns.min(budget_ns).max(required_ns)),
            budget_ns => (0.0, budget_ns.max(required_ns)),
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
