//! Leftovers of runs whose program and guard were both killed, and their removal.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::common::{
    Finished, Place, Started, child_with, installed, skipped, trials_so_far, wait_until,
};

const LONG: [&str; 6] =
    ["--set", "clients=1", "--set", "blocks_min=400", "--set", "blocks_max=400"];

/// Starts a run and waits until its first trial has ended.
fn start_run(place: &Place, command: Command) -> Started {
    let run = Started::new(command);
    let has_trial = || (trials_so_far(&place.records()) > 0).then_some(());
    wait_until("a trial has ended", Duration::from_secs(60), has_trial);
    run
}

fn signal(pids: &[u32], signal: Signal) {
    for pid in pids {
        kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
    }
}

/// Stops a program and its guard while `directory` contains a marked directory of theirs. Between
/// two trials there can be none.
fn stop_with_data_in(directory: &Path, program: u32) -> [u32; 2] {
    let guard = child_with(program, "rig-guard").expect("a guard");
    let both = [program, guard];
    let is_marked = |name: &String| {
        let mark = fs::read_to_string(directory.join(name).join(".cachedyno-owned"));
        mark.is_ok_and(|mark| !mark.is_empty())
    };
    wait_until("the run has a directory on its disk", Duration::from_secs(20), || {
        signal(&both, Signal::SIGSTOP);
        // The kernel stops other threads a moment later.
        std::thread::sleep(Duration::from_millis(20));
        if ours(directory).iter().any(is_marked) {
            return Some(());
        }
        signal(&both, Signal::SIGCONT);
        None
    });
    both
}

/// Kills a run and its guard while `directory` contains a marked directory of theirs.
pub(crate) fn kill_with_guard(place: &Place, run: Started, directory: &Path) {
    signal(&stop_with_data_in(directory, run.pid()), Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    wait_until("the servers have died with the program", Duration::from_secs(5), || {
        (!place.has_processes()).then_some(())
    });
}

pub(crate) fn doctor(place: &Place, disk: &Path, more: &[&str]) -> Finished {
    let mut command = place.command();
    command.arg("doctor").args(more).arg("--disk").arg(disk);
    Place::finish(command)
}

/// Names in `directory` that start with `cachedyno-`.
fn ours(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.starts_with("cachedyno-")).collect()
}

/// Asserts that only empty `cachedyno-` directories remain in `parent`. A kill between creating and
/// marking a directory leaves one; cleanup removes it once it is a minute old.
fn assert_only_unmarked(parent: &Path) {
    for name in ours(parent) {
        let within = fs::read_dir(parent.join(&name)).unwrap().map(|e| e.unwrap().file_name());
        let others: Vec<_> = within.filter(|name| name != ".cachedyno-owned").collect();
        assert!(others.is_empty(), "{name} in {} holds {others:?}", parent.display());
    }
}

#[test]
fn leftovers_of_a_killed_program_and_guard_are_listed_and_removed() {
    let mut arguments = vec!["--target", "files"];
    for (program, target) in [("redis-server", "redis"), ("mariadbd", "mysql")] {
        if installed(&[program]) {
            arguments.extend(["--target", target]);
        }
    }
    let place = Place::new();
    let own = place.path().join("own");
    fs::create_dir(&own).unwrap();
    let url = format!("x=file://{}", own.display());
    arguments.extend(["--target", &url]);
    arguments.extend(LONG);
    kill_with_guard(&place, start_run(&place, place.fast(&arguments)), &own);
    let left = [ours(&place.disk()), ours(&own), ours(&place.path().join("tmp"))].concat();
    assert!(left.len() >= 2 && !ours(&own).is_empty(), "{left:?}");

    let own_name = own.display().to_string();
    let listed = doctor(&place, &own, &[]).code(0).stdout;
    let command = format!("`cachedyno doctor --clean --disk {own_name}`");
    assert!(listed.contains(&ours(&own)[0]) && listed.contains(&command), "{listed}");
    // The next run reports them and does not touch them.
    let next = place.fast(&["--target", &url, "--set", "clients=1"]);
    let next = Place::finish(next).measured();
    assert!(next.stderr.contains("killed runs left") && next.stderr.contains(&command), "{next:?}");
    assert_eq!(ours(&own).len(), 1);

    let cleaned = doctor(&place, &own, &["--clean"]).code(0).stdout;
    assert!(cleaned.contains(&format!("removed `{own_name}/cachedyno-")), "{cleaned}");
    assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    doctor(&place, &place.disk(), &["--clean"]).code(0);
    for parent in [place.disk(), place.path().join("tmp")] {
        assert_only_unmarked(&parent);
    }
    // An unmarked directory is listed until it is a minute old.
    let unmarked = [ours(&place.disk()), ours(&place.path().join("tmp"))].concat();
    let again = doctor(&place, &place.disk(), &["--clean"]).code(0).stdout;
    let unknown = again.lines().filter(|l| l.contains(place.path().to_str().unwrap()));
    let is_unmarked = |line: &&str| unmarked.iter().any(|name| line.contains(name));
    assert_eq!(unknown.filter(|line| !is_unmarked(line)).count(), 0, "{again}");
}

/// The command as the first process of a new PID namespace, as in a container. Prints a note and
/// returns `None` if this user cannot create one.
fn contained(command: &Command) -> Option<Command> {
    let words = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let output = Command::new("unshare").args(words).arg("true").output();
    if !output.is_ok_and(|output| output.status.success()) {
        skipped("cannot create a PID namespace (unshare)");
        return None;
    }
    let mut contained = Command::new("unshare");
    contained.args(words).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            contained.env(name, value);
        }
    }
    Some(contained)
}

