//! The guard process: keeps track of what is owned and removes it when the pipe closes.

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

/// Maximum time to wait until killed processes have ended, and again to remove directories.
const PATIENCE: Duration = Duration::from_secs(10);

/// Main function of the guard: reads messages from `stdin` until it closes, then kills the
/// remaining processes and removes the remaining directories. Removals are retried for ten
/// seconds; returns the first error that persists.
pub fn guard_main(mut stdin: impl BufRead) -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A handler without effect, because the default action would terminate the guard.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // Fails only if we already lead a group; the terminal's signals are ignored in any case.
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
            // A broken pipe delivers nothing more, so treat it as closed.
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
            let remaining: Vec<_> = self.processes.iter().flat_map(|p| p.group()).collect();
            if remaining.is_empty() || Instant::now() > deadline {
                break;
            }
            remaining.into_iter().for_each(Identity::kill);
            std::thread::sleep(Duration::from_millis(2));
        }
        let deadline = Instant::now() + PATIENCE;
        let mut result = Ok(());
        for directory in &self.directories {
            result = result.and(remove_with_retries(directory, deadline));
        }
        result
    }
}

fn remove_with_retries(directory: &Path, deadline: Instant) -> io::Result<()> {
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

    fn create_marked(directory: &Path) {
        fs::create_dir_all(directory.join("sub/deep")).unwrap();
        fs::write(directory.join("sub/deep/file"), "x").unwrap();
        fs::write(directory.join(MARK), "").unwrap();
    }

    #[test]
    fn disowned_processes_and_directories_are_kept() {
        let base = tempfile::tempdir().unwrap();
        let (kept, gone) =
            (base.path().join("cachedyno-00000001"), base.path().join("cachedyno-00000002"));
        create_marked(&kept);
        create_marked(&gone);
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
