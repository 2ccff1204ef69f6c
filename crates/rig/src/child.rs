//! Starts other programs.

use std::ffi::OsStr;
use std::process::Command;

/// What a program that we start keeps of our environment. The rest may hold passwords of targets.
const KEPT: [&str; 2] = ["PATH", "TMPDIR"];

/// A program with an environment of its own: where programs and temporary files are, and the
/// language that its output is read in. Every program is started by this.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LC_ALL", "C");
    command.envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}
