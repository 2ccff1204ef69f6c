//! Directories of a run's targets: checked before the run, and described in its record.

use std::path::Path;

use lab::Setup;
use model::record::{DISK, disk_group};
use model::study::unlabelled;
use model::{Condition, DiskLimit, Plan, TargetChoice};

use crate::exit::CliError;

/// Checks that the directories of `--target NAME=DIRECTORY` exist. Errors: one does not.
pub(crate) fn check(choices: &[TargetChoice]) -> Result<(), CliError> {
    let mut directories = choices.iter().filter_map(|c| Some((&*c.name, c.directory.as_deref()?)));
    directories.try_for_each(|(name, directory)| exists(name, directory))
}

/// The same for the targets of a plan that is resumed.
pub(crate) fn check_planned(plan: &Plan) -> Result<(), CliError> {
    let mut directories =
        plan.targets.iter().filter_map(|t| Some((&*t.name, t.directory.as_deref()?)));
    directories.try_for_each(|(name, directory)| exists(name, directory))
}

fn exists(name: &str, directory: &Path) -> Result<(), CliError> {
    let shown = directory.display();
    if directory.is_absolute() && directory.is_dir() {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "--target `{name}`: `{shown}` is not a directory (expected an existing, absolute one, in \
         which the run creates and removes its own)"
    )))
}

/// Replaces the facts about `--disk` by facts about each disk of the run: those of `--disk` in the
/// group [`DISK`], if a target uses it, and of each target with its own directory in
/// [`disk_group`].
pub(crate) fn describe(plan: &Plan, setup: &Setup, facts: &mut Vec<Condition>) {
    let disks = setup.disks(plan);
    let (common, own): (Vec<_>, Vec<_>) =
        disks.iter().copied().partition(|(_, disk)| *disk == setup.disk);
    let at = facts.iter().rposition(|fact| fact.group == DISK).map_or(facts.len(), |at| at + 1);
    let described =
        own.iter().flat_map(|(name, disk)| rig::disk_conditions(&disk_group(name), disk));
    facts.splice(at..at, described.collect::<Vec<_>>());
    if common.is_empty() && !own.is_empty() {
        facts.retain(|fact| fact.group != DISK);
    }
    let limit = |name: &str| plan.target(name).and_then(|target| target.disk_limit);
    warn_of_shared(&disks, limit, facts);
}

/// Warns of targets with the same store and different labels that share a disk.
fn warn_of_shared(
    disks: &[(&str, &Path)],
    limit: impl Fn(&str) -> Option<DiskLimit>,
    facts: &mut [Condition],
) {
    let device = |facts: &[Condition], name: &str| {
        let of = |group: &str| facts.iter().position(|f| f.group == group && f.name == "device");
        of(&disk_group(name)).or_else(|| of(DISK))
    };
    for (i, (name, _)) in disks.iter().enumerate() {
        let Some(own) = device(facts, name) else { continue };
        let twin = disks[..i].iter().find(|(other, _)| {
            unlabelled(other) == unlabelled(name)
                && limit(other) == limit(name)
                && device(facts, other).is_some_and(|at| facts[at].value == facts[own].value)
        });
        if let Some((twin, _)) = twin {
            facts[own].warning = Some(format!(
                "`{name}` and `{twin}` are on the same disk, so a difference between them is not \
                 one of disks; choose directories on different disks, or `--set disk_limit.LABEL=…`"
            ));
        }
    }
}
