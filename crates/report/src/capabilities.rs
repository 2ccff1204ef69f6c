//! What speed does not show: properties of the measured products, and what it takes to run the
//! targets.

use model::{Counts, PlannedTarget, Product, Trial};
use std::collections::BTreeMap;

use crate::recorded::Recorded;
use crate::view::{Advised, CapabilityView, OperatingView};

/// Adds both to the advice of a study that compares several products.
pub(crate) fn with_capabilities(recorded: &Recorded, advised: Advised) -> Advised {
    let plan = &recorded.header.plan;
    let products = products(recorded);
    if products.len() < 2 || (plan.claims.is_empty() && plan.advice.is_none()) {
        return advised;
    }
    let of = |product: Product| {
        product.capabilities().iter().map(move |capability| CapabilityView {
            property: capability.property,
            kind: product,
            has: capability.has,
            text: capability.text.into(),
            source: capability.source.into(),
        })
    };
    let mut capabilities: Vec<CapabilityView> = products.into_iter().flat_map(of).collect();
    capabilities.sort_by_key(|capability| capability.property);
    Advised { capabilities, operating: operating(recorded), ..advised }
}

/// Stores that were measured, except repetitions of the control.
fn measured(recorded: &Recorded) -> impl Iterator<Item = &PlannedTarget> {
    let is_measured = |target: &&PlannedTarget| {
        target.product != Product::Disk
            && target.control_of.is_none()
            && recorded.unavailable(&target.name).is_none()
    };
    recorded.header.plan.targets.iter().filter(is_measured)
}

/// Their products, each once, in display order.
fn products(recorded: &Recorded) -> Vec<Product> {
    let mut products: Vec<Product> =
        measured(recorded).flat_map(PlannedTarget::products).copied().collect();
    products.sort_unstable();
    products.dedup();
    products
}

fn operating(recorded: &Recorded) -> Vec<OperatingView> {
    let view = |target: &PlannedTarget| OperatingView {
        target: target.name.clone(),
        servers: target.products().iter().copied().filter(|p| p.has_server()).collect(),
        settings: target.settings.len(),
        failures: failures(recorded, &target.name),
    };
    measured(recorded).map(view).collect()
}

/// Kinds of failures of a target over all points and trials, most frequent first.
fn failures(recorded: &Recorded, target: &str) -> Vec<String> {
    let cells = recorded.header.plan.cells.iter().filter(|cell| cell.target == target);
    let trials: Vec<&Trial> = cells.flat_map(|cell| recorded.latest(&cell.id)).collect();
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |kind: String, count: u64| {
        if count > 0 {
            *kinds.entry(kind).or_default() += count;
        }
    };
    for trial in trials {
        if let Some(failure) = &trial.failure {
            add(format!("a trial failed: {}", failure.class), 1);
        }
        for point in &trial.points {
            let Some(Counts { lost, wrong, stale, errors_by_class, .. }) =
                point.whole().map(|whole| &whole.counts)
            else {
                continue;
            };
            add("records lost".into(), *lost);
            add("wrong values".into(), *wrong);
            add("old values".into(), *stale);
            for (class, count) in errors_by_class {
                add(class.to_string(), *count);
            }
        }
    }
    let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    kinds.into_iter().map(|(kind, count)| format!("{kind} ({count})")).collect()
}
