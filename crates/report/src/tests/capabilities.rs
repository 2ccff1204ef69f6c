//! What speed does not show: properties of products, and what it takes to run targets.

use model::{ErrorClass, Property};

use crate::fixture::{advice, run, usual};
use crate::{judge, text};

#[test]
fn needs_are_met_by_the_products_that_have_the_properties() {
    let mut recorded = run(&["files", "redis", "mysql"], 5, usual);
    assert!(judge(&recorded).advised.capabilities.is_empty(), "no study advises");
    recorded.header.plan.advice = Some(advice());
    let whole = |trial: &mut model::Trial| {
        let counts = &mut trial.points[0].operations[0].counts;
        counts.error += 3;
        counts.errors_by_class.insert(ErrorClass::Closed, 3);
    };
    recorded.trials.iter_mut().filter(|t| t.cell.starts_with("mysql")).take(1).for_each(whole);
    let view = judge(&recorded);
    assert_eq!(view.advised.capabilities.len(), 3 * Property::ALL.len());
    let shown = text::render(&view, 140, false);
    assert!(shown.contains("data types and replication: only redis and mysql"), "{shown}");
    assert!(!shown.contains("persistence: only"), "all three keep data: {shown}");
    let lines: Vec<&str> = shown.lines().skip_while(|l| !l.starts_with("What speed")).collect();
    let of = |name: &str| *lines.iter().find(|l| l.starts_with(name)).unwrap();
    assert!(of("files ").ends_with('–') && of("files ").contains(" 0 "), "{}", of("files "));
    assert!(of("mysql ").ends_with("connection lost (3)"), "{}", of("mysql "));
    assert!(shown.contains("Magento 1 needs an extension for Redis. (its documentation)"));
}

#[test]
fn a_single_product_has_nothing_to_compare() {
    let mut recorded = run(&["redis"], 5, usual);
    recorded.header.plan.advice = Some(advice());
    assert!(judge(&recorded).advised.capabilities.is_empty());
}
