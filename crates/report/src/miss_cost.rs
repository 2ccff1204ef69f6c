//! Cost of a miss against the cost of keeping all data: a store that drops keys reads fast, but the
//! reader then gets each missing value from elsewhere; a store that swaps or reads a file finds it.
//!
//! Let D be the mean time of a read on a store that drops keys, m its share of misses, and K the
//! mean time on a store that finds all, under the same closed load. With a cost C of a miss, both
//! take equally long if D + m·C = K, so C = (K − D) / m. This is computed in each block; its
//! interval is that of a geometric mean over blocks. The load that misses cause elsewhere is not in
//! it.

use crate::blocks::ratio_over_blocks;
use crate::recorded::Recorded;
use crate::series::{InBlock, MeasuredPoint};
use crate::show;
use crate::view::{MissCostView, Value};

/// The read of keys and values.
const GET: &str = "get";
/// Minimum share of reads that find their key on a store that keeps all.
const ALL_SHARE: f64 = 0.999;

/// Every pair of a target that drops keys and one that finds all, in display order.
pub(crate) fn miss_costs(recorded: &Recorded, phases: &[MeasuredPoint<'_>]) -> Vec<MissCostView> {
    let plan = &recorded.header.plan;
    let is_control = |name: &str| plan.target(name).is_some_and(|t| t.control_of.is_some());
    let gets = phases.iter().filter(|p| p.name == GET && !is_control(&p.cell.target));
    let gets: Vec<(&MeasuredPoint<'_>, f64)> =
        gets.filter_map(|get| Some((get, found_share(get)?))).collect();
    let drops =
        |get: &&MeasuredPoint<'_>, found: f64| plan.drops_keys(get.cell) && found < ALL_SHARE;
    let mut all = Vec::new();
    for (drop, found) in gets.iter().filter(|(get, found)| drops(get, *found)) {
        let keeps = gets.iter().filter(|(keep, found)| {
            *found >= ALL_SHARE
                && keep.cell.workload.profile() == drop.cell.workload.profile()
                && keep.cell.load == drop.cell.load
        });
        all.extend(keeps.filter_map(|(keep, _)| pair(drop, keep, 1.0 - found, plan.seed)));
    }
    all
}

/// Blocks of the whole operation with a meaningful rate.
fn blocks<'a>(point: &'a MeasuredPoint<'a>) -> impl Iterator<Item = &'a InBlock<'a>> {
    let whole = point.operations.iter().filter(|operation| operation.whole);
    whole.flat_map(|operation| operation.blocks.iter().filter(|block| block.usable()))
}

/// Share of reads that found their key, over all blocks.
fn found_share(point: &MeasuredPoint<'_>) -> Option<f64> {
    let (found, asked) = blocks(point).fold((0, 0), |(found, asked), block| {
        let counts = &block.result.counts;
        (found + counts.ok, asked + counts.ok + counts.miss)
    });
    (asked > 0).then(|| found as f64 / asked as f64)
}

fn pair(
    drop: &MeasuredPoint<'_>,
    keep: &MeasuredPoint<'_>,
    miss_share: f64,
    seed: u64,
) -> Option<MissCostView> {
    let costs: Vec<f64> = blocks(drop)
        .filter_map(|own| {
            let other = blocks(keep).find(|other| other.block == own.block)?;
            let counts = &own.result.counts;
            let misses = counts.miss as f64 / (counts.ok + counts.miss).max(1) as f64;
            Some((other.result.service.mean_ns() - own.result.service.mean_ns()) / misses)
        })
        .collect();
    if costs.is_empty() {
        return None;
    }
    let is_positive = costs.iter().all(|cost| cost.is_finite() && *cost > 0.0);
    let value = ratio_over_blocks(costs.into_iter(), seed).filter(|_| is_positive);
    let (drops, keeps) = (drop.cell.target.clone(), keep.cell.target.clone());
    Some(MissCostView {
        workload: drop.cell.workload.profile().into(),
        load: drop.cell.load.clone(),
        operation: GET.into(),
        sentence: sentence((&drops, &keeps), miss_share, value.as_ref()),
        drops,
        keeps,
        miss_share,
        breaks_even_ns: value,
    })
}

fn sentence((drops, keeps): (&str, &str), miss_share: f64, value: Option<&Value>) -> String {
    let missed = show::share_of_all(miss_share);
    match value {
        Some(cost) => format!(
            "{drops} misses {missed} of the reads; while a miss costs less than {}, a read takes \
             less time on average on {drops} than on {keeps}, which finds all",
            show::ns_value(cost)
        ),
        None => format!(
            "{drops} misses {missed} of the reads, and in some block a read takes no less time \
             than on {keeps}, which finds all, whatever a miss costs"
        ),
    }
}
