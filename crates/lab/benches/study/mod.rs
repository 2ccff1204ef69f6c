//! What benches of a shipped study need: the guard's role, its plan, places for its servers.

use cachedyno_lab::{Bench, Setup};
use model::{Choices, Plan, Scale, Study, TargetChoice};
use rig::{Guard, Pinning};
use std::collections::BTreeMap;
use std::error::Error;

/// Plays the guard when this process was started as one; false when it was not.
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
        scale: Scale::Quick,
        budget_s: None,
        sets: all,
        targets: targets.iter().map(|t| TargetChoice::parse(t)).collect::<Result<_, _>>()?,
        control: false,
        seed,
        timeout_ms: None,
        files: None,
    };
    Ok(study.plan(&choices)?)
}

/// Places of private servers: a scratch under the system's temporary directory.
pub(crate) fn setup() -> Result<Setup, Box<dyn Error>> {
    Ok(Setup {
        guard: Guard::start()?,
        disk: std::env::temp_dir(),
        pinning: Pinning::for_this_process(),
        endpoints: BTreeMap::new(),
        allow_shared: false,
        resumes: false,
        i_own_this_server: false,
    })
}

/// A bench of targets for `plan`.
pub(crate) fn bench<'a>(plan: &'a Plan, setup: &'a Setup) -> Bench<'a> {
    Bench::new(plan, "bench", setup)
}
