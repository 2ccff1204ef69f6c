//! Administration of the directory around a run: its file system, and a subdirectory created for
//! the run, with the cache layout's directories in it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::{Endpoint, ErrorClass, Failure, Layout};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use workloads::store::StoreError;

use super::directory::{Directory, check_id};
use super::is_cache_dir;
use crate::{Admin, CleanupDeadline, Facts, SessionOptions, admin, fault};

struct FilesAdmin {
    parent: Directory,
    path: PathBuf,
    /// Subdirectories that we created, by name, with device and inode.
    created: BTreeMap<String, (u64, u64)>,
}

pub(crate) fn open_admin(path: &Path) -> Result<Box<dyn Admin>, StoreError> {
    // The user's own directory can be a link; entries in it must not be.
    let real = fs::canonicalize(path).map_err(|e| {
        let what = format!("cannot use directory `{}`", path.display());
        let mut error = fault::file(&what, &e);
        error.fatal = true;
        error
    })?;
    Ok(Box::new(FilesAdmin {
        parent: Directory::open(&real)?,
        path: real,
        created: BTreeMap::new(),
    }))
}

impl FilesAdmin {
    fn failed(&self, name: &str, what: &str, e: &io::Error) -> Failure {
        let path = self.path.join(name);
        fault::file(&format!("cannot {what} `{}`", path.display()), e).into()
    }

    /// Removes a directory that we created, with its files and the directories of a cache in it.
    fn remove(
        &self,
        name: &str,
        identity: (u64, u64),
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        let fd = match directory_in(&self.parent.fd, name) {
            Err(Errno::ENOENT) => return Ok(()),
            other => other.map_err(|e| self.failed(name, "open", &e.into()))?,
        };
        let stat = fstat(&fd).map_err(|e| self.failed(name, "stat", &e.into()))?;
        if (stat.st_dev, stat.st_ino) != identity {
            return Err(not_ours(&self.path.join(name), "was replaced after we created it"));
        }
        self.remove_below(name, (&fd, ""), patience)?;
        self.remove_empty(&self.parent.fd, name, name)
    }

    /// Removes everything in a directory except directories that no layout creates. `path` is the
    /// directory's below that of the cache, which is called `name`.
    fn remove_below(
        &self,
        name: &str,
        (directory, path): (&OwnedFd, &str),
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        let shown = format!("{name}/{path}");
        for dir in self.empty(shown.trim_end_matches('/'), directory, patience)? {
            let path = if path.is_empty() { dir.clone() } else { format!("{path}/{dir}") };
            if is_cache_dir(&path) {
                let name_of_it = format!("{name}/{path}");
                let opened = directory_in(directory, &dir);
                let opened = opened.map_err(|e| self.failed(&name_of_it, "open", &e.into()))?;
                self.remove_below(name, (&opened, &path), patience)?;
                self.remove_empty(directory, &dir, &name_of_it)?;
            }
        }
        Ok(())
    }

