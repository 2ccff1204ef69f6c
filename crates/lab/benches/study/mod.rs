//! Shared by benches of a shipped study: guard process, plan, directories of servers.

use cachedyno_lab::{Protection, Setup, TargetProvisioner};
use model::{Choices, Plan, Scale, Study, TargetChoice};
use rig::{Guard, Pinning};
use std::collections::BTreeMap;
use std::error::Error;

/// Runs the guard if this process was started as one; otherwise returns false.
pub(crate) fn played_guard(arguments: &[String]) -> Result<bool, Box<dyn Error>> {
    if arguments.first().map(String::as_str) != Some(rig::GUARD_ARGUMENT) {
        return Ok(false);
    }
    rig::guard_main(std::io::stdin().lock())?;
    Ok(true)
}

/// A plan of a shipped study, its name and its text; one client, with `sets` as `--set` pairs.
pub(crate) fn plan(
    (name, text): (&str, &str),
    seed: u64,
    targets: &[&str],
    sets: &[(&str, String)],
) -> Result<Plan, Box<dyn Error>> {
    let study = Study::parse(name, text)?;
    let mut all = vec![("clients".to_string(), "1".to_string())];
    all.extend(sets.iter().map(|(key, value)| ((*key).to_string(), value.clone())));
    let choices = Choices {
        sets: all,
        targets: targets.iter().map(|t| TargetChoice::parse(t)).collect::<Result<_, _>>()?,
        ..Choices::new(Scale::Quick, seed)
    };
    Ok(study.plan(&choices)?)
}

/// Setup for private servers below the system's temporary directory.
pub(crate) fn setup() -> Result<Setup, Box<dyn Error>> {
    Ok(Setup {
        guard: Guard::start()?,
        disk: std::env::temp_dir(),
        pinning: Pinning::for_this_process(),
        endpoints: BTreeMap::new(),
        allow_shared: false,
        resumes: false,
        protection: Protection::Full,
        fleet: None,
        rig_on: None,
        fault_command: None,
    })
}

/// Provisioner of the targets of `plan`.
pub(crate) fn provisioner<'a>(plan: &'a Plan, setup: &'a Setup) -> TargetProvisioner<'a> {
    TargetProvisioner::new(plan, "bench", setup)
}
