//! File access within a record; all other modules go through it.
//!
//! A record may come from somebody else, so none of its names is trusted. The directory is opened
//! once, and every file is opened relative to that descriptor by a name without a `/`. With
//! `O_NOFOLLOW` no link can lead out of the directory. Only regular files are read or appended to.
//! They are opened with `O_NONBLOCK`, since opening a FIFO would otherwise block until its other
//! end is opened. A file with a second hard link is never appended to, because its other name can
//! be anywhere.

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, Whence, linkat, lseek, unlinkat};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read as _, Write};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::{ArchiveError, unreadable, written};

/// Permissions of new files, reduced by the user's umask.
const MODE: Mode = Mode::from_bits_truncate(0o666);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    file: File,
    path: PathBuf,
}

/// Rejects a sparse file, which uses little disk space but its full length in memory.
fn without_holes(file: File) -> io::Result<File> {
    let length = i64::try_from(file.metadata()?.len()).unwrap_or(i64::MAX);
    // File systems without support for holes report the end of the file.
    let hole = lseek(&file, 0, Whence::SeekHole).unwrap_or(length);
    lseek(&file, 0, Whence::SeekSet)?;
    if hole < length {
        return Err(io::Error::other(format!(
            "it has a hole at byte {hole} (expected a record as cachedyno wrote it)"
        )));
    }
    Ok(file)
}

