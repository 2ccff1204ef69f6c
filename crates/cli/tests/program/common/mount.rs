//! A small in-memory file system.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::{Place, skipped};

/// A mounted tmpfs, unmounted on drop.
pub(crate) struct Tmpfs {
    path: PathBuf,
}

impl Tmpfs {
    /// Mounts a tmpfs of `kib` KiB in the place; prints a note and returns `None` if this
    /// user cannot mount.
    pub(crate) fn new(place: &Place, kib: u64) -> Option<Self> {
        let path = place.path().join("small");
        fs::create_dir(&path).unwrap();
        let options = format!("size={kib}k,mode=0700");
        let mounted = mount(
            Some("tmpfs"),
            &path,
            Some("tmpfs"),
            MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
            Some(options.as_str()),
        );
        match mounted {
            Ok(()) => Some(Self { path }),
            Err(e) => {
                skipped(&format!("a tmpfs cannot be mounted: {e}"));
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes everything in it.
    pub(crate) fn clear(&self) {
        for entry in fs::read_dir(&self.path).unwrap() {
            fs::remove_dir_all(entry.unwrap().path()).unwrap();
        }
    }

    /// Writes a file until the file system is full.
    pub(crate) fn fill(&self) {
        let path = self.path.join("ballast");
        let mut ballast = fs::File::create(&path).unwrap();
        while ballast.write_all(&[0; 4096]).is_ok() {}
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
    }
}
