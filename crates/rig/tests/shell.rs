//! Commands of the user.

mod common;

use cachedyno_rig::run_shell;
use std::thread;
use std::time::{Duration, Instant};

fn run(text: &str, limit: Duration) -> Result<(), String> {
    let until = Instant::now() + limit;
    run_shell(&common::guard(), text, &[("GIVEN", "a b")], &mut |wait| {
        thread::sleep(wait);
        Instant::now() > until
    })
}

#[test]
fn a_failure_has_the_exit_code_and_the_last_line() {
    let patience = Duration::from_secs(60);
    assert_eq!(run("test \"$GIVEN\" = 'a b'", patience), Ok(()));
    let failed = run("echo first >&2; echo last >&2; echo other; exit 7", patience);
    assert_eq!(failed.unwrap_err(), "ended with exit code 7: last");
    assert_eq!(run("kill -9 $$", patience).unwrap_err(), "was killed by signal 9");
}

#[test]
fn a_command_that_hangs_is_killed_with_what_it_started() {
    let begun = Instant::now();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("late");
    let text = format!("echo on >&2; (sleep 2; touch {}) & wait", file.display());
    let killed = run(&text, Duration::from_millis(200));
    assert_eq!(killed.unwrap_err(), "did not end in time and was killed: on");
    assert!(begun.elapsed() < Duration::from_secs(2));
    thread::sleep(Duration::from_millis(2_200));
    assert!(!file.exists());
}
