//! Shared by all tests on private servers.

use cachedyno_lab::{Protection, Setup};
use rig::{Guard, Pinning, SearchPath, guard_main};
use std::collections::BTreeMap;
use std::process::Command;

#[test]
#[ignore = "a role that other tests start as a process of its own"]
fn role_guard() {
    guard_main(std::io::stdin().lock()).unwrap();
}

pub(crate) fn setup(disk: &tempfile::TempDir) -> Setup {
    let mut guard = Command::new(std::env::current_exe().unwrap());
    let role = "common::role_guard";
    guard.args(["--ignored", "--exact", role, "--nocapture", "--test-threads=1"]);
    Setup {
        guard: Guard::start_as(guard).unwrap(),
        disk: disk.path().into(),
        pinning: Pinning::for_this_process(),
        endpoints: BTreeMap::new(),
        allow_shared: false,
        resumes: false,
        protection: Protection::Full,
        fleet: None,
        rig_on: None,
        fault_command: None,
    }
}

pub(crate) fn is_installed(program: &str) -> bool {
    let found = SearchPath::of_process().find(&[program]).is_some();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}
