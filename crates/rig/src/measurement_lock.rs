//! One measurement at a time: two on one machine disturb each other.
//!
//! While a run measures, it holds the lock (flock(2)) of a directory in the directory for temporary
//! files. The kernel releases the lock when the run ends for any reason; the run or its guard
//! removes the empty directory. The lock's holder is read from `/proc/locks` (proc(5)), so no file
//! has to be written.

use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::procfs::Identity;
use crate::removal::Opened;
use model::target::mask_text;
use nix::sys::stat::{FileStat, major, minor};
use nix::unistd::{Uid, User, geteuid};
use std::fs::{self, DirBuilder, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the locked directory.
pub(crate) const NAME: &str = "cachedyno-measuring";
/// Clock ticks per second in `/proc` (proc(5): `USER_HZ`, 100 on every common architecture).
const TICKS_PER_S: f64 = 100.0;

/// Maximum wait for the lock, which a guard can hold briefly while it removes the directory.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// Prevents other measurements until it is dropped.
pub struct MeasurementLock {
    path: PathBuf,
    guard: Guard,
    opened: Opened,
}

/// Result of an attempt to acquire the lock.
pub enum LockAttempt {
    /// The lock is ours.
    Acquired(MeasurementLock),
    /// Another process holds it; `None` if the kernel does not report which.
    Busy(Option<Holder>),
}

/// The process that holds the lock.
#[derive(Debug)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Its user, if different from ours.
    pub user: Option<String>,
    /// Its command line.
    pub command: String,
    /// Time since its start, in seconds; `None` if unknown.
    pub age_s: Option<f64>,
    /// Its open files that we have permission to see.
    pub files: Vec<PathBuf>,
}

impl MeasurementLock {
    /// Tries for at most 0.1 s to acquire the lock in `parent`, a directory for temporary files.
    ///
    /// Errors: the lock's directory can be neither created nor opened, or is not a directory.
    pub fn try_acquire(guard: &Guard, parent: &Path) -> Result<LockAttempt> {
        let parent = parent.canonicalize().map_err(RigError::io("use directory", parent))?;
        let path = parent.join(NAME);
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            let is_late = Instant::now() > deadline;
            match DirBuilder::new().mode(0o755).create(&path) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => {
                    return Err(RigError::io("create directory", &path)(e));
                }
                _ => {}
            }
            let opened = match Opened::open(&path) {
                Ok(Some(opened)) => opened,
                // Its last holder has just removed it.
                Ok(None) if !is_late && fs::symlink_metadata(&path).is_err() => continue,
                Ok(None) => return Err(unusable(&path, "is not a directory")),
                Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                    return Err(unusable(&path, "belongs to another user and cannot be opened"));
                }
                Err(e) => return Err(RigError::io("open directory", &path)(e)),
            };
            match opened.file().try_lock() {
                Err(TryLockError::WouldBlock) if !is_late => {
                    std::thread::sleep(LOCK_TIMEOUT / 10);
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    return Ok(LockAttempt::Busy(holder(opened.stat())));
                }
                Err(TryLockError::Error(e)) => return Err(RigError::io("lock", &path)(e)),
                Ok(()) => {}
            }
            if opened.name_still_refers_to_it() {
                guard.own_directory(&path)?;
                return Ok(LockAttempt::Acquired(Self { path, guard: guard.clone(), opened }));
            }
            if is_late {
                return Err(unusable(&path, "is repeatedly removed by another process"));
            }
        }
    }
}

impl Drop for MeasurementLock {
    fn drop(&mut self) {
        // Both can fail: another user's directory cannot be removed, and the guard can have ended.
        let _ = self.opened.remove_empty();
        let _ = self.guard.disown_directory(&self.path);
    }
}

fn unusable(path: &Path, problem: &'static str) -> RigError {
    RigError::Lock { path: path.display().to_string(), problem }
}

