//! Starts other programs.

use std::ffi::OsStr;
use std::process::Command;

/// Environment variables that child processes inherit. Others can contain passwords of targets.
const INHERITED: [&str; 2] = ["PATH", "TMPDIR"];

/// A command with a minimal environment: the paths of programs and temporary files, and `LC_ALL=C`
/// so that its output can be parsed. Every child process is started through it.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LC_ALL", "C");
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}
