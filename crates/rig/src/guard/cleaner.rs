//! The guard's own side: remembers what is owned and, when the pipe closes, removes it.

use super::READY;
use super::protocol::Line;
use crate::procfs::Identity;
use crate::removal::remove_owned;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// For the end of killed processes, and again for the removal of directories.
const PATIENCE: Duration = Duration::from_secs(10);

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::MARK;
    use std::fs;

    fn marked(directory: &Path) {
        fs::create_dir_all(directory.join("sub/deep")).unwrap();
        fs::write(directory.join("sub/deep/file"), "x").unwrap();
        fs::write(directory.join(MARK), "").unwrap();
    }

    #[test]
    fn what_was_disowned_stays() {
        let base = tempfile::tempdir().unwrap();
        let (kept, gone) =
            (base.path().join("cachedyno-00000001"), base.path().join("cachedyno-00000002"));
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
