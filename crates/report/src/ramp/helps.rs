//! Up to which load a cache in front of a database helps.
//!
//! Both targets are offered the same shares of the database's peak. In each block, a stage of the
//! target with the cache is compared with the database alone: at the same share if the database
//! sustains that, otherwise at the highest share that it sustains, since nobody would run it above
//! that. The cache helps in a stage if the mean response time with it is lower, and if fewer than
//! [`ERROR_SHARE`] of the reads fail or are never sent. It stops helping in the stage after the
//! last one in which it helps.

use model::Plan;
use stats::knee::ERROR_SHARE;
use std::collections::BTreeMap;

use super::ladder::{Ladder, Ramp, StageResult, times};
use crate::blocks::over_blocks;
use crate::metrics::METRICS;
use crate::show::{self, grouped};
use crate::view::{HelpsView, Value};

/// How a cache helped in one block.
struct OfBlock {
    /// Rates of the first and the last stage in which it helped, and of the one after that,
    /// requests per second.
    helps_from: Option<f64>,
    helps_to: Option<f64>,
    stops_at: Option<f64>,
    hit_ratio: Option<f64>,
}

/// Compares `cached` with the same database without a cache; `None` if it has no cache, or if the
/// plan does not measure the database alone.
pub(super) fn helps(plan: &Plan, ramps: &[Ramp<'_>], cached: &Ramp<'_>) -> Option<HelpsView> {
    let target = plan.target(&cached.cell.target)?;
    target.cache?;
    let is_alone = |ramp: &&Ramp<'_>| {
        let of_ramp = plan.target(&ramp.cell.target);
        of_ramp.is_some_and(|t| {
            t.cache.is_none() && t.product == target.product && t.control_of.is_none()
        }) && ramp.phase == cached.phase
            && ramp.cell.workload.profile() == cached.cell.workload.profile()
            && ramp.cell.load == cached.cell.load
    };
    let alone = ramps.iter().find(is_alone)?;
    let of_block = |ladder: &Ladder<'_>| {
        let twin = alone.whole().find(|twin| twin.trial.block == ladder.trial.block)?;
        of_block(ladder, twin)
    };
    let blocks: Vec<OfBlock> = cached.whole().filter_map(of_block).collect();
    if blocks.is_empty() {
        return None;
    }
    let mut metrics = BTreeMap::new();
    let mut put = |name: &str, read: fn(&OfBlock) -> Option<f64>| {
        let value = over_blocks(blocks.iter().filter_map(read), plan.seed);
        metrics.extend(value.map(|(value, _)| (name.to_string(), value)));
    };
    put("helps_from_per_s", |block| block.helps_from);
    put("helps_to_per_s", |block| block.helps_to);
    put("stops_helping_per_s", |block| block.stops_at);
    put("hit_ratio", |block| block.hit_ratio);
    let names = (cached.cell.target.as_str(), alone.cell.target.as_str());
    let sentence = sentence(names, &blocks, &metrics);
    Some(HelpsView { alone: names.1.into(), blocks: blocks.len() as u32, sentence, metrics })
}

fn of_block(cached: &Ladder<'_>, alone: &Ladder<'_>) -> Option<OfBlock> {
    let sustained = alone.last_passing().and_then(mean_ns)?;
    let helps = |place: usize, stage: &StageResult<'_>| {
        let twin = alone.up.get(place).map(|i| &alone.stages[*i]);
        let alone_ns = twin.filter(|twin| twin.rule.holds()).and_then(mean_ns);
        mean_ns(stage).is_some_and(|ns| ns < alone_ns.unwrap_or(sustained))
    };
    let stages: Vec<&StageResult<'_>> = cached.up.iter().map(|i| &cached.stages[*i]).collect();
    let helping = (0..stages.len()).filter(|place| helps(*place, stages[*place]));
    let helping: Vec<usize> = helping.collect();
    let last = helping.last().copied();
    let hits = METRICS.iter().find(|metric| metric.key == "hit_ratio");
    let stop = last.map_or(0, |last| last + 1);
    Some(OfBlock {
        helps_from: helping.first().map(|first| stages[*first].rate()),
        helps_to: last.map(|last| stages[last].rate()),
        stops_at: stages.get(stop).map(|stage| stage.rate()),
        hit_ratio: last.and_then(|last| hits?.read(&stages[last].whole_point())),
    })
}

/// Mean response time, nanoseconds; `None` if too many reads failed.
fn mean_ns(stage: &StageResult<'_>) -> Option<f64> {
    let times = times(stage.result, stage.whole()?);
    (stage.rule.error_share < ERROR_SHARE && !times.is_empty()).then(|| times.mean_ns())
}

fn sentence(
    (target, alone): (&str, &str),
    blocks: &[OfBlock],
    metrics: &BTreeMap<String, Value>,
) -> String {
    let per_s = |name: &str| metrics.get(name).map(|v| format!("{}/s", grouped(v.center)));
    let hits = metrics.get("hit_ratio").map_or_else(String::new, |share| {
        format!(", with {} of the reads found in the cache", show::percent(share.center))
    });
    let helped = blocks.iter().filter(|block| block.helps_to.is_some()).count();
    let stopped = blocks.iter().filter(|block| block.stops_at.is_some()).count();
    let of_blocks = |count: usize| {
        let all = blocks.len();
        if count == all { String::new() } else { format!(" in {count} of {all} blocks") }
    };
    let Some(helps_to) = per_s("helps_to_per_s") else {
        return format!("{target} is on average never faster than {alone} alone");
    };
    let helps_from = per_s("helps_from_per_s").unwrap_or_default();
    let start = format!(
        "{target} is on average faster than {alone} alone from {helps_from} to {helps_to}{}{hits}",
        of_blocks(helped)
    );
    match per_s("stops_helping_per_s") {
        Some(stops) => format!("{start}, and not at {stops}{}", of_blocks(stopped)),
        None => format!("{start}, the highest rate offered"),
    }
}