    /// Removes the files and links in a directory; returns the names of its subdirectories, which
    /// stay.
    fn empty(
        &self,
        name: &str,
        fd: &OwnedFd,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<Vec<String>, Failure> {
        let mut directories = Vec::new();
        let entries = fs::read_dir(format!("/proc/self/fd/{}", fd.as_raw_fd()))
            .map_err(|e| self.failed(name, "list", &e))?;
        for entry in entries {
            patience.check()?;
            let entry = entry.map_err(|e| self.failed(name, "list", &e))?.file_name();
            match unlinkat(fd, entry.as_os_str(), UnlinkatFlags::NoRemoveDir) {
                Ok(()) | Err(Errno::ENOENT) => {}
                Err(Errno::EISDIR) => directories.push(entry.to_string_lossy().into_owned()),
                Err(e) => return Err(self.failed(name, "empty", &e.into())),
            }
        }
        Ok(directories)
    }

    fn remove_empty(&self, above: &OwnedFd, entry: &str, name: &str) -> Result<(), Failure> {
        match unlinkat(above, entry, UnlinkatFlags::RemoveDir) {
            Err(Errno::ENOTEMPTY) => {
                Err(not_ours(&self.path.join(name), "contains a directory that we did not create"))
            }
            other => other.map_err(|e| self.failed(name, "remove", &e.into())),
        }
    }
}

/// Opens a subdirectory, which must not be a link.
fn directory_in(above: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(above, name, flags, Mode::empty())
}

fn not_ours(path: &Path, why: &str) -> Failure {
    let message = format!("`{}` {why} (left unchanged: check its contents)", path.display());
    Failure { class: ErrorClass::NotOurs, message }
}

impl Admin for FilesAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mount = Mount::holding(&table, &self.path);
        // Neither PHP's files handler nor the 2019 script syncs its files.
        let mut configuration = vec![("fsync".into(), "no".into())];
        if let Some(m) = &mount {
            configuration.push(("device".into(), m.device.clone()));
            configuration.push(("mount options".into(), m.options.clone()));
            configuration.push(("mount point".into(), m.point.clone()));
        }
        let kind = mount.map_or_else(|| "an unknown file system".into(), |m| m.kind);
        Ok(Facts { version: format!("files on {kind}"), empty: Some(true), configuration })
    }

    fn prepare(&mut self, _: Layout, name: &str, _: usize) -> Result<PathBuf, Failure> {
        check_id(name)?;
        match mkdirat(&self.parent.fd, name, Mode::S_IRWXU) {
            Err(Errno::EEXIST) => {
                return Err(not_ours(&self.path.join(name), "already exists"));
            }
            other => other.map_err(|e| self.failed(name, "make", &e.into()))?,
        }
        let stat = directory_in(&self.parent.fd, name)
            .and_then(fstat)
            .map_err(|e| self.failed(name, "open", &e.into()))?;
        self.created.insert(name.into(), (stat.st_dev, stat.st_ino));
        Ok(self.path.join(name))
    }

    fn verify(
        &mut self,
        layout: Layout,
        options: &SessionOptions,
        id: &str,
    ) -> Result<(), Failure> {
        let endpoint = Endpoint::Files { directory: self.path.clone() };
        let result = admin::round_trip(&endpoint, layout, options, id);
        let name = match layout {
            Layout::Plain => id.to_string(),
            Layout::Page => format!("sess_{id}"),
        };
        let directory = Directory::open(&options.directory)?;
        match unlinkat(&directory.fd, name.as_str(), UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => result,
            Err(e) => result.and(Err(self.failed(&name, "remove", &e.into()))),
        }
    }

    fn clean(
        &mut self,
        _: Layout,
        _: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        while let Some((name, identity)) = self.created.last_key_value() {
            self.remove(name, *identity, patience)?;
            self.created.pop_last();
        }
        Ok(())
    }
}

/// A line of /proc/self/mountinfo (see `man 5 proc`).
struct Mount {
    point: String,
    options: String,
    kind: String,
    device: String,
}

impl Mount {
    /// The mount that contains `path`: the deepest mount point above it; if there are several, the
    /// last one mounted.
    fn holding(table: &str, path: &Path) -> Option<Self> {
        let above = table.lines().filter_map(Self::parse).filter(|m| path.starts_with(&m.point));
        above.max_by_key(|m| Path::new(&m.point).components().count())
    }

    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(4);
        let point = unescape(before.next()?);
        let options = before.next()?.to_string();
        let mut after = after.split(' ');
        let kind = after.next()?.to_string();
        Some(Self { point, options, kind, device: unescape(after.next()?) })
    }
}

/// Decodes spaces, tabs, line feeds and backslashes, which are written as three octal digits.
fn unescape(text: &str) -> String {
    let replaced = text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n");
    replaced.replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:20 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1g
23 21 0:30 / /mnt/a\\040disk rw - xfs /dev/sdb rw
24 22 0:31 / /tmp rw - btrfs /dev/sdc rw";

    #[test]
    fn the_deepest_and_last_mount_counts() {
        let kind = |path: &str| Mount::holding(TABLE, Path::new(path)).unwrap().kind;
        assert_eq!(kind("/srv"), "ext4");
        assert_eq!(kind("/tmp/x"), "btrfs");
        assert_eq!(kind("/tmpfile"), "ext4");
        assert_eq!(kind("/mnt/a disk/y"), "xfs");
    }
}