#[test]
fn leftovers_of_a_stopped_container_are_removed_from_outside() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let arguments = ["--target", "files", "--target", "redis"];
    let Some(command) = contained(&place.fast(&[&arguments[..], &LONG].concat())) else { return };
    let mut run = start_run(&place, command);
    // The directories of a running program stay.
    let sockets = place.path().join("tmp");
    let before = [ours(&place.disk()), ours(&sockets)].concat();
    assert!(!before.is_empty());
    doctor(&place, &place.disk(), &["--clean"]).code(0);
    assert!(run.is_running(), "the run continues");
    let more = || (trials_so_far(&place.records()) > 4).then_some(());
    wait_until("further trials have ended", Duration::from_secs(60), more);
    let program = child_with(run.pid(), "run").expect("the program");
    stop_with_data_in(&place.disk(), program);
    signal(&[run.pid()], Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    let ended = || (!place.has_processes()).then_some(());
    wait_until("all processes of the container have ended", Duration::from_secs(5), ended);
    assert!(!ours(&place.disk()).is_empty());
    let cleaned = doctor(&place, &place.disk(), &["--clean"]).code(0).stdout;
    assert!(cleaned.contains("created in another container"), "{cleaned}");
    for parent in [place.disk(), sockets] {
        assert_only_unmarked(&parent);
    }
}

#[test]
fn foreign_files_named_like_ours_stay() {
    let place = Place::new();
    let disk = place.disk();
    let make = |name: &str, mark: Option<&str>| {
        let directory = disk.join(name);
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        if let Some(mark) = mark {
            fs::write(directory.join(".cachedyno-owned"), mark).unwrap();
        }
        directory
    };
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let name = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let host = if id.trim().is_empty() { &name } else { id.trim() };
    let gone = &format!(
        "cachedyno made this directory and removes it.\nhost {host}\n\
                boot 00000000-0000-0000-0000-000000000000\nnamespaces 1 2\n\
                program 3 4\nguard 5 6\n"
    );
    fs::write(make("cachedyno-abcdef01", None).join("precious"), "x").unwrap();
    make("cachedyno-abcdef02", None);
    make("cachedyno-ABCDEF03", Some(gone));
    make("cachedyno-abcdef04x", Some(gone));
    make("cachedyno-abcdef05", Some("cachedyno made this directory and removes it.\n"));
    let elsewhere = make("elsewhere", Some(gone));
    symlink(&elsewhere, disk.join("cachedyno-abcdef06")).unwrap();
    symlink(
        elsewhere.join(".cachedyno-owned"),
        make("cachedyno-abcdef07", None).join(".cachedyno-owned"),
    )
    .unwrap();
    fs::write(disk.join("cachedyno-abcdef08"), gone).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let other = gone.replace("00000000-0000-0000-0000-000000000000", boot.trim());
    // Belongs to a program that runs in another container and holds the lock.
    let mark = make("cachedyno-abcdef09", Some(&other)).join(".cachedyno-owned");
    let lock = fs::File::open(mark).unwrap();
    lock.lock().unwrap();
    make("cachedyno-abcdef11", Some(&gone.replace(host, "another-host")));
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&disk).unwrap().map(|e| e.unwrap().path()).collect();
        names.sort();
        names
    };
    let before = names();
    let orphaned = make("cachedyno-abcdef10", Some(gone));
    symlink(&elsewhere, orphaned.join("link")).unwrap();
    fs::create_dir(orphaned.join("sub")).unwrap();
    fs::write(orphaned.join("sub/file"), vec![0; 300_000]).unwrap();

    let listed = doctor(&place, &disk, &[]).code(0).stdout;
    let part = "cachedyno-abcdef10`: 3";
    assert!(listed.contains(part) && listed.contains("before the last boot"), "{listed}");
    let doubt = listed.split("it is unknown whether its run has ended").nth(1).unwrap();
    assert!(doubt.contains("abcdef05") && doubt.contains("abcdef11"), "{listed}");
    let foreign = ["abcdef01", "abcdef02", "ABCDEF03", "abcdef04", "abcdef06", "abcdef07"];
    for foreign in foreign.iter().chain(&["abcdef09"]) {
        assert!(!listed.contains(foreign), "{foreign} in {listed}");
    }
    let cleaned = doctor(&place, &disk, &["--clean"]).code(0).stdout;
    assert!(cleaned.contains("removed `") && cleaned.contains("cachedyno-abcdef10"), "{cleaned}");
    assert_eq!(names(), before);
    assert!(disk.join("cachedyno-abcdef01/precious").exists());
    assert!(elsewhere.join(".cachedyno-owned").exists());
}

#[test]
fn a_running_run_keeps_its_directories() {
    let place = Place::new();
    let run = start_run(&place, place.fast(&[&["--target", "files"], &LONG[..]].concat()));
    let before = ours(&place.disk());
    let cleaned = doctor(&place, &place.disk(), &["--clean"]).code(0).stdout;
    assert!(!cleaned.contains(place.path().to_str().unwrap()), "{cleaned}");
    assert!(!before.is_empty());
    assert_eq!(ours(&place.disk()), before);
    assert_eq!(ours(&place.path().join("tmp")), ["cachedyno-measuring"]);
    // They also stay while a guard that will remove them is alive.
    let guard = child_with(run.pid(), "rig-guard").expect("a guard");
    let signal = |signal| kill(Pid::from_raw(guard.cast_signed()), signal).unwrap();
    signal(Signal::SIGSTOP);
    run.signal(Signal::SIGKILL);
    run.finish_within(Duration::from_secs(20));
    doctor(&place, &place.disk(), &["--clean"]).code(0);
    assert_eq!(ours(&place.disk()), before);
    signal(Signal::SIGCONT);
    place.assert_nothing_left();
}