impl Directory {
    /// Opens a directory named by the user; follows links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let file = nix::fcntl::open(path, flags, Mode::empty())?.into();
        Ok(Self { file, path: path.to_path_buf() })
    }

    /// Opens the directory of a record named by the user.
    pub(crate) fn of_record(path: &Path) -> Result<Self, ArchiveError> {
        Self::open(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ArchiveError::NotARecord(path.into()),
            _ => unreadable(path, e),
        })
    }

    /// Opens a subdirectory; never follows links.
    pub(crate) fn below(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let file = openat(&self.file, name, flags, Mode::empty())?.into();
        Ok(Self { file, path: self.path.join(name) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file, for messages.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a regular file without holes; `None` if it does not exist.
    pub(crate) fn file(&self, name: &str) -> Result<Option<File>, ArchiveError> {
        match self.regular(name, OFlag::O_RDONLY).and_then(without_holes) {
            Ok(file) => Ok(Some(file)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.unreadable(name, e)),
        }
    }

    /// Reads a regular file; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(mut file) = self.file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| self.unreadable(name, e))?;
        Ok(Some(bytes))
    }

    /// Opens a regular file for reading, appending and truncating; creates it if missing.
    pub(crate) fn append(&self, name: &str) -> Result<File, ArchiveError> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT;
        let file = self.regular(name, flags).map_err(|e| self.unwritten(name, e))?;
        let links = file.metadata().map_err(|e| self.unwritten(name, e))?.nlink();
        if links > 1 {
            let e = io::Error::other(format!(
                "it has {links} hard links, and appending would change all of them; copy the \
                 record with `cp -r` and use the copy"
            ));
            return Err(self.unwritten(name, e));
        }
        Ok(file)
    }

    /// Writes a file atomically: to a temporary file, which is synced and then renamed. An existing
    /// file is replaced. A link is replaced too; its target is not changed.
    pub(crate) fn write_whole(&self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        let (temporary, mut file) = self.temporary(name).map_err(|e| self.unwritten(name, e))?;
        let done = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(renameat(&self.file, &*temporary, &self.file, name)?))
            .and_then(|()| self.file.sync_all());
        done.map_err(|e| {
            // Fails harmlessly if the file was already renamed.
            let _ = unlinkat(&self.file, &*temporary, UnlinkatFlags::NoRemoveDir);
            self.unwritten(name, e)
        })
    }

    /// Writes a new file atomically. Errors: a file of that name exists.
    fn write_new(
        &self,
        name: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let (temporary, file) = self.temporary(name)?;
        let mut out = BufWriter::new(file);
        let done = content(&mut out)
            .and_then(|()| out.flush())
            .and_then(|()| out.get_ref().sync_all())
            .and_then(|()| {
                Ok(linkat(&self.file, &*temporary, &self.file, name, AtFlags::empty())?)
            });
        let _ = unlinkat(&self.file, &*temporary, UnlinkatFlags::NoRemoveDir);
        done
    }

    /// Removes a file; does nothing if it does not exist.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ArchiveError> {
        match unlinkat(&self.file, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(e) => Err(self.unwritten(name, e.into())),
        }
    }

    /// Removes an empty subdirectory; true on success.
    pub(crate) fn remove_directory(&self, name: &OsStr) -> bool {
        unlinkat(&self.file, name, UnlinkatFlags::RemoveDir).is_ok()
    }

    pub(crate) fn unreadable(&self, name: &str, source: io::Error) -> ArchiveError {
        unreadable(&self.place(name), source)
    }

    pub(crate) fn unwritten(&self, name: &str, source: io::Error) -> ArchiveError {
        written(&self.place(name), source)
    }

    /// Creates a temporary file with an unused name.
    fn temporary(&self, name: &str) -> io::Result<(String, File)> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let own = std::process::id();
        for n in 0..1000 {
            let temporary = format!(".{name}.{own}.{n}.tmp");
            match openat(&self.file, &*temporary, flags | OFlag::O_NOFOLLOW, MODE) {
                Ok(file) => return Ok((temporary, file.into())),
                Err(Errno::EEXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(io::Error::other(format!("files `.{name}.{own}.*.tmp` are in the way")))
    }

    fn regular(&self, name: &str, flags: OFlag) -> io::Result<File> {
        let safe = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let file: File = match openat(&self.file, name, flags | safe, MODE) {
            Ok(file) => file.into(),
            Err(Errno::ELOOP) => return Err(irregular("a symbolic link")),
            // A FIFO without a reader, or a socket.
            Err(Errno::ENXIO) => return Err(irregular("no file")),
            Err(e) => return Err(e.into()),
        };
        let kind = file.metadata()?.file_type();
        match kind {
            kind if kind.is_file() => Ok(file),
            kind if kind.is_dir() => Err(irregular("a directory")),
            kind if kind.is_fifo() => Err(irregular("a FIFO")),
            _ => Err(irregular("a device")),
        }
    }
}

fn irregular(what: &str) -> io::Error {
    io::Error::other(format!("it is {what} (expected a regular file)"))
}

/// Writes a page atomically to a path chosen by the user.
///
/// Errors: the path is something other than a regular file, such as a link or a device, or an I/O
/// error.
pub fn write_page(path: &Path, text: &[u8]) -> Result<(), ArchiveError> {
    let failed = |source| written(path, source);
    match path.symlink_metadata() {
        Ok(known) if known.is_symlink() => return Err(failed(irregular("a symbolic link"))),
        Ok(known) if known.is_dir() => return Err(failed(irregular("a directory"))),
        Ok(known) if !known.is_file() => return Err(failed(irregular("no file"))),
        _ => {}
    }
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or_else(|| failed(io::Error::other("it has no file name")))?;
    let directory = Directory::open(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    directory.write_whole(name, text)
}

/// Writes a new file atomically to a path chosen by the user.
///
/// Errors: `AlreadyExists` if the path exists, I/O errors, and those of `content`.
pub fn write_new(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or_else(|| io::Error::other("it has no file name"))?;
    Directory::open(path.parent().unwrap_or(Path::new(".")))?.write_new(name, content)
}

/// Atomically writes a file derived from a record into it: [`crate::REPORT`] or
/// [`crate::SUMMARY`].
pub fn write_derived(record: &Path, name: &str, text: &[u8]) -> Result<(), ArchiveError> {
    let failed = |source| written(&record.join(name), source);
    Directory::open(record).map_err(failed)?.write_whole(name, text)
}

/// Reads a derived file; `None` if it is missing or unreadable.
pub fn read_derived(record: &Path, name: &str) -> Option<Vec<u8>> {
    Directory::open(record).ok()?.read(name).ok()?
}

/// Appends bytes to a file and syncs it to disk.
pub(crate) fn append_whole(file: &mut File, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let before = file.metadata().map_err(|e| written(path, e))?.len();
    let done = file.write_all(bytes).and_then(|()| file.sync_data());
    done.map_err(|e| {
        // Undo a partial write, so that the file contains only complete lines.
        match file.set_len(before) {
            Ok(()) => written(path, e),
            Err(also) => written(path, std::io::Error::other(format!("{e}; then {also}"))),
        }
    })
}