/// Holder of the lock of that file; `None` if that is not certain.
fn holder(file: &FileStat) -> Option<Holder> {
    let pid = holder_pid(&fs::read_to_string("/proc/locks").ok()?, file)?;
    let process = PathBuf::from(format!("/proc/{pid}"));
    let owner = fs::metadata(&process).ok()?.uid();
    let user = (owner != geteuid().as_raw()).then(|| {
        let known = User::from_uid(Uid::from_raw(owner)).ok().flatten();
        known.map_or_else(|| owner.to_string(), |user| user.name)
    });
    let arguments = fs::read(process.join("cmdline")).ok()?;
    let arguments =
        arguments.split(|byte| *byte == 0).map(|a| mask_text(&String::from_utf8_lossy(a)));
    let arguments: Vec<_> = arguments.filter(|argument| !argument.is_empty()).collect();
    let links = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let links: Vec<PathBuf> = links.map(|link| link.path()).collect();
    // A lock survives the process that acquired it if a child still has the file open; the process
    // id can then belong to an unrelated process.
    let has_file_open = |link: &PathBuf| {
        fs::metadata(link)
            .is_ok_and(|opened| (opened.dev(), opened.ino()) == (file.st_dev, file.st_ino))
    };
    if user.is_none() && !links.iter().any(has_file_open) {
        return None;
    }
    let files = links.iter().filter_map(|link| fs::read_link(link).ok()).collect();
    Some(Holder { pid, user, command: arguments.join(" "), age_s: age_s(pid), files })
}

/// Process id of a file's lock in lines such as `1: FLOCK  ADVISORY  WRITE 708 fe:00:17 0 EOF`,
/// with the device in hexadecimal before the inode; `->` after the number marks a process that
/// waits for a lock. Some file systems, such as Btrfs and overlay, show another device here than
/// in stat(2); then no line matches the file.
fn holder_pid(locks: &str, file: &FileStat) -> Option<u32> {
    let wanted = format!("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = fields[..] else { return None };
        // 0 is a process outside our PID namespace.
        if file == wanted { pid.parse().ok().filter(|pid| *pid != 0) } else { None }
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
    use crate::orphaned::tests::guard;
    use nix::sys::stat::{makedev, stat};
    use std::fs::File;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_holder_of_a_lock_is_found_by_device_and_inode() {
        let locks = "1: FLOCK  ADVISORY  WRITE 708 fe:00:17 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 709 fe:00:18 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 710 fe:00:18 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 711 00:1e:18 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 712 fe:00:18 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE 0 fe:00:19 0 EOF\n";
        let mut file = stat("/").unwrap();
        for (device, inode, pid) in [
            (makedev(0xfe, 0), 17, Some(708)),
            (makedev(0xfe, 0), 18, Some(712)),
            (makedev(0, 0x1e), 18, Some(711)),
            (makedev(0, 0x1e), 17, None),
            (makedev(0xfe, 0), 19, None),
            (makedev(0xfe, 0), 7, None),
        ] {
            (file.st_dev, file.st_ino) = (device, inode);
            assert_eq!(holder_pid(locks, &file), pid, "{device} {inode}");
        }
    }

    #[test]
    fn our_own_lock_is_reported_with_our_command() {
        let place = tempfile::tempdir().unwrap();
        let lock = File::open(place.path()).unwrap();
        lock.try_lock().unwrap();
        let held = holder(&stat(place.path()).unwrap());
        let Some(held) = held else {
            println!("skipped: /proc/locks shows another device number for this file system");
            return;
        };
        assert_eq!((held.pid, &held.user), (std::process::id(), &None));
        assert!(held.command.contains(&std::env::args().next().unwrap()), "{held:?}");
        assert!(held.age_s.is_some_and(|age| age < 3600.0), "{held:?}");
        assert!(held.files.iter().any(|file| file == place.path()), "{held:?}");
    }

    #[test]
    fn a_path_that_is_not_a_directory_is_rejected_with_advice() {
        let place = tempfile::tempdir().unwrap();
        let guard = guard();
        let path = place.path().join(NAME);
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let rejection = || match MeasurementLock::try_acquire(&guard, place.path()) {
            Err(e) => e.to_string(),
            Ok(_) => panic!("the lock was acquired"),
        };
        for target in [elsewhere.as_path(), Path::new("/nowhere")] {
            symlink(target, &path).unwrap();
            let error = rejection();
            assert!(error.contains("is not a directory") && error.contains("TMPDIR"), "{error}");
            fs::remove_file(&path).unwrap();
        }
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(rejection().contains("is not a directory"));
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            MeasurementLock::try_acquire(&guard, place.path()),
            Ok(LockAttempt::Acquired(_))
        ));
        assert!(elsewhere.exists() && !path.exists());
    }
}
