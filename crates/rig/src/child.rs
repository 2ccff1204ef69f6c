//! Starts other programs.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// Environment variables that child processes inherit. Others can contain passwords of targets.
const INHERITED: [&str; 2] = ["PATH", "TMPDIR"];

/// Start of the names of variables with passwords of targets.
const PASSWORDS: &str = "CACHEDYNO_PASSWORD_";

/// A command of the user, with the user's environment except passwords of targets.
pub(crate) fn command_of_user(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
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
    command.envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command
}

/// Path by which this process can start its own program again. Its file may be gone: replaced by an
/// update, or never one, as on the nodes of a Ray cluster.
pub(crate) fn own_program() -> PathBuf {
    let named = env::current_exe().ok().filter(|path| path.exists());
    named.unwrap_or_else(|| "/proc/self/exe".into())
}
