//! What targets with the limits of a tier reached of them, beside the source's figures.

use model::study::PublishedFigure;
use model::{Plan, PlannedTarget};

use crate::recorded::Recorded;
use crate::show;
use crate::view::{ReachedLimit, Row, TierPhase, TierView, View};

/// Share of a limit from which a target is at it: measured spans and the kernel's periods do not
/// coincide, and frames on the wire carry more than is counted.
const REACHED_SHARE: f64 = 0.9;

/// Every target with limits, with its phases.
pub(crate) fn tiers(recorded: &Recorded, cells: &[Row]) -> Vec<TierView> {
    let plan = &recorded.header.plan;
    let limited = plan.targets.iter().filter(|target| !target.tier.is_empty());
    let view = |target: &PlannedTarget| {
        let own = cells.iter().filter(|row| row.target == target.name);
        let whole = own.filter(|row| row.metrics.contains_key("generator_cpus"));
        TierView {
            target: target.name.clone(),
            limits: target.tier.to_string(),
            phases: whole.map(|row| phase(plan, target, row)).collect(),
        }
    };
    limited.map(view).collect()
}

fn phase(plan: &Plan, target: &PlannedTarget, row: &Row) -> TierPhase {
    let is_about =
        |own: &&PublishedFigure| (&own.profile, &own.operation) == (&row.workload, &row.operation);
    let published = target.published.as_ref().filter(is_about);
    let published = published.and_then(|own| own.find(&plan.tables));
    let (published_per_s, published_in) = published.unzip();
    TierPhase {
        workload: row.workload.clone(),
        operation: row.operation.clone(),
        load: row.load.clone(),
        rate_per_s: row.metrics.get("rate_per_s").copied(),
        reached: [cpu_time(target, row), bandwidth(target, row)].into_iter().flatten().collect(),
        published_per_s,
        published_in,
    }
}

fn metric(row: &Row, name: &str) -> Option<f64> {
    Some(row.metrics.get(name)?.center)
}

fn cpu_time(target: &PlannedTarget, row: &Row) -> Option<ReachedLimit> {
    let (quota, used) = (target.tier.quota?, metric(row, "server_cpus")?);
    let stopped = metric(row, "cpu_throttled_share").map_or_else(String::new, |share| {
        format!(", stopped for {} of the time", show::percent(share))
    });
    let shown = format!("{used:.2} of {quota} CPUs{stopped}");
    reached("CPU time", used / quota, shown)
}

fn bandwidth(target: &PlannedTarget, row: &Row) -> Option<ReachedLimit> {
    let limit = target.tier.bandwidth_mbit?;
    let directions = ["link_received_bit_per_s", "link_sent_bit_per_s"];
    let most = directions.iter().filter_map(|name| metric(row, name)).reduce(f64::max)? / 1e6;
    let shown = format!("{most:.1} of {limit} Mbit/s");
    reached("bandwidth", most / limit, shown)
}

fn reached(limit: &str, used_share: f64, shown: String) -> Option<ReachedLimit> {
    (used_share >= REACHED_SHARE).then(|| ReachedLimit { limit: limit.into(), used_share, shown })
}

/// Each target with a limit that it reached, and a sentence about it that begins with its name:
/// `redis-C0: its CPU time is the limit (…)`.
pub(crate) fn sentences(view: &View) -> Vec<(&str, String)> {
    let mut all = Vec::new();
    for tier in &view.happened.tiers {
        for limit in ["CPU time", "bandwidth"] {
            let own = tier.phases.iter().flat_map(|phase| &phase.reached);
            let own: Vec<&ReachedLimit> = own.filter(|reached| reached.limit == limit).collect();
            let most = own.iter().max_by(|a, b| a.used_share.total_cmp(&b.used_share));
            let Some(most) = most else { continue };
            let of_all = match (own.len(), tier.phases.len()) {
                (reached, all) if reached == all => String::new(),
                (reached, all) => format!(" in {reached} of {all} phases"),
            };
            let text =
                format!("{}: its {limit} is the limit{of_all} ({})", tier.target, most.shown);
            all.push((tier.target.as_str(), text));
        }
    }
    all
}
