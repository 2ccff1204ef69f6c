//! One measurement at a time: two on one machine disturb each other.
//!
//! A run holds the lock (flock(2)) of a directory below that for temporary files while it measures.
//! The kernel lets go of it when the run ends, however it ends; the empty directory is removed by
//! the run or by its guard. Who holds it, the kernel tells as well (proc(5), `/proc/locks`), so
//! that nothing has to be written.

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

/// Name of the directory whose lock is held.
pub(crate) const NAME: &str = "cachedyno-measuring";
/// Clock ticks of a second in `/proc` (proc(5): `USER_HZ`, 100 on every common architecture).
const TICKS_PER_S: f64 = 100.0;

/// How long a lock is waited for that may be that of a guard at work, which removes the place.
const PATIENCE: Duration = Duration::from_millis(100);

/// Prevents other measurements until it is dropped.
pub struct MeasurementLock {
    path: PathBuf,
    guard: Guard,
    opened: Opened,
}

/// Result of an attempt to acquire the lock.
pub enum LockAttempt {
    /// It is ours.
    Acquired(MeasurementLock),
    /// Another process has it; `None` where the kernel does not tell which.
    Busy(Option<Holder>),
}

/// A process that measures.
#[derive(Debug)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// The user whose it is, where that is another one.
    pub user: Option<String>,
    /// Its command line.
    pub command: String,
    /// Seconds for which it has been running; `None` where that cannot be read.
    pub age_s: Option<f64>,
    /// Files that it has open, as far as we may see them.
    pub files: Vec<PathBuf>,
}

impl MeasurementLock {
    /// Asks for the lock in `parent`, a directory for temporary files. Takes a tenth of a second
    /// at most.
    ///
    /// Errors: the directory of the lock can be neither made nor opened, or is something else.
    pub fn try_acquire(guard: &Guard, parent: &Path) -> Result<LockAttempt> {
        let parent = parent.canonicalize().map_err(RigError::io("use directory", parent))?;
        let path = parent.join(NAME);
        let patience = Instant::now() + PATIENCE;
        loop {
            let is_late = Instant::now() > patience;
            match DirBuilder::new().mode(0o755).create(&path) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => {
                    return Err(RigError::io("make directory", &path)(e));
                }
                _ => {}
            }
            let opened = match Opened::open(&path) {
                Ok(Some(opened)) => opened,
                // Whoever held it has just removed it.
                Ok(None) if !is_late && fs::symlink_metadata(&path).is_err() => continue,
                Ok(None) => return Err(unfit(&path, "is no directory")),
                Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                    return Err(unfit(&path, "belongs to another user, who lets nobody open it"));
                }
                Err(e) => return Err(RigError::io("open directory", &path)(e)),
            };
            match opened.file().try_lock() {
                Err(TryLockError::WouldBlock) if !is_late => {
                    std::thread::sleep(PATIENCE / 10);
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
                return Err(unfit(&path, "is removed again and again"));
            }
        }
    }
}

impl Drop for MeasurementLock {
    fn drop(&mut self) {
        // One that another user made stays; a guard that has ended needs no telling.
        let _ = self.opened.remove_empty();
        let _ = self.guard.disown_directory(&self.path);
    }
}

fn unfit(path: &Path, problem: &'static str) -> RigError {
    RigError::Lock { path: path.display().to_string(), problem }
}

/// Who holds the lock of that file; `None` where that is not certain.
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
    // A lock outlives the process that took it where a child has the file open as well; the id may
    // then be that of a stranger.
    let has_it = |link: &PathBuf| {
        fs::metadata(link)
            .is_ok_and(|there| (there.dev(), there.ino()) == (file.st_dev, file.st_ino))
    };
    if user.is_none() && !links.iter().any(has_it) {
        return None;
    }
    let files = links.iter().filter_map(|link| fs::read_link(link).ok()).collect();
    Some(Holder { pid, user, command: arguments.join(" "), age_s: age_s(pid), files })
}

/// The process in a line such as `1: FLOCK  ADVISORY  WRITE 708 fe:00:17 0 EOF`, with the device in
/// hexadecimal digits before the inode; one that waits for a lock has `->` behind the number. Some
/// file systems, such as Btrfs and overlay, have another device there than stat(2) tells: no line
/// is that of the file then.
fn holder_pid(locks: &str, file: &FileStat) -> Option<u32> {
    let wanted = format!("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = fields[..] else { return None };
        // 0 stands for a process that cannot be seen from here.
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
    use crate::ownerless::tests::guard;
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
    fn our_own_lock_is_told_with_our_command() {
        let place = tempfile::tempdir().unwrap();
        let lock = File::open(place.path()).unwrap();
        lock.try_lock().unwrap();
        let held = holder(&stat(place.path()).unwrap());
        let Some(held) = held else {
            println!("skipped: this file system's locks do not name its device");
            return;
        };
        assert_eq!((held.pid, &held.user), (std::process::id(), &None));
        assert!(held.command.contains(&std::env::args().next().unwrap()), "{held:?}");
        assert!(held.age_s.is_some_and(|age| age < 3600.0), "{held:?}");
        assert!(held.files.iter().any(|file| file == place.path()), "{held:?}");
    }

    #[test]
    fn what_is_no_directory_of_a_lock_is_refused_with_the_cure() {
        let place = tempfile::tempdir().unwrap();
        let guard = guard();
        let path = place.path().join(NAME);
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let refused = || match MeasurementLock::try_acquire(&guard, place.path()) {
            Err(e) => e.to_string(),
            Ok(_) => panic!("the lock was taken"),
        };
        for target in [elsewhere.as_path(), Path::new("/nowhere")] {
            symlink(target, &path).unwrap();
            let error = refused();
            assert!(error.contains("is no directory") && error.contains("TMPDIR"), "{error}");
            fs::remove_file(&path).unwrap();
        }
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(refused().contains("is no directory"));
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            MeasurementLock::try_acquire(&guard, place.path()),
            Ok(LockAttempt::Acquired(_))
        ));
        assert!(elsewhere.exists() && !path.exists());
    }
}
