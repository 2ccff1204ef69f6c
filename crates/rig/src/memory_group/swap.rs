//! A private swap file, on the disk under test or another one, for a store whose data outgrow its
//! memory limit.
//!
//! It has its own [`Scratch`], whose removal, by us, the guard or `doctor --clean`, deactivates it
//! first (see `removal.rs`). Existing swap is left unchanged. The kernel fills swap areas by
//! priority, and ours has the highest: its disk is measured, but other programs that run
//! out of memory during that time also swap to it.
//!
//! The header is the one that `mkswap` writes (`union swap_header` in the kernel's
//! `include/linux/swap.h`). `fallocate` allocates the space without delay; ext4 and XFS accept such
//! swap files since Linux 4.18 (swapon(8)).

use crate::active_swap::{ActiveSwap, active_swap};
use crate::error::{Result, RigError};
use crate::free::FreeSpace;
use crate::guard::Guard;
use crate::procfs::page_bytes;
use crate::removal::{Mark, Opened};
use crate::scratch::Scratch;
use model::ErrorClass;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;
use stats::format_bytes;
use std::ffi::CString;
use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Offset of the header's fields; the bytes before are reserved for boot loaders.
const FIELDS_AT: u64 = 1024;
const VERSION: u32 = 1;
const MAGIC: &[u8] = b"SWAPSPACE2";
/// `SWAP_FLAG_PREFER` with the highest priority (swapon(2)).
const PREFERRED: libc::c_int = 0x8000 | HIGHEST;
const HIGHEST: libc::c_int = 0x7FFF;
/// Maximum share of the free space that it uses, in tenths.
const USABLE_TENTHS: u64 = 9;

/// Active swap. Dropping it deactivates and removes it; pages of processes that still run are read
/// back into memory.
#[derive(Debug)]
pub(super) struct Swap(Scratch);

impl Swap {
    /// Creates a file for `bytes` of swapped pages in a new directory in `parent` and activates it.
    /// Errors: no space on the disk; its file system does not support swap files; we are not root.
    pub(super) fn on(guard: &Guard, parent: &Path, bytes: u64) -> Result<Self> {
        if let Some(free) = FreeSpace::on(parent).disk_bytes
            && bytes > free / 10 * USABLE_TENTHS
        {
            let (bytes, usable) = (format_bytes(bytes), format_bytes(free / 10 * USABLE_TENTHS));
            let why = format!(
                "at most {usable} of its disk can be used, 90 % of the {} that are free, and \
                 {bytes} are needed (expected more space: `--disk` or `--set swap_dir`)",
                format_bytes(free)
            );
            return Err(swap_error(ErrorClass::Full, parent, &why));
        }
        let others = active_swap();
        let is_left = |other: &&ActiveSwap| other.priority == HIGHEST && !has_owner(&other.file);
        if let Some(other) = others.iter().find(is_left) {
            let why = format!(
                "`{}` is swap of the same, highest priority, and the kernel would use both \
                 alike (expected none: `cachedyno doctor --clean` removes that of killed runs, and \
                 `swapoff` another one)",
                other.file.display()
            );
            return Err(swap_error(ErrorClass::Other, parent, &why));
        }
        // From now on, dropping it removes it.
        let swap = Self(Scratch::new(guard, parent)?);
        let file = swap.0.path().join("swap");
        let on = make(&file, bytes).and_then(|()| Ok(switch_on(&file)?));
        on.map_err(|error| {
            let (class, expected) = class_and_fix(&error);
            swap_error(class, parent, &format!("{error} (expected {expected})"))
        })?;
        Ok(swap)
    }

    /// Deactivates and removes it now and reports errors; after an error the guard tries again at
    /// the end.
    pub(super) fn remove(self) -> Result<()> {
        self.0.remove()
    }
}

/// True for the swap of a run that still goes on: it holds the lock of its directory's mark.
fn has_owner(file: &Path) -> bool {
    let opened = file.parent().and_then(|own| Opened::open(own).ok()?);
    let mark = opened.and_then(|opened| opened.mark().ok());
    match mark {
        Some(Mark::Ours(file, _)) => {
            matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
        }
        Some(Mark::None | Mark::Foreign) | None => false,
    }
}

/// Creates a swap file: a page for the header, followed by `bytes` of swap.
fn make(path: &Path, bytes: u64) -> io::Result<()> {
    let (page, pages) = (page_bytes(), bytes.div_ceil(page_bytes()));
    let last_page = u32::try_from(pages).map_err(|_| Errno::EFBIG)?;
    let length = i64::try_from((pages + 1) * page).map_err(|_| Errno::EFBIG)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    fallocate(&file, FallocateFlags::empty(), 0, length)?;
    let fields = [VERSION.to_ne_bytes(), last_page.to_ne_bytes()].concat();
    file.write_all_at(&fields, FIELDS_AT)?;
    file.write_all_at(MAGIC, page - MAGIC.len() as u64)
}

#[expect(unsafe_code, reason = "swapon has no safe wrapper")]
fn switch_on(file: &Path) -> nix::Result<()> {
    let path = CString::new(file.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the path is NUL-terminated and lives until the call returns.
    Errno::result(unsafe { libc::swapon(path.as_ptr(), PREFERRED) }).map(drop)
}

/// The class of a system error, and the expected condition.
fn class_and_fix(error: &io::Error) -> (ErrorClass, &'static str) {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES) => (
            ErrorClass::Missing,
            "root, in a container with `CAP_SYS_ADMIN`, as with `docker run --privileged`",
        ),
        Some(Errno::ENOSPC | Errno::EDQUOT) => {
            (ErrorClass::Full, "more space: `--disk` or `--set swap_dir`")
        }
        // For example on Btrfs, overlay and tmpfs.
        _ => (
            ErrorClass::Other,
            "a file system with swap files, such as ext4 or XFS: `--disk` or `--set swap_dir`",
        ),
    }
}

fn swap_error(class: ErrorClass, parent: &Path, why: &str) -> RigError {
    let problem = format!("cannot swap to `{}`: {why}", parent.display());
    RigError::MemoryLimit { class, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_of_a_run_that_goes_on_has_an_owner() {
        let (base, guard) = (tempfile::tempdir().unwrap(), crate::orphaned::tests::guard());
        let scratch = Scratch::new(&guard, base.path()).unwrap();
        assert!(has_owner(&scratch.path().join("swap")));
        assert!(!has_owner(&base.path().join("swap")));
    }

    #[test]
    fn each_reason_for_no_swap_has_its_remedy() {
        let told = |errno: Errno| class_and_fix(&errno.into());
        for errno in [Errno::EPERM, Errno::EACCES] {
            let (class, fix) = told(errno);
            assert!(class == ErrorClass::Missing && fix.contains("root"), "{fix}");
        }
        for errno in [Errno::ENOSPC, Errno::EDQUOT] {
            let (class, fix) = told(errno);
            assert!(class == ErrorClass::Full && fix.contains("more space: `--disk`"), "{fix}");
        }
        // Btrfs with copy-on-write, overlay, tmpfs, and file systems without `fallocate`.
        for errno in [Errno::EINVAL, Errno::EOPNOTSUPP] {
            let (class, fix) = told(errno);
            assert!(class == ErrorClass::Other && fix.contains("ext4 or XFS"), "{fix}");
        }
    }
}
