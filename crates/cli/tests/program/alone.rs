//! One measurement at a time: a second one on the machine is refused until the first has ended.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::common::{Place, Started, installed, trials_so_far, wait_until};

/// Starts a long run on files and waits for its first trial.
fn start_long_run(place: &Place) -> Started {
    let arguments = ["--target", "files", "--set", "clients=1", "--set", "blocks_max=400"];
    let run = Started::new(place.fast(&[&arguments[..], &["--set", "blocks_min=400"]].concat()));
    let has_trial = || (trials_so_far(&place.records()) > 0).then_some(());
    wait_until("a trial has ended", Duration::from_secs(60), has_trial);
    run
}

/// A short run on files.
fn short_run(place: &Place) -> Command {
    place.fast(&["--target", "files", "--set", "clients=1"])
}

fn calibrate(place: &Place) -> Command {
    let mut command = place.command();
    command.args(["calibrate", "--seconds", "0.05", "--out"]).arg(place.records());
    command
}

#[test]
fn a_second_measurement_is_refused_while_one_is_running() {
    let place = Place::new();
    let mut run = start_long_run(&place);
    let id = place.record().header()["run"].as_str().unwrap().to_string();
    let process = format!("run `{id}`, process {}, for ", run.pid());
    let end = format!("`kill -INT {}`", run.pid());
    let mut bench = place.command();
    bench.args(["bench", "redis", "--out"]).arg(place.records());
    for command in [short_run(&place), calibrate(&place), bench] {
        let refused = Place::finish(command).code(1);
        let parts = ["another cachedyno measures on this machine", &process, "run sessions", &end];
        refused.error(&parts);
        assert!(run.is_running(), "the run ended too soon for this test");
    }
    assert_eq!(place.all_records().len(), 1, "a refused run leaves no record");
    // A different TMPDIR allows both.
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut both = short_run(&place);
    both.env("TMPDIR", &elsewhere);
    Place::finish(both).measured();
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    run.signal_group(Signal::SIGINT);
    run.finish_within(Duration::from_secs(30)).code(130);
    place.assert_nothing_left();
    Place::finish(short_run(&place)).measured();
    place.assert_nothing_left();
}

#[test]
fn a_lock_directory_that_is_a_link_is_reported_and_kept() {
    let place = Place::new();
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let lock = place.path().join("tmp/cachedyno-measuring");
    symlink(&elsewhere, &lock).unwrap();
    let run = Place::finish(short_run(&place)).measured();
    for part in ["cannot prevent other measurements", "is not a directory", "set TMPDIR"] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    assert!(elsewhere.exists() && lock.is_symlink());
}

#[test]
fn a_lock_of_another_user_is_reported_without_advice_to_kill() {
    let place = Place::new();
    let uid = fs::metadata(place.path()).unwrap().uid();
    if uid != 0 || !installed(&["setpriv", "flock"]) {
        println!("skipped: only root can hold a lock as another user");
        return;
    }
    let (mut command, shared) = place.command_by_nobody("sh".as_ref());
    let lock = shared.join("cachedyno-measuring");
    command.args(["-c", "mkdir \"$0\" && exec flock -x \"$0\" sleep 600"]).arg(&lock);
    let holder = Started::new(command);
    let refused = wait_until("the lock is held", Duration::from_secs(20), || {
        let lock = fs::File::open(&lock).ok()?;
        lock.try_lock().is_err().then(|| Place::finish(short_run(&place)).code(1))
    });
    let parts = ["another cachedyno measures on this machine", " of user `", "`TMPDIR`"];
    let refused = refused.error(&parts);
    assert!(!refused.stderr.contains("kill"), "{}", refused.stderr);
    holder.signal_group(Signal::SIGKILL);
    holder.finish_within(Duration::from_secs(10));
    // The other user's directory stays even if it contains our marker file.
    fs::write(lock.join(".cachedyno-owned"), "").unwrap();
    chown(lock.join(".cachedyno-owned"), Some(65534), None).unwrap();
    Place::finish(short_run(&place)).measured();
    assert!(lock.join(".cachedyno-owned").exists());
}

#[test]
fn a_killed_run_does_not_block_others() {
    let place = Place::new();
    let run = start_long_run(&place);
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    // Start immediately, while its guard may still be running.
    Place::finish(short_run(&place)).measured();
    place.assert_nothing_left();
}
