//! One measurement at a time: two on one machine disturb each other.
//!
//! A run holds the lock (flock(2)) of a directory below that for temporary files while it measures.
//! The kernel lets go of it when the run ends, however it ends; the empty directory is removed by
//! the run or by its guard. Who holds it, the kernel tells as well (proc(5), `/proc/locks`), so
//! that nothing has to be written.

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::procfs::Identity;
use model::target::mask_text;
use nix::libc::{O_DIRECTORY, O_NOFOLLOW};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the directory whose lock is held.
pub(crate) const NAME: &str = "cachedyno-measuring";
/// Clock ticks of a second in `/proc` (proc(5): `USER_HZ`, 100 on every common architecture).
const TICKS_PER_S: f64 = 100.0;

/// How long a lock is waited for that may be that of a guard at work, which removes the place.
const PATIENCE: Duration = Duration::from_millis(100);

/// Nobody else measures as long as this lives.
#[derive(Debug)]
pub struct Alone {
    path: PathBuf,
    guard: Guard,
    _lock: File,
}

/// What came of asking for the lock.
#[derive(Debug)]
pub enum Asked {
    /// It is ours.
    Alone(Alone),
    /// Another process has it; `None` where the kernel does not tell which.
    Busy(Option<Holder>),
}

/// A process that measures.
#[derive(Debug)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// Seconds for which it has been running; `None` where that cannot be read.
    pub age_s: Option<f64>,
    /// Files that it has open, as far as we may see them.
    pub files: Vec<PathBuf>,
}

impl Alone {
    /// Asks for the lock in `parent`, a directory for temporary files.
    ///
    /// Errors: the directory of the lock can be neither made nor opened.
    pub fn ask(guard: &Guard, parent: &Path) -> Result<Asked> {
        let path = parent.join(NAME);
        let patience = Instant::now() + PATIENCE;
        loop {
            match DirBuilder::new().mode(0o755).create(&path) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => {
                    return Err(RigError::io("make directory", &path)(e));
                }
                _ => {}
            }
            let flags = O_DIRECTORY | O_NOFOLLOW;
            let lock = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
                // Whoever held it has just removed it.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                opened => opened.map_err(RigError::io("open directory", &path))?,
            };
            let inode = lock.metadata().map_err(RigError::io("look at", &path))?.ino();
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < patience => {
                    std::thread::sleep(PATIENCE / 10);
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Ok(Asked::Busy(holder(inode))),
                Err(TryLockError::Error(e)) => return Err(RigError::io("lock", &path)(e)),
                Ok(()) => {}
            }
            if fs::symlink_metadata(&path).is_ok_and(|there| there.ino() == inode) {
                guard.own_directory(&path)?;
                return Ok(Asked::Alone(Self { path, guard: guard.clone(), _lock: lock }));
            }
        }
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // One that another user made stays; a guard that has ended needs no telling.
        let _ = fs::remove_dir(&self.path);
        let _ = self.guard.disown_directory(&self.path);
    }
}

/// Who holds the lock of the file with that inode.
fn holder(inode: u64) -> Option<Holder> {
    let pid = holder_pid(&fs::read_to_string("/proc/locks").ok()?, inode)?;
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let arguments =
        arguments.split(|byte| *byte == 0).map(|a| mask_text(&String::from_utf8_lossy(a)));
    let arguments: Vec<_> = arguments.filter(|argument| !argument.is_empty()).collect();
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let files = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
    Some(Holder { pid, command: arguments.join(" "), age_s: age_s(pid), files: files.collect() })
}

/// The process in a line such as `1: FLOCK  ADVISORY  WRITE 708 fe:00:17 0 EOF`; one that waits for
/// a lock has `->` behind the number.
fn holder_pid(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = fields[..] else { return None };
        let (_, own) = file.rsplit_once(':')?;
        if own.parse() == Ok(inode) { pid.parse().ok() } else { None }
    })
}

fn age_s(pid: u32) -> Option<f64> {
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime_s: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    Some((uptime_s - Identity::of(pid)?.start_ticks as f64 / TICKS_PER_S).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_by_its_inode() {
        let locks = "1: FLOCK  ADVISORY  WRITE 708 fe:00:17 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 709 fe:00:18 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 710 fe:00:18 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 711 fe:00:18 0 EOF\n";
        assert_eq!(holder_pid(locks, 17), Some(708));
        assert_eq!(holder_pid(locks, 18), Some(711));
        assert_eq!(holder_pid(locks, 7), None);
    }

    #[test]
    fn our_own_lock_is_told_with_our_command() {
        let place = tempfile::tempdir().unwrap();
        let lock = File::open(place.path()).unwrap();
        lock.try_lock().unwrap();
        let held = holder(lock.metadata().unwrap().ino()).unwrap();
        assert_eq!(held.pid, std::process::id());
        assert!(held.command.contains(&std::env::args().next().unwrap()), "{held:?}");
        assert!(held.age_s.is_some_and(|age| age < 3600.0), "{held:?}");
        assert!(held.files.iter().any(|file| file == place.path()), "{held:?}");
    }
}
