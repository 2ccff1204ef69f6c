//! Quick plans of shipped studies.

use model::study::{Choices, Study};
use model::{Plan, Scale};

pub(super) const BEYOND_RAM: &str = include_str!("../../../../studies/beyond-ram.toml");
pub(super) const FAILOVER: &str = include_str!("../../../../studies/failover.toml");
pub(super) const SIZING: &str = include_str!("../../../../studies/sizing.toml");

/// A plan of these profiles of a study.
pub(super) fn plan(study: &str, profiles: &str) -> Plan {
    let choices = Choices {
        sets: vec![("profile".into(), profiles.into())],
        ..Choices::new(Scale::Quick, 7)
    };
    Study::parse("study", study).unwrap().plan(&choices).unwrap()
}
