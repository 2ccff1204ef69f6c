//! One blocking connection to memcached: sends raw requests and reads replies by line or by length.

use std::io;
use std::time::Duration;

use load::wire::Tls;
use model::{ErrorClass, Memcached, NetAddress, Secret};
use workloads::store::StoreError;

use super::judge::error_class;
use super::requests::hello;
use crate::fault;
use crate::socket::Socket;

/// Longest line and longest list of lines, bytes; settings take a few KiB.
const REPLY_BYTES_MAX: usize = 1 << 20;
/// Bytes per read.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes of requests sent before waiting for their replies.
const STREAMED_BYTES: usize = 64 << 10;

/// A blocking connection that is logged in.
pub(super) struct Line {
    socket: Socket,
    timeout: Duration,
    /// Received bytes; those from `start` on are unread.
    inbox: Vec<u8>,
    start: usize,
    /// Requests queued by [`Line::stream`].
    batch: Vec<u8>,
    /// Number of queued requests, and number of sent ones whose replies are unread.
    queued: u64,
    streamed: u64,
}

impl Line {
    /// Connects, over TLS if given, and logs in if the user gave an account.
    pub(super) fn connect(
        memcached: &Memcached,
        address: &NetAddress,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let socket = Socket::connect(address, tls, timeout)?;
        let (inbox, batch) = (Vec::new(), Vec::new());
        let mut line = Self { socket, timeout, inbox, start: 0, batch, queued: 0, streamed: 0 };
        match (&memcached.user, &memcached.password) {
            (None, _) => {}
            (Some(user), Some(password)) => line.log_in(user, password)?,
            (Some(user), None) => {
                let message =
                    format!("user `{user}` has no password (expected user:password@host)");
                return Err(StoreError::fatal(ErrorClass::Denied, message));
            }
        }
        Ok(line)
    }

    /// Logs in. A server without accounts would store a login as a value, so it is checked first.
    fn log_in(&mut self, user: &str, password: &Secret) -> Result<(), StoreError> {
        self.send(b"version\r\n")?;
        if self.next()?.starts_with(b"VERSION") {
            let message = "the server does not require a user and password (omit them)";
            return Err(StoreError::fatal(ErrorClass::Denied, message));
        }
        self.send(&hello(user, password).0)?;
        if self.next()? == b"STORED" {
            return Ok(());
        }
        let message =
            "the server rejected the user or the password (expected those of the target's URL)";
        Err(StoreError::fatal(ErrorClass::Denied, message))
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if self.start < self.inbox.len() {
            return Err(malformed("bytes arrived without a request"));
        }
        self.inbox.clear();
        self.start = 0;
        self.socket.begin();
        match self.socket.write_all(bytes) {
            // The server closed the connection. A final error, such as too many clients, can still
            // be read.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|e| fault::connection(&e, self.timeout)),
        }
    }

