//! Finds and removes leftovers of runs that were killed together with their guards: directories
//! for data and sockets, the directory of the lock, and control groups.
//!
//! Only leftovers that are proven to be ours and orphaned are removed, and the proof is repeated
//! on the open directory immediately before. A directory is orphaned if it has our name and our
//! mark, no process holds the mark's lock, and both program and guard have ended (see `owner.rs`).
//! Without a mark, a directory is removed only if it is empty, has our name and mode, and has not
//! changed for a minute: its creation or removal was interrupted.

use crate::active_swap::{ActiveSwap, active_swap};
use crate::cpu_group::V1_CPU;
use crate::disk_group::V1_BLKIO;
use crate::error::{Result, RigError};
use crate::host::limits::{V1_MEMORY, V2};
use crate::measurement_lock;
use crate::owner::{Owner, State, is_our_name};
use crate::procfs::{Identity, processes};
use crate::removal::{Mark, Opened};
use nix::sys::statfs::fstatfs;
use nix::unistd::geteuid;
use std::fs::{self, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Age from which an empty directory cannot be one that is just being created or removed.
const EMPTY_FOR: Duration = Duration::from_secs(60);
/// Maximum time to wait for the end of processes, and again for a removal.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum depth of the search for control groups.
const GROUP_LEVELS: usize = 32;
/// File systems that no other host can mount at the same time (statfs(2)): ext2 to ext4, XFS,
/// Btrfs, tmpfs, ramfs, F2FS, ZFS, overlay, bcachefs, JFS.
const LOCAL: [u32; 10] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0x0102_1994,
    0x8584_58F6,
    0xF2F5_2010,
    0x2FC1_2FC1,
    0x794C_7630,
    0xCA45_1A4E,
    0x3153_464A,
];

/// Kind of a leftover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory for data or sockets.
    Directory,
    /// The directory whose lock a measurement holds.
    Lock,
    /// A control group.
    Group,
}

/// A directory or control group with our name that is not known to belong to a running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path; absolute, without symbolic links.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// True if it is proven to be ours and orphaned.
    pub is_orphaned: bool,
    /// Why it is orphaned, or why that cannot be determined.
    pub why: String,
}

/// Finds leftovers directly in `places` and, if `everywhere` is true, beside active swap and among
/// control groups. Lists each once, and skips those of other users that cannot be read.
pub fn look(places: &[PathBuf], everywhere: bool) -> Vec<Found> {
    let of_swap = if everywhere { swap_directories(&active_swap()) } else { Vec::new() };
    let of_swap = of_swap.iter().filter_map(|own| Some(own.parent()?.to_path_buf()));
    let all = places.iter().cloned().chain(of_swap);
    let mut parents: Vec<PathBuf> = all.filter_map(|p| p.canonicalize().ok()).collect();
    parents.sort();
    parents.dedup();
    let mut found = Vec::new();
    for parent in parents {
        let names = fs::read_dir(&parent).into_iter().flatten().filter_map(|entry| {
            entry.ok()?.file_name().into_string().ok().filter(|name| kind_of(name).is_some())
        });
        let mut paths: Vec<PathBuf> = names.map(|name| parent.join(name)).collect();
        paths.sort();
        found.extend(paths.iter().filter_map(|path| Found::at(path)));
    }
    if everywhere {
        let mut paths = Vec::new();
        for mount in V1_MEMORY.iter().chain(&V1_BLKIO).chain(&V1_CPU).chain(&V2) {
            our_groups(&Path::new("/").join(mount), GROUP_LEVELS, &mut paths);
        }
        found.extend(paths.iter().filter_map(|path| Found::at(path)));
    }
    found
}

impl Found {
    /// Examines a path; `None` if it is not ours or is in use.
    fn at(path: &Path) -> Option<Self> {
        let kind = kind_of(path.file_name()?.to_str()?)?;
        let state = match Opened::open(path) {
            Ok(opened) => judge(kind, &opened?),
            Err(e) => Err(e),
        };
        let (is_orphaned, why) = match state {
            Ok(State::Alive) => return None,
            Ok(State::Gone(why)) => (true, why),
            Ok(State::Unknown(why)) => (false, why.into()),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return None,
            Err(e) => (false, e.to_string()),
        };
        Some(Self { path: path.into(), kind, is_orphaned, why })
    }

    /// True if the kernel swaps to a file in it.
    pub fn holds_swap(&self) -> bool {
        self.kind == Kind::Directory && swap_directories(&active_swap()).contains(&self.path)
    }

    /// Disk space used by a directory, in bytes; 0 for locks and control groups.
    pub fn bytes(&self) -> u64 {
        match (self.kind, Opened::open(&self.path)) {
            (Kind::Directory, Ok(Some(opened))) => opened.bytes(),
            _ => 0,
        }
    }

