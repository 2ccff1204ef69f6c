//! Sizing: which measured target carries a wanted rate, with how many servers and how much memory.
//!
//! A pure function from a [`Question`] and the [`Evidence`] of several records to a [`SizingView`].
//! It counts on the lower end of a measured interval, and infers nothing that was not measured:
//! otherwise the answer is what is missing, and the commands of the runs that would measure it.
//!
//! - `question`: what is asked; `deployment`: what was measured, apart from its figures.
//! - `record`: one record, with the `origin` of its measurements; `evidence`: its usable rates and
//!   ratios; `measured_memory`: its memory of keys and of saves.
//! - `coverage`: the measurement that stands for each target, or the condition that none meets.
//! - `memory`: memory that the data need; `survival`: what a store survived.
//! - `capacity`: rates of several servers; `servers`: how many of them are needed.
//! - `commands`: runs that would measure what is missing.
//! - `view`: the answer as data; [`text`]: the answer for a terminal.

mod capacity;
mod commands;
mod coverage;
mod deployment;
mod evidence;
mod measured_memory;
mod memory;
mod origin;
mod question;
mod record;
mod servers;
mod survival;
pub mod text;
mod view;

use model::Prices;
use std::cmp::Ordering;
use std::collections::BTreeMap;

pub use evidence::Evidence;
pub use origin::LeftOut;
pub use question::{Amount, Mix, Question, RateAsked};
pub use view::{
    Cost, DeploymentRate, DeploymentView, Measurement, MemoryNeed, Missing, Outcome, SIZING_FORMAT,
    SavingNeed, SizingView,
};

use capacity::{Capacity, capacities};
use coverage::covering;
use measured_memory::MeasuredMemory;

/// Answers a question from what the records show; `prices` are of targets in the records.
/// `records` is the directory of records, `None` for the default one.
pub fn size(
    question: &Question,
    evidence: &Evidence,
    prices: Option<&Prices>,
    records: Option<&str>,
) -> SizingView {
    let mut left_out = evidence.left_out.clone();
    let found = match &question.rate {
        Some(rate) => match covering(question, rate, evidence) {
            Ok((bases, superseded)) => {
                left_out.extend(superseded);
                let survivals = &evidence.survivals;
                let mut all = capacities(&bases, &evidence.scalings);
                for own in &mut all {
                    own.survival = survival::of(survivals, question, rate, own.deployment);
                }
                by_family(all)
                    .map(|sizes| servers::of_family(question, rate, &sizes, &evidence.memories))
                    .collect()
            }
            Err(missing) => vec![Err(missing)],
        },
        None => of_memory(question, evidence),
    };
    let (mut deployments, mut missing) = (Vec::new(), Vec::new());
    for one in found {
        match one {
            Ok(deployment) => deployments.push(deployment),
            Err(lack) if !missing.contains(&lack) => missing.push(lack),
            Err(_) => {}
        }
    }
    if let Some(prices) = prices {
        for own in &mut deployments {
            servers::priced(question, prices, own);
        }
    }
    deployments.sort_by(order);
    let failure = deployments.first().and_then(|best| survival::missing(question, best));
    let outcome = match &failure {
        _ if deployments.is_empty() => Outcome::NotCovered,
        Some(_) => Outcome::PartlyCovered,
        None => Outcome::Covered,
    };
    missing.extend(failure);
    commands::in_records(&mut missing, records);
    SizingView {
        format: SIZING_FORMAT,
        question: question.words(),
        outcome,
        sentence: text::sentence(question, &deployments),
        deployments,
        missing,
        records: evidence.records,
        left_out,
    }
}

/// The numbers of servers that belong together: of one family with as many replicas each.
fn by_family(all: Vec<Capacity<'_>>) -> impl Iterator<Item = Vec<Capacity<'_>>> {
    let mut groups: Vec<Vec<Capacity<'_>>> = Vec::new();
    for own in all {
        let place = |c: &Capacity<'_>| (c.deployment.family.clone(), c.deployment.replicas);
        match groups.last_mut().filter(|group| group.first().map(place) == Some(place(&own))) {
            Some(group) => group.push(own),
            None => groups.push(vec![own]),
        }
    }
    groups.into_iter()
}

/// One deployment for each product whose memory was measured, named after its simplest target.
fn of_memory(question: &Question, evidence: &Evidence) -> Vec<Result<DeploymentView, Missing>> {
    let mut simplest: BTreeMap<&str, &MeasuredMemory> = BTreeMap::new();
    let rank = |m: &MeasuredMemory| {
        let own = &m.deployment;
        (!own.family.tier.is_empty(), own.shards != Some(1), own.target.len())
    };
    for measured in &evidence.memories {
        let product = measured.deployment.family.product.as_str();
        let known = simplest.entry(product).or_insert(measured);
        if rank(measured) < rank(known) {
            *known = measured;
        }
    }
    let of_product = |m: &&MeasuredMemory| servers::of_memory(question, m, &evidence.memories);
    let mut deployments: Vec<Result<DeploymentView, Missing>> =
        simplest.values().filter_map(of_product).collect();
    if deployments.is_empty() {
        deployments.push(Err(Missing {
            text: "no usable record has the memory of keys".into(),
            commands: vec![commands::memory(question)],
        }));
    }
    deployments
}

/// Cheap deployments first, those without a price last; then few servers, then much spare rate.
fn order(a: &DeploymentView, b: &DeploymentView) -> Ordering {
    let cost = |own: &DeploymentView| own.cost.as_ref().map_or(f64::INFINITY, |cost| cost.per_hour);
    let usable = |own: &DeploymentView| own.rate.as_ref().map_or(0.0, |rate| rate.usable_per_s);
    cost(a)
        .total_cmp(&cost(b))
        .then(a.servers.cmp(&b.servers))
        .then(usable(b).total_cmp(&usable(a)))
        .then(a.target.cmp(&b.target))
}
