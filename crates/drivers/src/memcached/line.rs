//! One blocking connection to memcached: requests as they are given, replies by line or by length.

use std::io;
use std::time::Duration;

use load::wire::Tls;
use model::{ErrorClass, Memcached, NetAddress, Secret};
use workloads::store::StoreError;

use super::judge::error_class;
use super::requests::hello;
use crate::fault;
use crate::socket::Socket;

/// Longest line, and longest list of them; lists of settings have some KiB.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Bytes that are read at once.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes of requests that are sent before their answers are waited for.
const STREAMED_BYTES: usize = 64 << 10;

/// Such a connection, logged in.
pub(super) struct Line {
    socket: Socket,
    timeout: Duration,
    /// Received bytes; those from `start` on are not yet read.
    inbox: Vec<u8>,
    start: usize,
    /// Requests that are to be sent by [`Line::stream`].
    batch: Vec<u8>,
    /// How many these are, and how many were sent whose answers nobody has read yet.
    begun: u64,
    streamed: u64,
}

impl Line {
    /// Connects, over TLS where that is given, and logs in where the user gave an account.
    pub(super) fn connect(
        memcached: &Memcached,
        address: &NetAddress,
        tls: Option<&Tls>,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        let socket = Socket::connect(address, tls, timeout)?;
        let (inbox, batch) = (Vec::new(), Vec::new());
        let mut line = Self { socket, timeout, inbox, start: 0, batch, begun: 0, streamed: 0 };
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

    /// A server without accounts takes a login for a value to be stored, so it is asked first.
    fn log_in(&mut self, user: &str, password: &Secret) -> Result<(), StoreError> {
        self.send(b"version\r\n")?;
        if self.next()?.starts_with(b"VERSION") {
            let message = "the server asks for no user and password (leave them out)";
            return Err(StoreError::fatal(ErrorClass::Denied, message));
        }
        self.send(&hello(user, password).0)?;
        if self.next()? == b"STORED" {
            return Ok(());
        }
        let message = "user or password was not accepted (expected those of the target's URL)";
        Err(StoreError::fatal(ErrorClass::Denied, message))
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if self.start < self.inbox.len() {
            return Err(malformed("bytes came unasked"));
        }
        self.inbox.clear();
        self.start = 0;
        self.socket.begin();
        match self.socket.write_all(bytes) {
            // The server hung up; its last words, if any (too many clients), are still to be read.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|e| fault::connection(&e, self.timeout)),
        }
    }

    /// Adds a request, each answered by a line, to those that are sent together; goes on without
    /// their answers, which the next write waits for. Until [`Line::settle`] nothing else may be
    /// asked.
    pub(super) fn stream(
        &mut self,
        parts: &[&[u8]],
        judge: impl Fn(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for part in parts {
            self.batch.extend_from_slice(part);
        }
        self.begun += 1;
        if self.batch.len() < STREAMED_BYTES { Ok(()) } else { self.send_on(&judge) }
    }

    /// Sends what is left of a stream and judges all answers; the first error is the error.
    pub(super) fn settle(
        &mut self,
        judge: impl Fn(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.send_on(&judge)?;
        self.answers(&judge)
    }

    fn send_on(
        &mut self,
        judge: &impl Fn(&[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.answers(judge)?;
        if self.begun > 0 {
            let mut batch = std::mem::take(&mut self.batch);
            self.send(&batch)?;
            batch.clear();
            self.batch = batch;
            self.streamed = std::mem::take(&mut self.begun);
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

    /// The next line without its end; an error of the server is a line.
    pub(super) fn next(&mut self) -> Result<Vec<u8>, StoreError> {
        self.line().map(<[u8]>::to_vec)
    }

    /// As [`Line::next`], borrowed.
    pub(super) fn line(&mut self) -> Result<&[u8], StoreError> {
        let mut searched = 0;
        loop {
            let left = &self.inbox[self.start..];
            if let Some(end) = left[searched..].windows(2).position(|pair| pair == b"\r\n") {
                let from = self.start;
                self.start += searched + end + 2;
                return Ok(&self.inbox[from..self.start - 2]);
            }
            if left.len() > ANSWER_BYTES_MAX {
                return Err(malformed("a line does not end"));
            }
            searched = left.len().saturating_sub(1);
            self.receive()?;
        }
    }

    /// That many bytes and the end of their line.
    pub(super) fn block(&mut self, bytes: usize) -> Result<Vec<u8>, StoreError> {
        let block = self.exactly(bytes + 2)?;
        Ok(block[..bytes].to_vec())
    }

    /// That many bytes.
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

    /// Asks for a dump of any length: hands over each line, ended by a line feed with or without a
    /// carriage return, until `END`. Each line must come within the time-out. Instead of a first
    /// line for which `is_entry` is false there is no dump; that line is returned. After an error
    /// the connection is of no use.
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
                if self.inbox.len() - self.start > ANSWER_BYTES_MAX {
                    return Err(malformed("a line does not end"));
                }
                self.inbox.drain(..self.start);
                self.start = 0;
                self.receive()?;
            }
            // Each piece that ends a line is an answer of its own.
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

    /// Asks for a list of `STAT <name> <value>` lines.
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
            if bytes > ANSWER_BYTES_MAX {
                return Err(malformed("a list does not end"));
            }
        }
    }
}

/// A line that does not answer the question.
pub(super) fn unexpected(line: &[u8]) -> StoreError {
    let words = fault::words(line);
    let class = match words.split(' ').next() {
        Some("ERROR" | "CLIENT_ERROR" | "SERVER_ERROR") => error_class(&words),
        _ => ErrorClass::Protocol,
    };
    let cure = match class {
        _ if words.starts_with('-') => {
            " (expected memcached's protocol; is this Redis? its URL begins with redis://)"
        }
        ErrorClass::Denied if words.starts_with("CLIENT_ERROR unauthenticated") => fault::PASSWORD,
        _ => "",
    };
    StoreError::fatal(class, format!("the server answered `{words}`{cure}"))
}

fn malformed(problem: &str) -> StoreError {
    StoreError::fatal(ErrorClass::Protocol, format!("{problem} (expected memcached's protocol)"))
}
