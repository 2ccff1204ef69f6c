//! Leftovers of killed runs on this machine: listed, reported before a measurement, and removed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::Setup;
use model::Plan;
use rig::orphaned::{Found, Kind, look};
use stats::format_bytes;

use crate::exit::{CliError, FAILED};
use crate::output;

/// Working directories of a run: `--disk`, those of targets, and that of swap.
pub(crate) fn disks<'a>(setup: &'a Setup, plan: &'a Plan) -> Vec<&'a Path> {
    let targets = setup.disks(plan).into_iter().map(|(_, disk)| disk);
    let disks = std::iter::once(setup.disk.as_path()).chain(targets);
    disks.chain(plan.swap_dir.as_deref()).collect()
}

/// Prints a line per directory with its orphaned leftovers and the command to remove them.
pub(crate) fn notice(disks: &[&Path]) {
    let mut seen = Vec::new();
    let temporary = std::env::temp_dir();
    let first_disk = disks.first().copied().unwrap_or(Path::new("."));
    let places = disks.iter().map(|disk| (*disk, *disk)).chain([(first_disk, &*temporary)]);
    for (disk, place) in places {
        let mut found = look(&[place.into()], false);
        // The run reuses the lock directory.
        found.retain(|f| f.is_orphaned && f.kind != Kind::Lock && !seen.contains(&f.path));
        let Some(first) = found.first() else { continue };
        let more = match found.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        output::say(&format!(
            "note: killed runs left `{}`{more} behind (`{}` removes only this)",
            first.path.display(),
            command(disk)
        ));
        seen.extend(found.into_iter().map(|found| found.path));
    }
}

/// Text for `doctor`; empty without leftovers.
pub(crate) fn list(disk: &Path) -> String {
    let (orphaned, unknown): (Vec<_>, Vec<_>) =
        look(&places(disk), true).into_iter().partition(|found| found.is_orphaned);
    let mut text = String::new();
    if !orphaned.is_empty() {
        text += "\nleftovers of killed runs\n";
        text += &lines(&orphaned);
        let _ = writeln!(text, "  `{}` removes only this", command(disk));
    }
    text + &in_doubt(&unknown)
}

/// Removes orphaned leftovers and prints a line for each.
pub(crate) fn clean(disk: &Path) -> Result<ExitCode, CliError> {
    let (orphaned, unknown): (Vec<_>, Vec<_>) =
        look(&places(disk), true).into_iter().partition(|found| found.is_orphaned);
    let (mut removed, mut failures) = (0, 0);
    for found in &orphaned {
        let line = describe(found);
        match found.remove() {
            Ok(true) => {
                output::print(&format!("removed {line}\n"))?;
                removed += 1;
            }
            // Another process has already removed it.
            Ok(false) => {}
            Err(e) => {
                output::say(&format!("error: {e}"));
                failures += 1;
            }
        }
    }
    output::print(&in_doubt(&unknown))?;
    if removed + failures == 0 {
        output::print("nothing to remove: no leftovers of killed runs\n")?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn places(disk: &Path) -> [PathBuf; 3] {
    [disk.into(), std::env::temp_dir(), "/tmp".into()]
}

fn lines(found: &[Found]) -> String {
    found.iter().flat_map(|found| ["  ".into(), describe(found), "\n".into()]).collect()
}

fn in_doubt(unknown: &[Found]) -> String {
    if unknown.is_empty() {
        return String::new();
    }
    let heading = "\nmade by cachedyno, but it is unknown whether its run has ended\n";
    format!("{heading}{}  remove it yourself once you are sure\n", lines(unknown))
}

fn describe(found: &Found) -> String {
    let what = match found.kind {
        Kind::Directory if found.holds_swap() => {
            format!("{} with active swap", format_bytes(found.bytes()))
        }
        Kind::Directory => format_bytes(found.bytes()),
        Kind::Lock => "lock directory".into(),
        Kind::Group => "control group".into(),
    };
    format!("`{}`: {what}, {}", found.path.display(), found.why)
}

/// The command that removes orphaned leftovers in `disk` and in temporary directories.
fn command(disk: &Path) -> String {
    let words = ["cachedyno", "doctor", "--clean", "--disk", &disk.to_string_lossy()];
    model::shell_words(words)
}