    /// Queues a request with a one-line reply and sends full batches without waiting for their
    /// replies; the next write waits for those. No other request is allowed until [`Line::settle`].
    pub(super) fn stream(
        &mut self,
        parts: &[&[u8]],
        judge: impl Fn(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for part in parts {
            self.batch.extend_from_slice(part);
        }
        self.queued += 1;
        if self.batch.len() < STREAMED_BYTES { Ok(()) } else { self.send_queued(&judge) }
    }

    /// Sends the remaining requests of a stream and checks all replies; fails with the first error.
    pub(super) fn settle(
        &mut self,
        judge: impl Fn(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.send_queued(&judge)?;
        self.answers(&judge)
    }

    fn send_queued(
        &mut self,
        judge: &impl Fn(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.answers(judge)?;
        if self.queued > 0 {
            let mut batch = std::mem::take(&mut self.batch);
            self.send(&batch)?;
            batch.clear();
            self.batch = batch;
            self.streamed = std::mem::take(&mut self.queued);
        }
        Ok(())
    }

    fn answers(
        &mut self,
        judge: &impl Fn(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut result = Ok(());
        for _ in 0..std::mem::take(&mut self.streamed) {
            result = result.and(judge(self.line()?));
        }
        result
    }

    /// Reads the next line without its line ending; an error of the server is a line, too.
    pub(super) fn next(&mut self) -> Result<Vec<u8>, StoreError> {
        self.line().map(<[u8]>::to_vec)
    }

    /// Like [`Line::next`], but borrowed.
    pub(super) fn line(&mut self) -> Result<&[u8], StoreError> {
        let mut searched = 0;
        loop {
            let left = &self.inbox[self.start..];
            if let Some(end) = left[searched..].windows(2).position(|pair| pair == b"\r\n") {
                let from = self.start;
                self.start += searched + end + 2;
                return Ok(&self.inbox[from..self.start - 2]);
            }
            if left.len() > REPLY_BYTES_MAX {
                return Err(malformed("a line is too long"));
            }
            searched = left.len().saturating_sub(1);
            self.receive()?;
        }
    }

    /// Reads a block of `bytes` bytes and its line ending.
    pub(super) fn block(&mut self, bytes: usize) -> Result<Vec<u8>, StoreError> {
        let block = self.exactly(bytes + 2)?;
        Ok(block[..bytes].to_vec())
    }

    /// Reads exactly `bytes` bytes.
    pub(super) fn exactly(&mut self, bytes: usize) -> Result<&[u8], StoreError> {
        while self.inbox.len() - self.start < bytes {
            self.receive()?;
        }
        let from = self.start;
        self.start += bytes;
        Ok(&self.inbox[from..self.start])
    }

    fn receive(&mut self) -> Result<(), StoreError> {
        let at = self.inbox.len();
        self.inbox.resize(at + PIECE_BYTES, 0);
        let read = self.socket.read(&mut self.inbox[at..]);
        self.inbox.truncate(at + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => {
                let e = io::Error::from(io::ErrorKind::UnexpectedEof);
                Err(fault::connection(&e, self.timeout))
            }
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(e) => Err(fault::connection(&e, self.timeout)),
        }
    }

    /// Requests a dump of any length and passes each line to `each` until `END`. Lines end with a
    /// line feed, with or without a carriage return, and each must arrive within the timeout. If
    /// `is_entry` is false for the first line, there is no dump and that line is returned. After an
    /// error the connection is unusable.
    pub(super) fn dump(
        &mut self,
        request: &[u8],
        is_entry: fn(&[u8]) -> bool,
        mut each: impl FnMut(&[u8]) -> Result<(), StoreError>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.send(request)?;
        let mut is_first = true;
        loop {
            while !self.inbox[self.start..].contains(&b'\n') {
                if self.inbox.len() - self.start > REPLY_BYTES_MAX {
                    return Err(malformed("a line is too long"));
                }
                self.inbox.drain(..self.start);
                self.start = 0;
                self.receive()?;
            }
            // Each received line counts as its own reply for the limits.
            self.socket.begin();
            let left = &self.inbox[self.start..];
            let end = left.iter().position(|b| *b == b'\n').unwrap_or_default();
            let line = left[..end].strip_suffix(b"\r").unwrap_or(&left[..end]);
            let refusal = (is_first && line != b"END" && !is_entry(line)).then(|| line.to_vec());
            if line == b"END" || refusal.is_some() {
                self.start += end + 1;
                return Ok(refusal);
            }
            each(line)?;
            is_first = false;
            self.start += end + 1;
        }
    }

    /// Requests a list of `STAT <name> <value>` lines.
    pub(super) fn stats(&mut self, request: &[u8]) -> Result<Vec<(String, String)>, StoreError> {
        self.send(request)?;
        let (mut list, mut bytes) = (Vec::new(), 0);
        loop {
            let line = self.next()?;
            if line == b"END" {
                return Ok(list);
            }
            bytes += line.len();
            let text = String::from_utf8_lossy(&line).into_owned();
            let Some(pair) = text.strip_prefix("STAT ") else { return Err(unexpected(&line)) };
            let (name, value) = pair.split_once(' ').unwrap_or((pair, ""));
            list.push((name.into(), value.into()));
            if bytes > REPLY_BYTES_MAX {
                return Err(malformed("a list is too long"));
            }
        }
    }
}

/// The error for an unexpected line.
pub(super) fn unexpected(line: &[u8]) -> StoreError {
    let words = fault::printable(line);
    let class = match words.split(' ').next() {
        Some("ERROR" | "CLIENT_ERROR" | "SERVER_ERROR") => error_class(&words),
        _ => ErrorClass::Protocol,
    };
    let hint = match class {
        _ if words.starts_with('-') => {
            " (expected memcached's protocol; is this Redis? its URL starts with redis://)"
        }
        ErrorClass::Denied if words.starts_with("CLIENT_ERROR unauthenticated") => {
            fault::PASSWORD_HINT
        }
        _ => "",
    };
    StoreError::fatal(class, format!("the server answered `{words}`{hint}"))
}

fn malformed(problem: &str) -> StoreError {
    StoreError::fatal(ErrorClass::Protocol, format!("{problem} (expected memcached's protocol)"))
}
