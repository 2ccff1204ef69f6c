//! Runs a command of the user through a shell.

use crate::child;
use crate::guard::Guard;
use crate::process::tail;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

/// How often the command is checked for its end.
const POLL: Duration = Duration::from_millis(5);

/// Runs `text` with `sh -c`, in the user's environment with additional variables, without passwords
/// of targets, and without standard input or output. `end` waits for the given time and returns a
/// signal if the command must end: it goes to the command and the processes that it started, and
/// `SIGKILL` is the last one. Processes that a successful command leaves in the background keep
/// running. Errors: how it failed, as a predicate, with the last line of its standard error.
pub fn run_shell(
    guard: &Guard,
    text: &str,
    variables: &[(&str, &str)],
    end: &mut dyn FnMut(Duration) -> Option<Signal>,
) -> Result<(), String> {
    let cannot = |e: io::Error| format!("cannot be run: {e}");
    let log = memfd_create("cachedyno-command", MFdFlags::MFD_CLOEXEC);
    let mut log = File::from(log.map_err(|e| cannot(e.into()))?);
    let mut child = child::command_of_user("sh")
        .args(["-c", text])
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.try_clone().map_err(cannot)?)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let pid = child.id();
    // If the guard has ended, the command is still ended here.
    let _ = guard.own_process(pid);
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break result(status),
            Ok(None) => {
                let Some(signal) = end(POLL) else { continue };
                // Not reaped yet, so the id still belongs to its group.
                let _ = killpg(Pid::from_raw(pid.cast_signed()), signal);
                if signal == Signal::SIGKILL {
                    let _ = child.wait();
                    break Err("did not end in time and was killed".into());
                }
            }
            Err(e) => break Err(cannot(e)),
        }
    };
    let _ = guard.disown_process(pid);
    ended.map_err(|how| match tail(&mut log, 1).unwrap_or_default() {
        line if line.is_empty() => how,
        line => format!("{how}: {line}"),
    })
}

fn result(status: ExitStatus) -> Result<(), String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(format!("ended with exit code {code}")),
        (None, signal) => Err(format!("was killed by signal {}", signal.unwrap_or(0))),
    }
}
