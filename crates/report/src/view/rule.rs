//! A fixed rule, in words.

use serde::Serialize;

/// Description of a fixed rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The quantity that the rule checks.
    pub name: &'static str,
    /// The limit, with its unit.
    pub limit: String,
    /// Consequence of exceeding the limit, and the reason.
    pub meaning: &'static str,
}