    /// Removes it if it still exists and is orphaned, and kills the servers that still run in it.
    /// Returns true if it was removed.
    ///
    /// Errors: an entry could not be removed within ten seconds.
    pub fn remove(&self) -> Result<bool> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.try_remove() {
                Ok(removed) => return Ok(removed),
                Err(e)
                    if e.kind() == io::ErrorKind::PermissionDenied || Instant::now() > deadline =>
                {
                    return Err(RigError::io("remove", &self.path)(e));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn try_remove(&self) -> io::Result<bool> {
        let Some(opened) = Opened::open(&self.path)? else { return Ok(false) };
        if !matches!(judge(self.kind, &opened)?, State::Gone(_)) {
            return Ok(false);
        }
        if self.kind == Kind::Directory {
            end_servers(&self.path, opened.stat().st_uid);
            opened.remove_marked()?;
        } else {
            opened.remove_empty()?;
        }
        Ok(true)
    }
}

/// Directories with our name that hold active swap, which can be on a disk that no option names.
fn swap_directories(swaps: &[ActiveSwap]) -> Vec<PathBuf> {
    let of = |swap: &ActiveSwap| {
        let own = swap.file.parent()?;
        is_our_name(own.file_name()?.to_str()?).then(|| own.to_path_buf())
    };
    swaps.iter().filter_map(of).collect()
}

fn kind_of(name: &str) -> Option<Kind> {
    if is_our_name(name) {
        Some(Kind::Directory)
    } else if name == measurement_lock::NAME {
        Some(Kind::Lock)
    } else {
        Owner::of_group(name).map(|_| Kind::Group)
    }
}

/// State of the owner of an open directory; [`State::Alive`] also covers every other reason not to
/// report it. After [`State::Gone`] for a [`Kind::Lock`], `opened` holds the lock.
fn judge(kind: Kind, opened: &Opened) -> io::Result<State> {
    let gone = |why: &str| Ok(State::Gone(why.into()));
    match kind {
        Kind::Directory => judge_directory(opened),
        Kind::Lock if !is_own(opened, 0o755) || !opened.is_empty()? => Ok(State::Alive),
        Kind::Lock => match opened.file().try_lock() {
            Ok(()) => gone("no measurement holds its lock"),
            Err(TryLockError::WouldBlock) => Ok(State::Alive),
            Err(TryLockError::Error(e)) => Err(e),
        },
        Kind::Group => {
            let owner = opened.name().to_str().and_then(Owner::of_group);
            let is_group = matches!(magic(opened.file()), Some(V1_MAGIC | V2_MAGIC));
            Ok(owner.filter(|_| is_group).map_or(State::Alive, |owner| owner.state(true, false)))
        }
    }
}

fn judge_directory(opened: &Opened) -> io::Result<State> {
    let interrupted = || State::Gone("empty: its creation or removal was interrupted".into());
    let (file, text) = match opened.mark()? {
        Mark::Foreign => return Ok(State::Alive),
        Mark::None => {
            let is_left = is_own(opened, 0o700) && is_old(opened) && opened.is_empty()?;
            return Ok(if is_left { interrupted() } else { State::Alive });
        }
        Mark::Ours(file, text) => (file, text),
    };
    let is_unlocked = match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => return Ok(State::Alive),
        // Some network file systems have no locks.
        locked => locked.is_ok(),
    };
    let is_local = magic(opened.file()).is_some_and(|magic| LOCAL.contains(&magic));
    Ok(match Owner::of_mark(&text) {
        Some(owner) => owner.state(is_local, is_unlocked),
        None if is_own(opened, 0o700) && is_old(opened) && opened.has_mark_only()? => interrupted(),
        None => State::Unknown("its mark does not identify the process that created it"),
    })
}

/// Whether it belongs to this user and has that mode.
fn is_own(opened: &Opened, mode: u32) -> bool {
    let stat = opened.stat();
    stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o7777 == mode
}

/// Whether it has not changed for a minute.
fn is_old(opened: &Opened) -> bool {
    let changed = Duration::from_secs(u64::try_from(opened.stat().st_ctime).unwrap_or(0));
    let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + changed);
    age.is_ok_and(|age| age >= EMPTY_FOR)
}

/// Kills the servers of that user that still run in a directory, and waits until they have ended.
/// Usually there are none because the kernel kills them with the program, but their child
/// processes can survive.
fn end_servers(directory: &Path, user: u32) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left: Vec<Identity> =
            processes().filter_map(|pid| server(pid, directory, user)).collect();
        if left.is_empty() || Instant::now() > deadline {
            return;
        }
        left.into_iter().for_each(Identity::kill);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The process if it is a server in `directory`: working directory, `HOME` and `TMPDIR` are in it.
/// A shell whose user changed to the directory is not one.
fn server(pid: u32, directory: &Path, user: u32) -> Option<Identity> {
    let identity = Identity::of(pid)?;
    let process = PathBuf::from(format!("/proc/{pid}"));
    if fs::metadata(&process).ok()?.uid() != user
        || !fs::read_link(process.join("cwd")).ok()?.starts_with(directory)
    {
        return None;
    }
    let environment = fs::read(process.join("environ")).ok()?;
    let within = |name: &[u8]| {
        let mut values = environment.split(|byte| *byte == 0).filter_map(|v| v.strip_prefix(name));
        values.any(|v| Path::new(std::ffi::OsStr::from_bytes(v)).starts_with(directory))
    };
    (within(b"HOME=") && within(b"TMPDIR=") && identity.runs()).then_some(identity)
}

/// Collects control groups below `group` with a name of our form, on the same file system.
fn our_groups(group: &Path, levels: usize, found: &mut Vec<PathBuf>) {
    let Some(levels) = levels.checked_sub(1) else { return };
    let device = |path: &Path| fs::symlink_metadata(path).ok().map(|stat| stat.dev());
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        if entry.file_name().to_str().is_some_and(|name| Owner::of_group(name).is_some()) {
            found.push(path);
        } else if device(&path) == device(group) {
            our_groups(&path, levels, found);
        }
    }
}

/// Magic numbers of the control-group file systems, versions 1 and 2 (statfs(2)).
const V1_MAGIC: u32 = 0x0027_E0EB;
const V2_MAGIC: u32 = 0x6367_7270;

/// Magic number of the file system that contains a file.
fn magic(file: impl AsFd) -> Option<u32> {
    // The number has 32 bits; its type depends on the architecture.
    Some(fstatfs(file).ok()?.filesystem_type().0 as u32)
}

#[cfg(test)]
#[path = "orphaned_tests.rs"]
pub(crate) mod tests;
