//! Files as PHP's streams read and write them (php-src, `main/streams/plain_wrapper.c` and
//! `main/streams/streams.c`; observed with `strace` on PHP 8.2): one or two queries of the
//! position, and reads in pieces until two of them return end of file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use workloads::store::StoreError;

use super::tree::{At, wrong};
use super::{directory, lock};
use crate::fault;

/// Bytes per read of a stream.
const PIECE_BYTES: usize = 8192;

/// An open file with its path for errors. The file's status was read when it was opened.
pub(super) struct Stream<'a> {
    file: File,
    at: At<'a>,
    /// Bytes read ahead.
    ahead: Vec<u8>,
}

impl<'a> Stream<'a> {
    /// Wraps a file that was opened, for appending or not.
    pub(super) fn new(mut file: File, at: At<'a>, appends: bool) -> Result<Self, StoreError> {
        for _ in 0..=usize::from(appends) {
            file.stream_position().map_err(|e| wrong("seek in", at, &e))?;
        }
        Ok(Self { file, at, ahead: Vec::new() })
    }

    /// Waits for the file's lock, exclusive if `alone`, otherwise shared.
    pub(super) fn lock(&self, alone: bool, timeout: Duration) -> Result<(), StoreError> {
        let locked = if alone {
            lock::exclusive(&self.file, timeout)
        } else {
            lock::shared(&self.file, timeout)
        };
        locked.map(drop)
    }

    /// `stream_get_contents`: appends the remaining content of the file to `value`.
    pub(super) fn rest(&mut self, value: &mut Vec<u8>) -> Result<(), StoreError> {
        self.file.metadata().map_err(|e| wrong("stat", self.at, &e))?;
        value.append(&mut self.ahead);
        while self.piece(value)? > 0 {}
        self.piece(value).map(drop)
    }

    /// `fgets`: the next line of the file with its line ending; empty at the end of the file.
    pub(super) fn line(&mut self) -> Result<Vec<u8>, StoreError> {
        let mut line = std::mem::take(&mut self.ahead);
        let mut searched = 0;
        loop {
            if let Some(end) = line[searched..].iter().position(|byte| *byte == b'\n') {
                self.ahead = line.split_off(searched + end + 1);
                return Ok(line);
            }
            searched = line.len();
            if self.piece(&mut line)? == 0 {
                return Ok(line);
            }
        }
    }

    /// `fread`: the next `bytes` of the file, fewer at its end.
    pub(super) fn take(&mut self, bytes: usize) -> Result<Vec<u8>, StoreError> {
        let mut taken = std::mem::take(&mut self.ahead);
        while taken.len() < bytes && self.piece(&mut taken)? > 0 {}
        self.ahead = taken.split_off(taken.len().min(bytes));
        Ok(taken)
    }

    /// `fseek` to the start.
    pub(super) fn rewind(&mut self) -> Result<(), StoreError> {
        self.file.seek(SeekFrom::Start(0)).map_err(|e| wrong("seek in", self.at, &e)).map(drop)
    }

    pub(super) fn truncate(&mut self) -> Result<(), StoreError> {
        self.file.set_len(0).map_err(|e| wrong("truncate", self.at, &e))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).map_err(|e| wrong("write", self.at, &e))
    }

    pub(super) fn unlock(&self) -> Result<(), StoreError> {
        self.file.unlock().map_err(|e| fault::file("cannot unlock", &e))
    }

    /// Closes the written file, which releases its lock.
    pub(super) fn close(self) -> Result<(), StoreError> {
        let at = self.at;
        directory::close(self.file).map_err(|e| wrong("close", at, &e))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    fn piece(&mut self, value: &mut Vec<u8>) -> Result<usize, StoreError> {
        let filled = value.len();
        value.resize(filled + PIECE_BYTES, 0);
        let read = loop {
            match self.file.read(&mut value[filled..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        value.truncate(filled + *read.as_ref().unwrap_or(&0));
        read.map_err(|e| wrong("read", self.at, &e))
    }
}
