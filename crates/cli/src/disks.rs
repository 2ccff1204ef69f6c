//! Directories of a run's targets: checked before the run, and described in its record.

use std::path::Path;

use lab::Setup;
use model::record::{DISK, disk_group};
use model::study::unlabelled;
use model::{BackgroundWrite, Cell, Condition, DiskLimit, Plan, TargetChoice};
use nix::unistd::{AccessFlags, access};

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
    directories.try_for_each(|(name, directory)| exists(name, directory))?;
    check_swap(plan)
}

/// Checks that the directory for swap takes a swap file. Errors: it does not exist, we may not
/// write to it, or its file system has none.
pub(crate) fn check_swap(plan: &Plan) -> Result<(), CliError> {
    let Some(directory) = &plan.swap_dir else { return Ok(()) };
    let problem = if !directory.is_absolute() || !directory.is_dir() {
        "is not a directory".into()
    } else if let Err(e) = access(directory, AccessFlags::W_OK | AccessFlags::X_OK) {
        format!("cannot be written to: {}", e.desc())
    } else if let Some(kind) = rig::refuses_swap(directory) {
        format!("is on {kind}, which has no swap files")
    } else {
        return Ok(());
    };
    Err(CliError::usage(format!(
        "--set swap_dir=`{}` {problem} (expected an existing, absolute directory on a disk with a \
         file system such as ext4 or XFS, in which the run creates and removes its own)",
        directory.display()
    )))
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
    if plan.cells.iter().any(|cell| cell.workload.swaps()) {
        describe_swap(plan, &disks, facts);
    }
    let limit = |name: &str| plan.target(name).and_then(|target| target.disk_limit);
    warn_of_shared(&disks, limit, facts);
}

/// The name of swap in [`disk_group`].
const SWAP: &str = "swap";

/// Adds facts about the disk of swap, if it has its own directory, and warns if the data of a
/// target that swaps are on the same disk.
fn describe_swap(plan: &Plan, disks: &[(&str, &Path)], facts: &mut Vec<Condition>) {
    let swapping = |name: &str| {
        let mut own = plan.cells.iter().filter(|cell| cell.target == name);
        own.any(|cell| cell.workload.swaps())
    };
    let swap = match &plan.swap_dir {
        Some(directory) => {
            let at = facts.iter().rposition(|fact| fact.group.starts_with(DISK));
            let at = at.map_or(facts.len(), |at| at + 1);
            facts.splice(at..at, rig::disk_conditions(&disk_group(SWAP), directory));
            let own = |f: &Condition| f.group == disk_group(SWAP) && f.name == "device";
            let Some(device) = facts.iter().position(own) else { return };
            Some(device)
        }
        None => None,
    };
    let shared = |(name, _): &&(&str, &Path)| {
        let is_on =
            |at: usize| device(facts, name).is_some_and(|d| facts[d].value == facts[at].value);
        swapping(name) && swap.is_none_or(is_on)
    };
    let Some((name, _)) = disks.iter().find(shared) else { return };
    let writes = |cell: &Cell| {
        cell.workload.swaps() && BackgroundWrite::ALL.iter().any(|w| cell.workload.requests(*w))
    };
    let warning = format!(
        "swap and the data of `{name}` are on the same disk, so what a server writes there and \
         swapping slow each other; choose a directory on another disk, `--set swap_dir=DIRECTORY`"
    );
    let warning = plan.cells.iter().any(writes).then_some(warning);
    if let Some(at) = swap {
        facts[at].warning = warning.or_else(|| facts[at].warning.take());
        return;
    }
    let device = device(facts, name);
    let group = device.map_or(DISK.into(), |at| facts[at].group.clone());
    let (name, value) = (SWAP.into(), "in the directory of the data".into());
    let at = device.map_or(facts.len(), |at| at + 1);
    facts.insert(at, Condition { group, name, value, warning });
}

/// Place of the fact about the device of a target's disk, its own or that of `--disk`.
fn device(facts: &[Condition], name: &str) -> Option<usize> {
    let of = |group: &str| facts.iter().position(|f| f.group == group && f.name == "device");
    of(&disk_group(name)).or_else(|| of(DISK))
}

/// Warns of targets with the same store and different labels that share a disk.
fn warn_of_shared(
    disks: &[(&str, &Path)],
    limit: impl Fn(&str) -> Option<DiskLimit>,
    facts: &mut [Condition],
) {
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
