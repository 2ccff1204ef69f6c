//! A swap file of our own on the disk under test, for a store whose data outgrow its memory.
//!
//! It is alone in a [`Scratch`], so that whoever removes that directory, we, the guard or
//! `doctor --clean`, switches it off first (see `removal.rs`). Swap that was there before stays as
//! it is. The kernel fills areas by priority, and ours has the highest: what is measured is the
//! disk under test, and other programs that run out of memory meanwhile swap to it as well.
//!
//! The header is what `mkswap` writes (`union swap_header` in the kernel's `include/linux/swap.h`).
//! Space comes from `fallocate`, with which ext4 and XFS take such a file since Linux 4.18
//! (swapon(8)), so that making it costs no time.

use crate::error::{Result, RigError};
use crate::free::FreeSpace;
use crate::guard::Guard;
use crate::procfs::page_bytes;
use crate::scratch::Scratch;
use model::ErrorClass;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::libc;
use stats::format_bytes;
use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Where the header's fields begin; what is before is left to boot loaders.
const FIELDS_AT: u64 = 1024;
const VERSION: u32 = 1;
const MAGIC: &[u8] = b"SWAPSPACE2";
/// `SWAP_FLAG_PREFER` with the highest priority (swapon(2)).
const PREFERRED: libc::c_int = 0x8000 | 0x7FFF;
/// Tenths of the free space that it may take.
const USABLE_TENTHS: u64 = 9;

/// Swap that is switched on. Dropping it switches it off and removes it; what used it must have
/// ended, or else is read back into memory.
#[derive(Debug)]
pub(super) struct Swap(Scratch);

impl Swap {
    /// Makes a file for `bytes` of swapped pages in a new directory in `parent`, and switches it
    /// on. Errors: no room on the disk; its file system holds no swap; only root may.
    pub(super) fn on(guard: &Guard, parent: &Path, bytes: u64) -> Result<Self> {
        if let Some(free) = FreeSpace::on(parent).disk_bytes
            && bytes > free / 10 * USABLE_TENTHS
        {
            let (bytes, usable) = (format_bytes(bytes), format_bytes(free / 10 * USABLE_TENTHS));
            let why = format!(
                "of its disk at most {usable} may be used, 90 % of the {} that are free, and \
                 {bytes} are needed (expected more room: `--disk`)",
                format_bytes(free)
            );
            return Err(refused(ErrorClass::Full, parent, &why));
        }
        // From here on, dropping it removes it.
        let swap = Self(Scratch::new(guard, parent)?);
        let file = swap.0.path().join("swap");
        let on = make(&file, bytes).and_then(|()| Ok(switch_on(&file)?));
        on.map_err(|error| {
            let (class, expected) = cure(&error);
            refused(class, parent, &format!("{error} (expected {expected})"))
        })?;
        Ok(swap)
    }

    /// Switches it off and removes it now, with a word when that fails; the guard then tries again
    /// in the end.
    pub(super) fn remove(self) -> Result<()> {
        self.0.remove()
    }
}

/// A file for so much swap behind a page for the header.
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

#[expect(unsafe_code, reason = "swapon has no safe form")]
fn switch_on(file: &Path) -> nix::Result<()> {
    let path = CString::new(file.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the path ends with a zero and lives until the call returns.
    Errno::result(unsafe { libc::swapon(path.as_ptr(), PREFERRED) }).map(drop)
}

/// The class of an error of the system, and what was expected.
fn cure(error: &io::Error) -> (ErrorClass, &'static str) {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES) => (
            ErrorClass::Denied,
            "root, in a container with `CAP_SYS_ADMIN`, as of `docker run --privileged`",
        ),
        Some(Errno::ENOSPC | Errno::EDQUOT) => (ErrorClass::Full, "more room: `--disk`"),
        // Among others of Btrfs, overlay and tmpfs.
        _ => (ErrorClass::Other, "a file system that holds swap files, as ext4 or XFS: `--disk`"),
    }
}

fn refused(class: ErrorClass, parent: &Path, why: &str) -> RigError {
    let problem = format!("`{}` holds no swap: {why}", parent.display());
    RigError::MemoryLimit { class, problem }
}
