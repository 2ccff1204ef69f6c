//! Deployments: how many servers of a family carry a rate, with the memory and cost of all of them.

use model::Prices;

use super::capacity::{Capacity, Limit};
use super::commands;
use super::deployment::Deployment;
use super::evidence::{MeasuredRate, Reach};
use super::measured_memory::MeasuredMemory;
use super::memory::{self, Servers};
use super::question::{Question, RateAsked};
use super::view::{Cost, DeploymentRate, DeploymentView, MemoryNeed, Missing};
use crate::show;

/// The deployment with the fewest servers of those in `sizes`, which belong to one family and have
/// as many replicas each. Errors: what was measured does not suffice, or no memory is known.
pub(super) fn of_family(
    question: &Question,
    rate: &RateAsked,
    sizes: &[Capacity<'_>],
    memories: &[MeasuredMemory],
) -> Result<DeploymentView, Missing> {
    let enough = |c: &&Capacity<'_>| c.usable_per_s(rate) >= rate.per_s as f64;
    let mut reason = None;
    for carrying in sizes.iter().filter(enough) {
        match of_size(question, rate, carrying, memories) {
            Ok(deployment) => return Ok(deployment),
            Err(missing) => reason = reason.or(Some(missing)),
        }
    }
    Err(reason.unwrap_or_else(|| too_slow(question, rate, sizes)))
}

/// The deployment with a number of servers that carries the rate. Errors: its memory is unknown, or
/// less than the data need.
fn of_size(
    question: &Question,
    rate: &RateAsked,
    carrying: &Capacity<'_>,
    memories: &[MeasuredMemory],
) -> Result<DeploymentView, Missing> {
    let deployment = &carrying.deployed();
    let spare = match carrying.survival {
        Some(_) => 0,
        None => rate.survive / (deployment.replicas + 1),
    };
    if deployment.shards.is_none() && rate.survive > 0 && carrying.survival.is_none() {
        return Err(Missing {
            text: format!(
                "`{}` is a cluster whose number of servers is in no record, so what remains when \
                 one fails is unknown",
                deployment.target
            ),
            commands: Vec::new(),
        });
    }
    let shards = carrying.shards();
    let servers = Servers {
        product: &deployment.family.product,
        shards,
        spare,
        replicas: deployment.replicas,
    };
    let needed = question.amount.map(|amount| memory::need(question, amount, &servers, memories));
    let (memory, of_memory) = needed.transpose()?.unzip();
    if let Some(missing) = memory.as_ref().and_then(|need| too_much(question, rate, carrying, need))
    {
        return Err(missing);
    }
    let mut measurements = carrying.measurements(rate);
    measurements.extend(of_memory.into_iter().flatten());
    let measured = carrying.base.measured;
    Ok(DeploymentView {
        rate: Some(DeploymentRate {
            measured_per_s: carrying.rate,
            usable_per_s: carrying.usable_per_s(rate),
            mix: measured.mix.to_string(),
            value_bytes: measured.value_bytes,
            keys: measured.keys,
            is_highest: carrying.is_highest(),
            survived_share: carrying.survival.map(|survival| survival.share),
            survived_per_s: carrying.survival.map(|own| own.per_primary() * f64::from(shards)),
        }),
        memory,
        notes: notes(question, rate, (carrying, deployment), spare),
        measurements,
        ..empty(deployment, (shards, spare))
    })
}

/// Why the data do not fit into the servers; `None` if they do.
fn too_much(
    question: &Question,
    rate: &RateAsked,
    carrying: &Capacity<'_>,
    need: &MemoryNeed,
) -> Option<Missing> {
    let (deployment, measured) = (carrying.deployment, carrying.base.measured);
    let (needed, target) = (need.maxmemory_bytes, &deployment.target);
    if let Some((limit, needed)) = beyond_tier(deployment, need) {
        let bytes = needed.saturating_mul(u64::from(deployment.servers()));
        return Some(Missing {
            text: format!(
                "{}: its rate with more memory was not measured",
                too_small(deployment, limit, needed)
            ),
            commands: vec![commands::with_memory(question, rate, deployment, bytes)],
        });
    }
    let limit = measured.memory_limit_bytes.filter(|limit| *limit < needed)?;
    let wanted = f64::from(carrying.shards()) * needed as f64 / limit.max(1) as f64;
    Some(Missing {
        text: format!(
            "`{target}` keeps {} in each server, and the data need {}: more servers of it were not \
             measured, and are not inferred",
            stats::format_bytes(limit),
            stats::format_bytes(needed)
        ),
        commands: commands::of_shards(
            question,
            (rate, &measured.mix),
            deployment,
            wanted.ceil() as u32,
        ),
    })
}

/// The memory of a server by its tier and what it needs, bytes, if that is more. Copies during a
/// save count: the kernel stops a server beyond the limit.
fn beyond_tier(deployment: &Deployment, need: &MemoryNeed) -> Option<(u64, u64)> {
    let saving = need.while_saving.as_ref().map_or(0, |saving| saving.machine_bytes);
    let needed = need.maxmemory_bytes.max(saving);
    Some((deployment.tier_memory_bytes()?, needed)).filter(|(limit, needed)| limit < needed)
}

fn too_small(deployment: &Deployment, limit: u64, needed: u64) -> String {
    format!(
        "the tier of `{}` gives each server {} of memory, and the data need {}",
        deployment.target,
        stats::format_bytes(limit),
        stats::format_bytes(needed)
    )
}

/// The memory of one server of a product, without a rate. Errors: it was not measured.
pub(super) fn of_memory(
    question: &Question,
    measured: &MeasuredMemory,
    all: &[MeasuredMemory],
) -> Option<Result<DeploymentView, Missing>> {
    let deployment = &measured.deployment;
    let product = &*deployment.family.product;
    let servers = Servers { product, shards: 1, spare: 0, replicas: 0 };
    let needed = memory::need(question, question.amount?, &servers, all);
    Some(needed.and_then(|(memory, measurements)| match beyond_tier(deployment, &memory) {
        Some((limit, needed)) => Err(Missing {
            text: too_small(deployment, limit, needed),
            commands: vec![commands::memory(question)],
        }),
        None => Ok(DeploymentView {
            notes: larger_value(question, memory.value_bytes).into_iter().collect(),
            memory: Some(memory),
            measurements,
            ..empty(&Deployment { replicas: 0, ..deployment.clone() }, (1, 0))
        }),
    }))
}

fn empty(deployment: &Deployment, (shards, spare): (u32, u32)) -> DeploymentView {
    let family = &deployment.family;
    DeploymentView {
        target: deployment.target.clone(),
        product: family.product.clone(),
        address: family.address.clone(),
        tls: family.tls,
        settings: family.configuration(),
        tier: family.tier_words(),
        host: family.host.clone(),
        servers: (shards + spare) * (1 + deployment.replicas),
        shards,
        spare_shards: spare,
        replicas: deployment.replicas,
        rate: None,
        memory: None,
        cost: None,
        measurements: Vec::new(),
        notes: Vec::new(),
        measured: deployment.clone(),
    }
}

/// Adds the cost of a deployment, if its target has a price.
pub(super) fn priced(question: &Question, prices: &Prices, own: &mut DeploymentView) {
    let Some(price) = prices.per_hour.get(&own.target) else { return };
    let per_hour = price * f64::from(own.servers);
    let of_requests = |rate: &RateAsked| per_hour / (rate.per_s as f64 * 3600.0) * 1e6;
    own.cost = Some(Cost {
        currency: prices.currency.clone(),
        per_hour,
        per_million: question.rate.as_ref().map(of_requests),
    });
}

/// Why no measured number of servers of a family carries the rate.
fn too_slow(question: &Question, rate: &RateAsked, sizes: &[Capacity<'_>]) -> Missing {
    let usable = |own: &Capacity<'_>| own.usable_per_s(rate);
    let most = sizes.iter().max_by(|a, b| usable(a).total_cmp(&usable(b)));
    let (Some(most), Some(largest)) = (most, sizes.last()) else {
        return Missing { text: "no number of servers was measured".into(), commands: Vec::new() };
    };
    let (deployment, measured) = (most.deployment, most.base.measured);
    if let Some(survival) = most.survival.filter(|survival| survival.share <= 0.0) {
        let shares = survival.lower_shares();
        return Missing {
            text: format!(
                "`{}` ({}) carries no known rate when a server fails: no measured share of its \
                 highest rate survived that (run {})",
                deployment.target,
                described(deployment),
                survival.measurement().run
            ),
            commands: commands::failover(question, rate, deployment, &shares),
        };
    }
    let usable = most.usable_per_s(rate);
    let short = format!(
        "`{}` ({}) carries {}: {}, fewer than {}",
        deployment.target,
        described(deployment),
        show::rate(usable),
        reason(rate, most),
        show::rate(rate.per_s as f64)
    );
    let count = |of: &Deployment| match of.servers() {
        1 => "one server".to_string(),
        several => format!("{several} servers"),
    };
    // A higher rate of a healthy day does not raise the rate that survived.
    let is_failure_the_limit = most.usable(rate).1 == Limit::SurvivedRate;
    if let (1, Reach::AtLeast(why)) = (sizes.len(), measured.reach)
        && !is_failure_the_limit
    {
        return Missing {
            text: format!("{short}; no more is known, because {why}"),
            commands: vec![commands::highest_rate(question, rate, Some(deployment))],
        };
    }
    let beyond =
        format!("more than {} were not measured, and are not inferred", count(largest.deployment));
    let beyond = match sizes.iter().filter(|c| c.deployment.servers() > 1).count() {
        0 => "scaling beyond one server was not measured, and is not inferred".to_string(),
        _ if most.shards() < largest.shards() => format!(
            "{} carry {}{}; {beyond}",
            count(largest.deployment),
            show::rate(largest.usable_per_s(rate)),
            shared(largest.deployment),
        ),
        _ => format!("{beyond}{}", shared(largest.deployment)),
    };
    let wanted = (rate.per_s as f64 / usable.max(1.0) * f64::from(most.shards())).ceil();
    let wanted = (wanted as u32).max(largest.shards() + 1);
    Missing {
        text: format!("{short}; {beyond}"),
        commands: commands::of_shards(question, (rate, &measured.mix), deployment, wanted),
    }
}

/// Why no more than the usable rate is counted on, for a sentence.
fn reason(rate: &RateAsked, most: &Capacity<'_>) -> String {
    let of_rate = |share: f64, at: &str| {
        format!("{}{at} of at least {}", show::percent(share), show::rate(most.lowest_per_s))
    };
    match (most.usable(rate).1, most.survival) {
        (Limit::SurvivedShare, Some(survival)) => {
            of_rate(survival.share, ", at which it survives the failure of a server,")
        }
        (Limit::SurvivedRate, Some(_)) => {
            "the highest rate at which the failure of a server was survived".into()
        }
        _ => of_rate(rate.headroom, ""),
    }
}

/// What the servers of a target share, for a sentence; empty if they share nothing.
fn shared(deployment: &Deployment) -> String {
    if !deployment.shares_host() {
        return String::new();
    }
    format!(", all on one host ({}), so its CPUs can be the limit", deployment.family.host)
}

/// Product, TLS and settings of a target.
fn described(deployment: &Deployment) -> String {
    let family = &deployment.family;
    let tls = if family.tls { ", TLS" } else { "" };
    let shards = match (deployment.shards, deployment.replicas) {
        (Some(1), 0) => String::new(),
        (None, _) => ", a cluster".into(),
        (Some(shards), 0) => format!(", {shards} shards"),
        (Some(shards), replicas) => format!(", shards: {shards}, replicas of each: {replicas}"),
    };
    let tier = family.tier_words().map_or_else(String::new, |tier| format!(", tier: {tier}"));
    format!("{}{tls}{shards}{tier}", family.product)
}

/// A note that the measured values are larger than those of the question.
fn larger_value(question: &Question, measured: u64) -> Option<String> {
    let asked = question.value_bytes.filter(|asked| *asked < measured)?;
    Some(format!(
        "values of {} were not measured: the next larger size that was, {}, stands for them",
        stats::format_bytes(asked),
        stats::format_bytes(measured)
    ))
}

/// That the rate which survived is the limit; `None` if it is not.
fn survived(rate: &RateAsked, carrying: &Capacity<'_>) -> Option<String> {
    let per_primary = show::rate(carrying.survival?.per_primary());
    (carrying.usable(rate).1 == Limit::SurvivedRate).then(|| {
        format!(
            "no more than {per_primary} of each primary counts: the highest rate at which the \
             failure of a server was survived"
        )
    })
}

/// Assumptions of a deployment, and limits of its measurements.
fn notes(
    question: &Question,
    rate: &RateAsked,
    (carrying, deployment): (&Capacity<'_>, &Deployment),
    spare: u32,
) -> Vec<String> {
    let measured: &MeasuredRate = carrying.base.measured;
    let mut notes: Vec<String> = larger_value(question, measured.value_bytes).into_iter().collect();
    if let Reach::AtLeast(why) = measured.reach {
        notes.push(format!("the rate is a lower bound, because {why}"));
    }
    if let Some(faster) =
        (!carrying.base.faster.is_empty()).then(|| carrying.base.faster.join("; "))
    {
        notes.push(format!(
            "this is for {}, of the mixes that were measured the one with the lowest rate (also \
             {faster}): choose one with --op",
            measured.mix
        ));
    }
    let of_one = commands::keys(question).map(|keys| keys / u64::from(carrying.shards()));
    let in_one = measured.keys / u64::from(measured.deployment.shards.unwrap_or(1));
    if let Some(of_one) = of_one.filter(|keys| *keys > in_one) {
        notes.push(format!(
            "a server was measured with {} keys, and is to keep {}: more keys fit less well in the \
             caches of its CPU",
            show::commas(in_one),
            show::commas(of_one)
        ));
    }
    if carrying.scaled.is_some() {
        notes.push(
            "the rate within the limits is that of fewer servers times the ratio of the rates \
             without limits"
                .into(),
        );
    }
    if let Some(survival) = carrying.survival {
        notes.extend(survived(rate, carrying));
        let keys = commands::keys(question);
        notes.extend(survival.notes(carrying.deployment, &measured.mix, keys));
    }
    if let (Some(tier), true) = (deployment.family.tier_words(), carrying.shards() > 1) {
        notes.push(format!("the limits of the tier are those of all servers together: {tier}"));
    }
    if deployment.shares_host() {
        notes.push(format!(
            "the servers were measured all on one host ({}): on hosts of their own they can carry \
             more, and their network is not in these times",
            deployment.family.host
        ));
    } else if deployment.family.address.is_none() {
        notes.push("server and clients were on one host: no network is in these times".into());
    }
    if spare > 0 {
        notes.push(
            "the spare servers have no copies: keys of a failed one are lost, and the others must \
             take over its share"
                .into(),
        );
    }
    notes
}
