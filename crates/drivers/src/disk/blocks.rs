//! Blocks of one length in a file, by number.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use model::{DISK_BLOCK_BYTES, ErrorClass};
use nix::fcntl::OFlag;
use workloads::store::{Found, SessionStore, StoreError};

use crate::fault;

/// Name of the file in the run's directory.
const FILE: &str = "blocks";
/// Bytes by which the file grows. A write that makes a file longer waits for all others, and the
/// first write to a block changes the file system as well, so blocks are written once before.
const GROWS_BY: usize = 4 << 20;

/// One client's access to the file.
pub(super) struct Blocks {
    file: File,
    /// Memory for a value, of which a part is at an address that direct I/O accepts.
    memory: Vec<u8>,
    /// Start of that part.
    from: usize,
    /// Length of a value.
    bytes: usize,
    /// Length of the file as far as this client knows.
    laid_out: u64,
}

impl Blocks {
    /// Opens the file and creates it if it is missing.
    pub(super) fn open(directory: &Path, bytes: usize) -> Result<Self, StoreError> {
        if bytes == 0 || !bytes.is_multiple_of(DISK_BLOCK_BYTES) {
            let message = format!(
                "values of `{bytes}` bytes cannot be written with direct I/O (expected a multiple \
                 of {DISK_BLOCK_BYTES})"
            );
            return Err(StoreError::fatal(ErrorClass::Other, message));
        }
        let flags = OFlag::O_DIRECT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let path = directory.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600).custom_flags(flags.bits());
        let file = options.open(&path).map_err(|e| unopened(&path, &e))?;
        let memory = vec![0; bytes + DISK_BLOCK_BYTES];
        let from = memory.as_ptr().align_offset(DISK_BLOCK_BYTES);
        Ok(Self { file, memory, from, bytes, laid_out: 0 })
    }

    /// The part of the memory for a value.
    fn own(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.bytes]
    }

    fn put(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        if value.len() != self.bytes {
            let message = format!(
                "a value of `{}` bytes was to be written (expected {})",
                value.len(),
                self.bytes
            );
            return Err(StoreError::soft(ErrorClass::Other, message));
        }
        let at = self.place(id)?;
        self.own().copy_from_slice(value);
        let Self { file, memory, from, bytes, .. } = self;
        let written = file.write_all_at(&memory[*from..*from + *bytes], at);
        written.map_err(|e| fault::file(&format!("cannot write block `{id}`"), &e))
    }

    /// Makes the file at least this long, with zeros in new blocks.
    fn lay_out(&mut self, until: u64) -> io::Result<()> {
        if until <= self.laid_out {
            return Ok(());
        }
        // One client at a time.
        self.file.lock()?;
        let grown = self.grow(until);
        self.file.unlock()?;
        grown
    }

    fn grow(&mut self, until: u64) -> io::Result<()> {
        let zeros = vec![0; GROWS_BY + DISK_BLOCK_BYTES];
        let from = zeros.as_ptr().align_offset(DISK_BLOCK_BYTES);
        self.laid_out = self.file.metadata()?.len();
        while self.laid_out < until {
            self.file.write_all_at(&zeros[from..from + GROWS_BY], self.laid_out)?;
            self.laid_out += GROWS_BY as u64;
        }
        Ok(())
    }

    /// Place of a value in the file, from the number at the end of its key.
    fn place(&self, id: &str) -> Result<u64, StoreError> {
        let digits = id.trim_start_matches(|c: char| !c.is_ascii_digit());
        let number: Option<u64> = digits.parse().ok();
        number.and_then(|number| number.checked_mul(self.bytes as u64)).ok_or_else(|| {
            let id = fault::printable(id.as_bytes());
            let message = format!("key `{id}` has no block (expected a number at its end)");
            StoreError::soft(ErrorClass::Other, message)
        })
    }
}

impl SessionStore for Blocks {
    fn create(&mut self, id: &str, value: &[u8]) -> Result<(), StoreError> {
        let until = self.place(id)? + self.bytes as u64;
        let grown = self.lay_out(until);
        grown.map_err(|e| fault::file(&format!("cannot make room for block `{id}`"), &e))?;
        self.put(id, value)
    }

    fn read(&mut self, id: &str, value: &mut Vec<u8>) -> Result<Found, StoreError> {
        value.clear();
        let at = self.place(id)?;
        let Self { file, memory, from, bytes, .. } = self;
        match file.read_exact_at(&mut memory[*from..*from + *bytes], at) {
            // Room that is laid out and not written yet.
            Ok(()) if memory[*from..*from + *bytes].iter().all(|byte| *byte == 0) => Ok(Found::No),
            Ok(()) => {
                value.extend_from_slice(&memory[*from..*from + *bytes]);
                Ok(Found::Yes)
            }
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Found::No),
            Err(e) => Err(fault::file(&format!("cannot read block `{id}`"), &e)),
        }
    }

    fn replace(&mut self, id: &str, value: &[u8]) -> Result<Found, StoreError> {
        self.put(id, value)?;
        Ok(Found::Yes)
    }
}

fn unopened(path: &Path, e: &io::Error) -> StoreError {
    let what = format!("cannot open `{}` for direct I/O", path.display());
    let mut error = fault::file(&what, e);
    if e.kind() == io::ErrorKind::InvalidInput {
        error.message += " (its file system has none; expected a directory on a disk: --disk)";
    }
    error.fatal = true;
    error
}
