//! One connection of the null server: one read, its replies, one write.

use super::answers::{Answers, Batch, ConnectionProtocol};
use super::mailbox::Mailbox;
use crate::reference::listen::Socket;
use crate::reference::scan::Parts;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes per read.
const INBOX_BYTES: usize = 64 << 10;
/// Maximum bytes per read while a long request is incomplete.
const READ_BYTES_MAX: usize = 1 << 20;
/// Larger buffers are shrunk to this capacity when their content fits.
const KEPT_BYTES: usize = 1 << 20;

/// Buffers shared by the connections of a thread, which keeps them in the CPU's cache.
#[derive(Debug)]
pub(super) struct WorkerBuffers {
    inbox: Vec<u8>,
    out: Vec<u8>,
    parts: Parts,
    mailbox: Arc<Mailbox>,
}

impl WorkerBuffers {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Self {
        let inbox = vec![0; INBOX_BYTES];
        Self { inbox, out: Vec::new(), parts: Parts::default(), mailbox }
    }

    /// Counts requests before their replies are sent, so a client that has a reply sees it counted.
    fn count(&self, requests: u64) {
        if requests > 0 {
            let before = self.mailbox.requests.load(Ordering::Relaxed);
            self.mailbox.requests.store(before + requests, Ordering::Release);
        }
    }
}

/// Next step of a connection after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Wait for an event.
    Wait,
    /// Wait until the socket is writable: the client must read first.
    Full,
    /// Serve again without an event: more input can be available.
    Again,
    /// Close the connection.
    End,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    /// Whether it is registered for writable events.
    pub(super) watches_writable: bool,
    /// Whether it is queued to be served without an event.
    pub(super) queued: bool,
    protocol: ConnectionProtocol,
    /// Bytes of requests not answered yet; mostly empty.
    rest: Vec<u8>,
    /// Minimum number of missing bytes; 0 if `rest` may contain a complete request.
    missing: usize,
    /// Replies of which the bytes from `sent` on are not written yet.
    unsent: Vec<u8>,
    sent: usize,
    phase: Phase,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The client has stopped sending; the end of the stream must still be read.
    Ending,
    /// Closed once everything is sent.
    Closing,
}

impl Connection {
    pub(super) fn new(socket: Socket, watches_writable: bool) -> Self {
        Self {
            socket,
            watches_writable,
            queued: false,
            protocol: ConnectionProtocol::default(),
            rest: Vec::new(),
            missing: 1,
            unsent: Vec::new(),
            sent: 0,
            phase: Phase::Open,
        }
    }

    /// Records that the client has stopped sending.
    pub(super) fn mark_ending(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Ending;
        }
    }

    /// One read, its replies and one write; returns the next step.
    pub(super) fn turn(&mut self, answers: &Answers, buffers: &mut WorkerBuffers) -> Next {
        self.work(answers, buffers).unwrap_or(Next::End)
    }

    fn work(&mut self, answers: &Answers, buffers: &mut WorkerBuffers) -> io::Result<Next> {
        if !self.send_unsent()? {
            return Ok(Next::Full);
        }
        if self.phase == Phase::Closing {
            return Ok(Next::End);
        }
        let mut more = self.phase == Phase::Ending;
        if self.missing == 0 {
            self.answer_buffered(answers, buffers);
            more = true;
        } else {
            match self.read(answers, buffers) {
                Ok(None) => return Ok(Next::End),
                Ok(Some(full)) => more |= full,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Next::Wait),
                Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(Next::Again),
                Err(e) => return Err(e),
            }
        }
        let all_sent = self.send(&buffers.out)?;
        buffers.out.clear();
        shrink(&mut buffers.out);
        shrink(&mut self.rest);
        Ok(match self.phase {
            _ if !all_sent => Next::Full,
            Phase::Closing => Next::End,
            _ if more || self.missing == 0 => Next::Again,
            _ => Next::Wait,
        })
    }

    /// Reads once and answers complete requests; true if more may be readable, `None` at the end
    /// of the stream.
    fn read(&mut self, answers: &Answers, buffers: &mut WorkerBuffers) -> io::Result<Option<bool>> {
        buffers.out.clear();
        if self.rest.is_empty() {
            let WorkerBuffers { inbox, out, parts, .. } = buffers;
            let count = self.socket.read(inbox)?;
            if count == 0 {
                return Ok(None);
            }
            let batch = answers.all(&mut self.protocol, &inbox[..count], parts, out);
            self.rest.extend_from_slice(&inbox[batch.used..count]);
            self.note(&batch, buffers);
            return Ok(Some(count == INBOX_BYTES));
        }
        let before = self.rest.len();
        let room = self.missing.clamp(INBOX_BYTES, READ_BYTES_MAX);
        self.rest.resize(before + room, 0);
        let read = self.socket.read(&mut self.rest[before..]);
        self.rest.truncate(before + read.as_ref().copied().unwrap_or(0));
        let count = read?;
        if count == 0 {
            return Ok(None);
        }
        self.missing = self.missing.saturating_sub(count);
        if self.missing == 0 {
            self.answer_buffered(answers, buffers);
        }
        Ok(Some(count == room))
    }

    /// Answers the requests in `rest`.
    fn answer_buffered(&mut self, answers: &Answers, buffers: &mut WorkerBuffers) {
        buffers.out.clear();
        let batch =
            answers.all(&mut self.protocol, &self.rest, &mut buffers.parts, &mut buffers.out);
        self.rest.drain(..batch.used);
        self.note(&batch, buffers);
    }

    /// Applies the result of a batch to the connection.
    fn note(&mut self, batch: &Batch, buffers: &WorkerBuffers) {
        self.missing = batch.missing;
        if batch.close {
            self.phase = Phase::Closing;
        }
        buffers.count(batch.requests);
    }

    /// Sends replies; false if the socket is full.
    fn send(&mut self, out: &[u8]) -> io::Result<bool> {
        let taken = if out.is_empty() { 0 } else { written(&mut self.socket, out)? };
        self.unsent.extend_from_slice(&out[taken..]);
        Ok(taken == out.len())
    }

    /// Sends the unsent bytes; false if some remain.
    fn send_unsent(&mut self) -> io::Result<bool> {
        if self.unsent.is_empty() {
            return Ok(true);
        }
        self.sent += written(&mut self.socket, &self.unsent[self.sent..])?;
        if self.sent < self.unsent.len() {
            return Ok(false);
        }
        self.sent = 0;
        self.unsent.clear();
        shrink(&mut self.unsent);
        Ok(true)
    }
}

/// Writes as much as the socket accepts; 0 if it is full.
fn written(socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match socket.write(bytes) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Frees the memory of a long request or reply.
fn shrink(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_BYTES && buffer.len() <= KEPT_BYTES {
        buffer.shrink_to(KEPT_BYTES);
    }
}
