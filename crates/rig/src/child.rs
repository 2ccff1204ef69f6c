//! Starts other programs.

use std::ffi::OsStr;
use std::process::Command;

/// Environment variables that child processes inherit. Others can contain passwords of targets.
const INHERITED: [&str; 2] = ["PATH", "TMPDIR"];

/// Start of the names of variables with passwords of targets.
const PASSWORDS: &str = "CACHEDYNO_PASSWORD_";

/// A command of the user, with the user's environment except passwords of targets.
pub(crate) fn command_of_user(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(PASSWORDS.as_bytes()) {
            command.env_remove(name);
        }
    }
    command
}

/// A command with a minimal environment: the paths of programs and temporary files, and `LC_ALL=C`
/// so that its output can be parsed. Every other child process is started through it.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LC_ALL", "C");
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command
}
