//! Plans of the study of sizing.

use model::study::{Choices, Study};
use model::{Plan, Scale};

const SIZING: &str = include_str!("../../../../studies/sizing.toml");

/// A quick plan of these profiles.
pub(super) fn plan(profiles: &str) -> Plan {
    let study = Study::parse("sizing", SIZING).unwrap();
    let plan = study.plan(&Choices {
        scale: Scale::Quick,
        budget_s: None,
        sets: vec![("profile".into(), profiles.into())],
        targets: Vec::new(),
        control: false,
        seed: 7,
        timeout_ms: None,
        stall_ns: None,
        files: None,
        has_fault_command: false,
    });
    plan.unwrap()
}
