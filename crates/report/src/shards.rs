//! What shards add to the rate of one: the efficiency of each target with several shards, against
//! the one with a single shard and otherwise the same settings.

use model::{Cell, PlannedTarget};
use std::collections::BTreeMap;

use crate::limits::BUSY_SHARE_MAX;
use crate::null;
use crate::pairs::against;
use crate::recorded::Recorded;
use crate::show;
use crate::view::{Comparison, Row, ShardsView, Value};

/// The setting of a private server that says how many there are.
const SHARDS: &str = "shards";

/// Every phase of targets with shards whose single-shard form was measured too, by target.
pub(crate) fn shards(
    recorded: &Recorded,
    rows: &[Row],
    comparisons: &[Comparison],
) -> Vec<ShardsView> {
    let plan = &recorded.header.plan;
    let sharded = plan.targets.iter().filter(|own| own.settings.contains_key(SHARDS));
    let sharded: Vec<&PlannedTarget> = sharded.filter(|own| own.control_of.is_none()).collect();
    let single_of = |target: &PlannedTarget| {
        let same = |other: &&&PlannedTarget| family(other) == family(target);
        sharded.iter().filter(same).find(|other| other.shards() == Some(1)).copied()
    };
    let mut found = Vec::new();
    for target in &sharded {
        let Some(single) = single_of(target) else { continue };
        let own = rows.iter().filter(|row| row.target == target.name);
        for row in own.filter(|row| row.compared_by == "rate_per_s") {
            found.extend(view(recorded, (target, single), (row, rows), comparisons));
        }
    }
    // A single shard alone says nothing about shards.
    let singles: Vec<String> =
        found.iter().filter(|own| own.shards > 1).map(|own| own.single.clone()).collect();
    found.retain(|own| singles.contains(&own.single));
    found
}

/// Everything about a target but the number of its shards.
fn family(target: &PlannedTarget) -> impl PartialEq {
    let mut settings: BTreeMap<_, _> = target.settings.clone();
    settings.remove(SHARDS);
    (target.product, target.program, target.tier.to_string(), settings)
}

fn view(
    recorded: &Recorded,
    (target, single): (&PlannedTarget, &PlannedTarget),
    (row, rows): (&Row, &[Row]),
    comparisons: &[Comparison],
) -> Option<ShardsView> {
    let is_same_place = |other: &&Row| {
        (&other.workload, &other.operation, &other.load)
            == (&row.workload, &row.operation, &row.load)
    };
    let rate_per_s = *row.metrics.get("rate_per_s")?;
    rows.iter().filter(is_same_place).find(|other| other.target == single.name)?;
    let shards = target.shards()?;
    let place = (row.workload.as_str(), row.operation.as_str(), &row.load);
    let ratio = against(comparisons, place, &target.name, &single.name);
    let cell = recorded.header.plan.cell_at(&target.name, &row.workload, &row.load)?;
    Some(ShardsView {
        target: target.name.clone(),
        single: single.name.clone(),
        shards,
        servers: shards * (1 + target.replicas()),
        workload: row.workload.clone(),
        operation: row.operation.clone(),
        load: row.load.clone(),
        blocks: ratio.as_ref().map_or(row.blocks, |found| found.blocks),
        rate_per_s,
        efficiency: ratio.map(|found| per_shard(found.ratio, shards)),
        limited_by: limits(recorded, (target, cell), row),
    })
}

/// A ratio of rates as a part of what the shards could add.
fn per_shard(ratio: Value, shards: u32) -> Value {
    let part = |ratio: f64| ratio / f64::from(shards);
    Value::new(part(ratio.center), ratio.lo.map(part), ratio.hi.map(part))
}

/// Why the machine limits the rate of several shards.
fn limits(recorded: &Recorded, (target, cell): (&PlannedTarget, &Cell), row: &Row) -> Vec<String> {
    let (shards, replicas) = (target.shards().unwrap_or(1), target.replicas());
    if shards < 2 {
        return Vec::new();
    }
    let product = row.product.as_deref().and_then(|own| own.split_whitespace().next());
    let product = product.unwrap_or(target.product.name());
    let servers = shards * (1 + replicas);
    let given = cell.workload.server_cpus().map(|cpus| cpus as u32);
    let cpus = given.into_iter().chain(null::server_cpus(&recorded.header)).min();
    let few = cpus.filter(|cpus| *cpus < servers).map(|cpus| {
        let s = if cpus == 1 { "" } else { "s" };
        let who = if replicas == 0 {
            format!("{shards} shards")
        } else {
            format!("{shards} shards with their replicas, {servers} servers,")
        };
        format!("{who} share {cpus} CPU{s}: the ratio shows this machine, not {product}")
    });
    let used = row.metrics.get("generator_cpus").map(|own| own.center / f64::from(cell.threads()));
    let busy = used.filter(|used| *used > BUSY_SHARE_MAX).map(|used| {
        format!(
            "at {} of {} the generator used {} of its CPUs: the ratio may show the generator, not \
             {product}",
            row.operation,
            target.name,
            show::percent(used.min(1.0))
        )
    });
    few.into_iter().chain(busy).collect()
}
