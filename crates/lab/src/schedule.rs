//! The order of cells in a block: random, and a pure function of the seed.

use model::{Cell, Plan};
use workloads::values::{mix, pick};

/// Every cell of the plan once, in this block's order (Fisher and Yates' shuffle).
pub fn order(plan: &Plan, block: u32) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = plan.cells.iter().collect();
    for last in (1..cells.len()).rev() {
        let draw = mix(&[plan.seed, u64::from(block), last as u64]);
        cells.swap(last, pick(draw, last as u64 + 1) as usize);
    }
    cells
}

/// Seed of a block's data: the same for all its cells, so that all stores have the same data.
pub fn data_seed(plan: &Plan, block: u32) -> u64 {
    mix(&[plan.seed, u64::from(block), u64::MAX])
}
