//! The guard's own side: remembers what is owned and, when the pipe closes, removes it.

use super::READY;
use super::protocol::Line;
use crate::procfs::Identity;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A directory is removed only if it holds a regular file of this name.
pub(crate) const MARKER: &str = ".cachedyno-owned";

/// For the end of killed processes, and again for the removal of directories.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a killed process may hold a lock after its pipe was closed: the kernel closes its files
/// one after the other.
const LOCKED_FOR: Duration = Duration::from_secs(2);

/// The whole life of the guard: reads what is owned from `stdin` until it closes, then kills the
/// processes and removes the directories that are left. Returns the first directory's error that
/// outlasted ten seconds of trying.
pub fn guard_main(mut stdin: impl BufRead) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A handler that does nothing of note: the default would end us.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // Fails only if we lead a group already; then the terminal's signals are ignored all the same.
    let _ = nix::unistd::setsid();
    let mut stdout = io::stdout();
    writeln!(stdout, "{READY}").and_then(|()| stdout.flush())?;

    let mut owned = Owned::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        match stdin.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => owned.apply(Line::decode(&line)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Without the pipe nothing more can be learnt: as good as its end.
            Err(_) => break,
        }
    }
    owned.remove_all()
}

#[derive(Default)]
struct Owned {
    processes: Vec<Identity>,
    directories: Vec<PathBuf>,
}

impl Owned {
    fn apply(&mut self, line: Option<Line>) {
        match line {
            Some(Line::OwnProcess(identity)) => self.processes.push(identity),
            Some(Line::DisownProcess(pid)) => self.processes.retain(|p| p.pid != pid),
            Some(Line::OwnDirectory(path)) => self.directories.push(path),
            Some(Line::DisownDirectory(path)) => self.directories.retain(|d| *d != path),
            None => {}
        }
    }

    fn remove_all(self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left: Vec<_> = self.processes.iter().flat_map(|p| p.group()).collect();
            if left.is_empty() || Instant::now() > deadline {
                break;
            }
            left.into_iter().for_each(Identity::kill);
            std::thread::sleep(Duration::from_millis(2));
        }
        let deadline = Instant::now() + PATIENCE;
        let mut result = Ok(());
        for directory in &self.directories {
            result = result.and(remove_patiently(directory, deadline));
        }
        result
    }
}

fn remove_patiently(directory: &Path, deadline: Instant) -> io::Result<()> {
    loop {
        match remove_owned(directory) {
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
            done => return done,
        }
    }
}

/// Removes a directory that holds our marker; the marker goes last, so that a removal that was
/// broken off can be finished. Without the marker only an empty directory goes: one whose making or
/// removal was broken off, or a control group, which the kernel lets go when its processes have
/// ended. A missing directory, a symbolic link and whatever else has no marker are
/// left alone without an error. No symbolic link is followed.
pub(crate) fn remove_owned(directory: &Path) -> io::Result<()> {
    let is = |path: &Path, kind: fn(&fs::FileType) -> bool| {
        path.symlink_metadata().is_ok_and(|m| kind(&m.file_type()))
    };
    let marker = directory.join(MARKER);
    if !is(directory, fs::FileType::is_dir) {
        return Ok(());
    }
    if !is(&marker, fs::FileType::is_file) {
        return remove_unlocked(directory);
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() == MARKER {
            continue;
        }
        let removed = if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        };
        match removed {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    fs::remove_file(marker)?;
    fs::remove_dir(directory)
}

/// Removes an empty directory, but for one that a process has locked for longer than ours takes to
/// end: another run has taken over its place.
fn remove_unlocked(directory: &Path) -> io::Result<()> {
    let lock = File::open(directory)?;
    let deadline = Instant::now() + LOCKED_FOR;
    while matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
        if Instant::now() > deadline {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    match fs::remove_dir(directory) {
        Err(e) if e.kind() != io::ErrorKind::DirectoryNotEmpty => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn marked(directory: &Path) {
        fs::create_dir_all(directory.join("sub/deep")).unwrap();
        fs::write(directory.join("sub/deep/file"), "x").unwrap();
        fs::write(directory.join(MARKER), "").unwrap();
    }

    #[test]
    fn only_what_is_marked_is_removed_and_links_are_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        marked(&path("owned"));
        fs::create_dir(path("foreign")).unwrap();
        fs::write(path("foreign/precious"), "x").unwrap();
        symlink(path("foreign"), path("owned/link")).unwrap();
        symlink(path("foreign/precious"), path("owned/sub/link")).unwrap();
        marked(&path("other"));
        symlink(path("other"), path("alias")).unwrap();

        remove_owned(&path("owned")).unwrap();
        remove_owned(&path("foreign")).unwrap();
        remove_owned(&path("alias")).unwrap();
        remove_owned(&path("nothing")).unwrap();

        assert!(!path("owned").exists());
        assert!(path("foreign/precious").exists());
        assert!(path("other/sub/deep/file").exists());
    }

    #[test]
    fn a_place_that_another_process_has_locked_stays() {
        let base = tempfile::tempdir().unwrap();
        let place = base.path().join("measuring");
        fs::create_dir(&place).unwrap();
        let lock = File::open(&place).unwrap();
        lock.try_lock().unwrap();
        remove_owned(&place).unwrap();
        assert!(place.exists());
        drop(lock);
        remove_owned(&place).unwrap();
        assert!(!place.exists());
    }

    #[test]
    fn a_marker_that_is_a_link_does_not_count() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("d");
        fs::create_dir(&directory).unwrap();
        fs::write(base.path().join("file"), "").unwrap();
        symlink(base.path().join("file"), directory.join(MARKER)).unwrap();
        remove_owned(&directory).unwrap();
        assert!(directory.exists());
    }

    #[test]
    fn what_was_disowned_stays() {
        let base = tempfile::tempdir().unwrap();
        let (kept, gone) = (base.path().join("kept"), base.path().join("gone"));
        marked(&kept);
        marked(&gone);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let identity = Identity::of(child.id()).unwrap();
        let mut owned = Owned::default();
        for line in [
            Line::OwnDirectory(kept.clone()),
            Line::OwnDirectory(gone.clone()),
            Line::OwnProcess(identity),
            Line::DisownDirectory(kept.clone()),
            Line::DisownProcess(child.id()),
        ] {
            owned.apply(Some(line));
        }
        owned.remove_all().unwrap();
        assert!(kept.exists());
        assert!(!gone.exists());
        assert!(identity.runs());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
