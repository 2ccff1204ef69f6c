//! What speed does not show: the properties of the measured stores, and what it takes to run them.

use model::{Product, Property};
use serde::Serialize;

/// What a product has of a property.
#[derive(Clone, Debug, Serialize)]
pub struct CapabilityView {
    /// The property.
    pub property: Property,
    /// The product.
    pub kind: Product,
    /// Whether the product has it; omitted for a property that every product has in some way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has: Option<bool>,
    /// The fact, a few words.
    pub text: String,
    /// Documentation of the fact: a URL without its scheme.
    pub source: String,
}

/// What it takes to run a target, counted.
#[derive(Clone, Debug, Serialize)]
pub struct OperatingView {
    /// Name of the target.
    pub target: String,
    /// Products of its servers, one for each; empty if it has none.
    pub servers: Vec<Product>,
    /// Settings that the run gave to it.
    pub settings: usize,
    /// Kinds of failures in this run, each with the number of operations or trials.
    pub failures: Vec<String>,
}
