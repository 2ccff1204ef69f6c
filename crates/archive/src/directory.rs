//! The only way to the files of a record.
//!
//! A record may come from somebody else, so none of its names is trusted. The directory is opened
//! once and every file is reached from that descriptor by a name without a `/`: with `O_NOFOLLOW`
//! no link can lead out of it. Only regular files are read or added to. They are opened with
//! `O_NONBLOCK`, since opening a FIFO would otherwise wait for its other end for ever. A file with
//! a second hard link is never added to, because its other name may be anywhere.

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

/// What the user's umask leaves of it.
const MODE: Mode = Mode::from_bits_truncate(0o666);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    file: File,
    path: PathBuf,
}

/// Refuses a sparse file: it takes no room on a disk and all of its length in memory.
fn without_holes(file: File) -> io::Result<File> {
    let length = i64::try_from(file.metadata()?.len()).unwrap_or(i64::MAX);
    // Where holes are not known, the end of the file is the first.
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
    /// Opens a directory that the user named, through links as the user wrote it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let file = nix::fcntl::open(path, flags, Mode::empty())?.into();
        Ok(Self { file, path: path.to_path_buf() })
    }

    /// Opens the directory of a record that the user named.
    pub(crate) fn of_record(path: &Path) -> Result<Self, ArchiveError> {
        Self::open(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ArchiveError::NotARecord(path.into()),
            _ => unreadable(path, e),
        })
    }

    /// Opens a directory in this one, and never through a link.
    pub(crate) fn below(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let file = openat(&self.file, name, flags, Mode::empty())?.into();
        Ok(Self { file, path: self.path.join(name) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a file is, for messages.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A regular file without holes; `None` where there is nothing of that name.
    pub(crate) fn file(&self, name: &str) -> Result<Option<File>, ArchiveError> {
        match self.regular(name, OFlag::O_RDONLY).and_then(without_holes) {
            Ok(file) => Ok(Some(file)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.unreadable(name, e)),
        }
    }

    /// All of a regular file; `None` where there is nothing of that name.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let Some(mut file) = self.file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| self.unreadable(name, e))?;
        Ok(Some(bytes))
    }

    /// A regular file to add to, to read and to shorten; made where there is none.
    pub(crate) fn append(&self, name: &str) -> Result<File, ArchiveError> {
        let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT;
        let file = self.regular(name, flags).map_err(|e| self.unwritten(name, e))?;
        let links = file.metadata().map_err(|e| self.unwritten(name, e))?.nlink();
        if links > 1 {
            let e = io::Error::other(format!(
                "it has {links} names (hard links), and what is added would change all of them; \
                 copy the record with `cp -r` and use the copy"
            ));
            return Err(self.unwritten(name, e));
        }
        Ok(file)
    }

    /// Writes a file whole or not at all: under another name first, synced, then renamed. What has
    /// the name already is replaced; a link is replaced itself and what it leads to stays.
    pub(crate) fn write_whole(&self, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        let (temporary, mut file) = self.temporary(name).map_err(|e| self.unwritten(name, e))?;
        let done = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(renameat(&self.file, &*temporary, &self.file, name)?))
            .and_then(|()| self.file.sync_all());
        done.map_err(|e| {
            // Where it was renamed already there is nothing of that name any more.
            let _ = unlinkat(&self.file, &*temporary, UnlinkatFlags::NoRemoveDir);
            self.unwritten(name, e)
        })
    }

    /// Writes a new file whole or not at all; what has the name already stays.
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

    /// Removes a name; nothing happens where there is none.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ArchiveError> {
        match unlinkat(&self.file, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(e) => Err(self.unwritten(name, e.into())),
        }
    }

    /// Removes an empty directory in this one; whether it is gone.
    pub(crate) fn remove_directory(&self, name: &OsStr) -> bool {
        unlinkat(&self.file, name, UnlinkatFlags::RemoveDir).is_ok()
    }

    pub(crate) fn unreadable(&self, name: &str, source: io::Error) -> ArchiveError {
        unreadable(&self.place(name), source)
    }

    pub(crate) fn unwritten(&self, name: &str, source: io::Error) -> ArchiveError {
        written(&self.place(name), source)
    }

    /// A new file whose name nothing else has.
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

/// Writes a page to a path that the user chose: whole or not at all.
///
/// Errors: something else than a regular file has that name, such as a link or a device, or the
/// operating system refuses.
pub fn write_page(path: &Path, text: &[u8]) -> Result<(), ArchiveError> {
    let failed = |source| written(path, source);
    match path.symlink_metadata() {
        Ok(known) if known.is_symlink() => return Err(failed(irregular("a symbolic link"))),
        Ok(known) if known.is_dir() => return Err(failed(irregular("a directory"))),
        Ok(known) if !known.is_file() => return Err(failed(irregular("no file"))),
        _ => {}
    }
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or_else(|| failed(io::Error::other("it has no name of a file")))?;
    let directory = Directory::open(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    directory.write_whole(name, text)
}

/// Writes a new file to a path that the user chose: whole or not at all.
///
/// Errors: of kind `AlreadyExists` where something has that name, else those of the operating
/// system and of `content`.
pub fn write_new(
    path: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or_else(|| io::Error::other("it has no name of a file"))?;
    Directory::open(path.parent().unwrap_or(Path::new(".")))?.write_new(name, content)
}

/// Writes a file that is made from a record into it, whole or not at all: [`crate::REPORT`] or
/// [`crate::SUMMARY`].
pub fn write_derived(record: &Path, name: &str, text: &[u8]) -> Result<(), ArchiveError> {
    let failed = |source| written(&record.join(name), source);
    Directory::open(record).map_err(failed)?.write_whole(name, text)
}

/// Reads such a file; `None` where there is none that can be read.
pub fn read_derived(record: &Path, name: &str) -> Option<Vec<u8>> {
    Directory::open(record).ok()?.read(name).ok()?
}

/// Adds bytes at the end of a file and syncs it to disk.
pub(crate) fn append_whole(file: &mut File, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let before = file.metadata().map_err(|e| written(path, e))?.len();
    let done = file.write_all(bytes).and_then(|()| file.sync_data());
    done.map_err(|e| {
        // What fitted of them is taken back, so that the file stays a list of whole lines.
        match file.set_len(before) {
            Ok(()) => written(path, e),
            Err(also) => written(path, std::io::Error::other(format!("{e}; then {also}"))),
        }
    })
}
