//! Roles that these tests start as separate processes, by running the test binary again.

use cachedyno_rig::{Guard, guard_main};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A command that runs only the ignored test `role` of this test binary.
pub(crate) fn role(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", role, "--nocapture", "--test-threads=1"]);
    command
}

#[test]
#[ignore = "a role that other tests start as a separate process"]
fn role_guard() {
    guard_main(std::io::stdin().lock()).unwrap();
}

/// Starts a guard.
pub(crate) fn guard() -> Guard {
    Guard::start_as(role("common::role_guard")).unwrap()
}

/// Waits until `done` returns true, for at most 15 seconds.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(15);
    while !done() {
        assert!(Instant::now() < deadline, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// True while the process runs; false for a zombie.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Names of the entries of a directory.
pub(crate) fn entries(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}
