//! The guard with real processes: when the owner is killed, it removes everything owned, and
//! nothing else.

#![expect(clippy::unwrap_used, reason = "test helpers panic like tests")]

mod common;

use cachedyno_rig::{Guard, Scratch, run_shell};
use common::{entries, eventually, guard, role, runs};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Owns a scratch, a process and its child, prints their ids and waits to be killed.
#[test]
#[ignore = "a role that other tests start as a separate process"]
fn role_owner() {
    let guard = guard();
    let base = PathBuf::from(std::env::var_os("RIG_TEST_BASE").unwrap());
    let scratch = Scratch::new(&guard, &base).unwrap();
    fs::create_dir(scratch.path().join("data")).unwrap();
    fs::write(scratch.path().join("data/file"), "x").unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & echo $!; exec sleep 600"]).stdout(Stdio::piped());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().unwrap();
    guard.own_process(child.id()).unwrap();
    let mut grandchild = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut grandchild).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "owned {} {} {}", child.id(), grandchild.trim(), guard.pid()).unwrap();
    out.flush().unwrap();
    child.wait().unwrap();
}

/// Starts the role; returns it and the ids of its process, that process's child, and its guard.
fn owner(base: &std::path::Path) -> (Child, Vec<u32>) {
    let mut owner =
        role("role_owner").env("RIG_TEST_BASE", base).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|l| l.contains("owned ")).unwrap();
    let words = line.split_once("owned ").unwrap().1;
    (owner, words.split(' ').map(|w| w.parse().unwrap()).collect())
}

#[test]
fn a_killed_owner_leaves_nothing_behind() {
    let base = tempfile::tempdir().unwrap();
    let (mut owner, pids) = owner(base.path());
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| runs(*pid)));
    assert_eq!(entries(base.path()).len(), 1);
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("processes end", || !pids.iter().any(|pid| runs(*pid)));
    eventually("the directory is removed", || entries(base.path()).is_empty());
}

#[test]
fn terminal_signals_do_not_end_the_guard() {
    let base = tempfile::tempdir().unwrap();
    let (mut owner, pids) = owner(base.path());
    let (pids, guard) = (&pids[..2], pids[2]);
    let session = nix::unistd::getsid(Some(Pid::from_raw(guard.cast_signed()))).unwrap();
    assert_eq!(session.as_raw().cast_unsigned(), guard, "it is a session leader");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        kill(Pid::from_raw(guard.cast_signed()), signal).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(runs(guard));
    assert!(pids.iter().all(|pid| runs(*pid)));
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the guard cleans up and ends", || !runs(guard));
    assert!(!pids.iter().any(|pid| runs(*pid)));
    assert!(entries(base.path()).is_empty());
}

#[test]
fn dropping_the_last_clone_removes_everything_still_owned() {
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let scratch = Scratch::new(&guard, base.path()).unwrap();
    let name = scratch.path().file_name().unwrap().to_str().unwrap().to_string();
    assert!(name.len() == 18 && name.starts_with("cachedyno-"), "{name}");
    assert_eq!(
        std::os::unix::fs::MetadataExt::mode(&fs::metadata(scratch.path()).unwrap()) & 0o777,
        0o700
    );
    drop(scratch);
    assert!(entries(base.path()).is_empty());

    // Owned only by the guard: it has a mark, but there is no `Scratch` to drop.
    let forgotten = base.path().join("cachedyno-0000000f");
    fs::create_dir(&forgotten).unwrap();
    fs::write(forgotten.join(".cachedyno-owned"), "").unwrap();
    let unmarked = base.path().join("unmarked");
    fs::create_dir(&unmarked).unwrap();
    fs::write(unmarked.join("foreign file"), "x").unwrap();
    let interrupted = base.path().join("interrupted");
    fs::create_dir(&interrupted).unwrap();
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let mut released = Command::new("sleep").arg("600").spawn().unwrap();
    for pid in [child.id(), released.id()] {
        guard.own_process(pid).unwrap();
    }
    guard.disown_process(released.id()).unwrap();
    guard.own_directory(&forgotten).unwrap();
    guard.own_directory(&unmarked).unwrap();
    guard.own_directory(&interrupted).unwrap();
    let clone = guard.clone();
    drop(guard);
    assert!(forgotten.exists());
    drop(clone);
    assert!(!forgotten.exists());
    assert!(unmarked.exists());
    assert!(!interrupted.exists());
    assert!(!runs(child.id()));
    assert!(runs(released.id()));
    child.wait().unwrap();
    released.kill().unwrap();
    released.wait().unwrap();
}

#[test]
fn a_program_that_is_not_a_guard_is_reported() {
    let error = Guard::start_as(Command::new("true")).unwrap_err().to_string();
    assert!(error.starts_with("the guard process did not get ready"), "{error}");
    let error = Guard::start_as(Command::new("/nonexistent/program")).unwrap_err().to_string();
    assert!(error.starts_with("the guard process could not be started"), "{error}");
}

#[test]
fn a_killed_guard_is_reported() {
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    kill(Pid::from_raw(guard.pid().cast_signed()), Signal::SIGKILL).unwrap();
    eventually("the guard ends", || !runs(guard.pid()));
    // A process that another test is just forking can hold the pipe open a moment longer.
    let mut error = String::new();
    eventually("the closed pipe is detected", || {
        let made = Scratch::new(&guard, base.path());
        error = made.err().map_or(String::new(), |e| e.to_string());
        !error.is_empty()
    });
    assert!(error.starts_with("the guard process has ended"), "{error}");
    assert!(entries(base.path()).is_empty());
}

fn run_command(text: &str, limit: Duration) -> Result<(), String> {
    let until = Instant::now() + limit;
    run_shell(&guard(), text, &[("GIVEN", "a b")], &mut |wait| {
        thread::sleep(wait);
        (Instant::now() > until).then_some(Signal::SIGKILL)
    })
}

#[test]
fn a_failure_has_the_exit_code_and_the_last_line() {
    let patience = Duration::from_secs(60);
    assert_eq!(run_command("test \"$GIVEN\" = 'a b'", patience), Ok(()));
    let failed = run_command("echo first >&2; echo last >&2; echo other; exit 7", patience);
    assert_eq!(failed.unwrap_err(), "ended with exit code 7: last");
    assert_eq!(run_command("kill -9 $$", patience).unwrap_err(), "was killed by signal 9");
}

#[test]
fn a_command_that_hangs_is_killed_with_what_it_started() {
    let begun = Instant::now();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("late");
    let text = format!("echo on >&2; (sleep 2; touch {}) & wait", file.display());
    let killed = run_command(&text, Duration::from_millis(200));
    assert_eq!(killed.unwrap_err(), "did not end in time and was killed: on");
    assert!(begun.elapsed() < Duration::from_secs(2));
    thread::sleep(Duration::from_millis(2_200));
    assert!(!file.exists());
}
