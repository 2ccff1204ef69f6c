//! What both benches need: the guard's role, choices of the command line, the shipped study.

use cachedyno_lab::{Bench, Setup};
use model::{Choices, Failure, Plan, Scale, Study, TargetChoice};
use rig::{Guard, Pinning};
use std::collections::BTreeMap;
use std::error::Error;

/// What a bench ends with.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The program's arguments, without what cargo adds.
pub(crate) fn arguments() -> Vec<String> {
    std::env::args().skip(1).filter(|a| a != "--bench").collect()
}

/// Plays the guard when this process was started as one; false when it was not.
pub(crate) fn played_guard(arguments: &[String]) -> Result<bool, Box<dyn Error>> {
    if arguments.first().map(String::as_str) != Some(rig::GUARD_ARGUMENT) {
        return Ok(false);
    }
    rig::guard_main(std::io::stdin().lock())?;
    Ok(true)
}

/// The number after `name`, or `default` when the name is not given.
pub(crate) fn number(arguments: &[String], name: &str, default: u64) -> Result<u64, String> {
    let Some(at) = arguments.iter().position(|a| a == name) else { return Ok(default) };
    let text = arguments.get(at + 1).map_or("", String::as_str);
    text.parse().map_err(|_| format!("`{text}` is no number (expected one after {name})"))
}

/// A plan of the shipped session study, one client, with `sets` as `--set` pairs.
pub(crate) fn plan(
    seed: u64,
    targets: &[&str],
    sets: &[(&str, String)],
) -> Result<Plan, Box<dyn Error>> {
    let study = Study::parse("sessions", include_str!("../../../../studies/sessions.toml"))?;
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
    })
}

/// A failure as an error that prints.
pub(crate) fn told(Failure { class, message }: Failure) -> Box<dyn Error> {
    format!("{class}: {message}").into()
}

/// A bench of targets for `plan`.
pub(crate) fn bench<'a>(plan: &'a Plan, setup: &'a Setup) -> Bench<'a> {
    Bench::new(plan, "bench", setup)
}
