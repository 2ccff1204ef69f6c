use super::*;
use crate::guard::Guard;
use crate::owner::{MARK, new_name};
use crate::scratch::Scratch;
use std::process::{Child, Command};

/// A fake guard: prints the line of a ready guard, and removes nothing.
pub(crate) fn guard() -> Guard {
    let mut command = Command::new("sh");
    command.args(["-c", "echo cachedyno guard ready; cat > /dev/null"]);
    Guard::start_as(command).unwrap()
}

/// The mark of an ended process with an ended guard.
fn mark_of_ended_owner() -> String {
    let guard = guard();
    let mark = guard.owner().unwrap().mark();
    let own = format!("program {} ", std::process::id());
    let (before, after) = mark.split_once(&own).unwrap();
    let (_, guard_line) = after.split_once('\n').unwrap();
    format!("{before}program {} 1\n{guard_line}", std::process::id())
}

fn create(parent: &Path, mark: Option<&str>) -> PathBuf {
    let path = parent.join(new_name());
    fs::DirBuilder::new().create(&path).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    if let Some(mark) = mark {
        fs::write(path.join(MARK), mark).unwrap();
    }
    path
}

fn look_at(path: &Path) -> Option<Found> {
    let mut found = look(&[path.parent().unwrap().into()], false);
    found.retain(|f| f.path == path);
    found.pop()
}

#[test]
fn a_scratch_directory_is_in_use_until_its_owner_and_guard_have_ended() {
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let scratch = Scratch::new(&guard, base.path()).unwrap();
    assert_eq!(look_at(scratch.path()), None);
    // While its lock is held, the contents of the mark do not matter.
    let text = fs::read_to_string(scratch.path().join(MARK)).unwrap();
    fs::write(scratch.path().join(MARK), mark_of_ended_owner()).unwrap();
    assert_eq!(look_at(scratch.path()), None);
    fs::write(scratch.path().join(MARK), text).unwrap();
    scratch.remove().unwrap();

    let path = create(base.path(), Some(&mark_of_ended_owner()));
    fs::write(path.join("data"), vec![0; 100_000]).unwrap();
    let found = look_at(&path).unwrap();
    assert!(found.is_orphaned && found.why.contains("ended"), "{found:?}");
    assert!((100_000..200_000).contains(&found.bytes()));
    assert!(found.remove().unwrap() && !path.exists());
    assert!(!found.remove().unwrap(), "already removed");
}

#[test]
fn ownership_is_checked_again_before_the_removal() {
    let base = tempfile::tempdir().unwrap();
    let path = create(base.path(), Some(&mark_of_ended_owner()));
    let found = look_at(&path).unwrap();
    let guard = guard();
    fs::write(path.join(MARK), guard.owner().unwrap().mark()).unwrap();
    assert!(!found.remove().unwrap() && path.exists());
}

#[test]
fn recent_empty_directories_and_those_with_another_mode_are_kept() {
    let base = tempfile::tempdir().unwrap();
    for mark in [None, Some("")] {
        let path = create(base.path(), mark);
        assert_eq!(look_at(&path).filter(|f| f.is_orphaned), None);
    }
    assert!(!is_old(&Opened::open(base.path()).unwrap().unwrap()));
    assert!(is_old(&Opened::open(Path::new("/usr/lib")).unwrap().unwrap()));
}

#[test]
fn an_unlocked_lock_directory_is_removed_if_empty() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join(measurement_lock::NAME);
    fs::create_dir(&path).unwrap();
    let lock = fs::File::open(&path).unwrap();
    lock.try_lock().unwrap();
    assert_eq!(look_at(&path), None);
    drop(lock);
    fs::write(path.join("foreign file"), "x").unwrap();
    assert_eq!(look_at(&path), None);
    fs::remove_file(path.join("foreign file")).unwrap();
    assert!(look_at(&path).unwrap().remove().unwrap() && !path.exists());
}

/// A process that sleeps in `directory`, with `HOME` and `TMPDIR` set to `home`.
fn sleeper(directory: &Path, home: &Path) -> Child {
    let mut command = Command::new("sleep");
    command.arg("600").current_dir(directory).env_clear().env("TMPDIR", home).env("HOME", home);
    command.spawn().unwrap()
}

#[test]
fn only_servers_that_outlived_their_run_are_killed() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    let path = create(&base, Some(&mark_of_ended_owner()));
    let mut server = sleeper(&path, &path);
    let mut moved_shell = sleeper(&path, &base);
    let mut outside = sleeper(&base, &path);
    assert!(look_at(&path).unwrap().remove().unwrap() && !path.exists());
    assert!(!server.wait().unwrap().success());
    for other in [&mut moved_shell, &mut outside] {
        assert!(other.try_wait().unwrap().is_none(), "must still be running");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

#[test]
fn directories_with_swap_are_found_wherever_they_are() {
    let swap = |file: &str| ActiveSwap { file: file.into(), priority: 1 };
    let all = ["/dev/sdb2", "/mnt/cachedyno-0a1b2c3d/swap", "/var/other/swap"].map(swap);
    assert_eq!(swap_directories(&all), [PathBuf::from("/mnt/cachedyno-0a1b2c3d")]);
}
