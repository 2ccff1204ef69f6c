use super::*;
use crate::guard::Guard;
use crate::owner::{MARK, new_name};
use crate::scratch::Scratch;
use std::process::{Child, Command};

/// A process that says what a guard says, and removes nothing.
pub(crate) fn guard() -> Guard {
    let mut command = Command::new("sh");
    command.args(["-c", "echo cachedyno guard ready; cat > /dev/null"]);
    Guard::start_as(command).unwrap()
}

/// The mark of a process that has ended and of its guard.
fn mark_of_the_dead() -> String {
    let guard = guard();
    let mark = guard.owner().unwrap().mark();
    let own = format!("program {} ", std::process::id());
    let (before, after) = mark.split_once(&own).unwrap();
    let (_, guard_line) = after.split_once('\n').unwrap();
    format!("{before}program {} 1\n{guard_line}", std::process::id())
}

fn made(parent: &Path, mark: Option<&str>) -> PathBuf {
    let path = parent.join(new_name());
    fs::DirBuilder::new().create(&path).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    if let Some(mark) = mark {
        fs::write(path.join(MARK), mark).unwrap();
    }
    path
}

fn one(path: &Path) -> Option<Found> {
    let mut found = look(&[path.parent().unwrap().into()], false);
    found.retain(|f| f.path == path);
    found.pop()
}

#[test]
fn a_scratch_is_in_use_until_its_owner_and_its_guard_have_ended() {
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let scratch = Scratch::new(&guard, base.path()).unwrap();
    assert_eq!(one(scratch.path()), None);
    // Whatever the mark says, as long as its lock is held.
    let text = fs::read_to_string(scratch.path().join(MARK)).unwrap();
    fs::write(scratch.path().join(MARK), mark_of_the_dead()).unwrap();
    assert_eq!(one(scratch.path()), None);
    fs::write(scratch.path().join(MARK), text).unwrap();
    scratch.remove().unwrap();

    let path = made(base.path(), Some(&mark_of_the_dead()));
    fs::write(path.join("data"), vec![0; 100_000]).unwrap();
    let found = one(&path).unwrap();
    assert!(found.is_ownerless && found.why.contains("ended"), "{found:?}");
    assert!((100_000..200_000).contains(&found.bytes()));
    assert!(found.remove().unwrap() && !path.exists());
    assert!(!found.remove().unwrap(), "it has gone already");
}

#[test]
fn the_proof_is_made_again_before_the_removal() {
    let base = tempfile::tempdir().unwrap();
    let path = made(base.path(), Some(&mark_of_the_dead()));
    let found = one(&path).unwrap();
    let guard = guard();
    fs::write(path.join(MARK), guard.owner().unwrap().mark()).unwrap();
    assert!(!found.remove().unwrap() && path.exists());
}

#[test]
fn a_young_empty_directory_and_one_with_another_mode_stay() {
    let base = tempfile::tempdir().unwrap();
    for mark in [None, Some("")] {
        let path = made(base.path(), mark);
        assert_eq!(one(&path).filter(|f| f.is_ownerless), None);
    }
    assert!(!is_old(&Opened::open(base.path()).unwrap().unwrap()));
    assert!(is_old(&Opened::open(Path::new("/usr/lib")).unwrap().unwrap()));
}

#[test]
fn an_unlocked_directory_of_the_lock_goes_when_it_is_empty() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join(measurement_lock::NAME);
    fs::create_dir(&path).unwrap();
    let lock = fs::File::open(&path).unwrap();
    lock.try_lock().unwrap();
    assert_eq!(one(&path), None);
    drop(lock);
    fs::write(path.join("of somebody"), "x").unwrap();
    assert_eq!(one(&path), None);
    fs::remove_file(path.join("of somebody")).unwrap();
    assert!(one(&path).unwrap().remove().unwrap() && !path.exists());
}

/// A process that sleeps in `directory` with that as its home.
fn sleeper(directory: &Path, home: &Path) -> Child {
    let mut command = Command::new("sleep");
    command.arg("600").current_dir(directory).env_clear().env("TMPDIR", home).env("HOME", home);
    command.spawn().unwrap()
}

#[test]
fn a_server_that_outlived_its_run_is_ended_and_nobody_else() {
    let base = tempfile::tempdir().unwrap();
    let base = base.path().canonicalize().unwrap();
    let path = made(&base, Some(&mark_of_the_dead()));
    let mut server = sleeper(&path, &path);
    let mut visitor = sleeper(&path, &base);
    let mut neighbour = sleeper(&base, &path);
    assert!(one(&path).unwrap().remove().unwrap() && !path.exists());
    assert!(!server.wait().unwrap().success());
    for other in [&mut visitor, &mut neighbour] {
        assert!(other.try_wait().unwrap().is_none(), "it still runs");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
