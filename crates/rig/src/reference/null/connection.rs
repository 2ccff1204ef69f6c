//! One connection of the null server: a read, its answers, a write.

use super::answers::{Answers, Batch, Speech};
use super::mailbox::Mailbox;
use crate::reference::listen::Socket;
use crate::reference::scan::Parts;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room for what is read at once.
const INBOX_BYTES: usize = 64 << 10;
/// Most that is read at once when a long request is in flight.
const READ_BYTES_MAX: usize = 1 << 20;
/// Buffers beyond this are given back when they are empty.
const KEPT_BYTES: usize = 1 << 20;

/// What a thread's connections use in turn, so that it stays in the CPU's cache.
#[derive(Debug)]
pub(super) struct Hands {
    inbox: Vec<u8>,
    out: Vec<u8>,
    parts: Parts,
    mailbox: Arc<Mailbox>,
}

impl Hands {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Self {
        let inbox = vec![0; INBOX_BYTES];
        Self { inbox, out: Vec::new(), parts: Parts::default(), mailbox }
    }

    /// Counts requests, before their answers are sent: who has an answer finds it counted.
    fn count(&self, requests: u64) {
        if requests > 0 {
            let before = self.mailbox.requests.load(Ordering::Relaxed);
            self.mailbox.requests.store(before + requests, Ordering::Release);
        }
    }
}

/// What is to be done with a connection after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// An event will tell of more.
    Wait,
    /// The same, but the client must read first.
    Full,
    /// There may be more already.
    Again,
    /// It is over.
    End,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    /// Whether its events tell of room for writing.
    pub(super) asked_for_room: bool,
    /// Whether it stands among those that are served without an event.
    pub(super) queued: bool,
    speech: Speech,
    /// What was read of requests that are not answered yet; mostly empty.
    rest: Vec<u8>,
    /// At least so many bytes are missing to a whole request; 0 when one may stand in `rest`.
    missing: usize,
    /// Answers that the socket has not taken yet, from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    phase: Phase,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The other side has stopped sending: there is an end to be read.
    Ending,
    /// It is over when everything is sent.
    Closing,
}

impl Connection {
    pub(super) fn new(socket: Socket, asked_for_room: bool) -> Self {
        Self {
            socket,
            asked_for_room,
            queued: false,
            speech: Speech::default(),
            rest: Vec::new(),
            missing: 1,
            unsent: Vec::new(),
            sent: 0,
            phase: Phase::Open,
        }
    }

    /// Notes that the other side has stopped sending: there is an end to be read.
    pub(super) fn ends(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Ending;
        }
    }

    /// One read, its answers and one write; what is next.
    pub(super) fn turn(&mut self, answers: &Answers, hands: &mut Hands) -> Next {
        self.work(answers, hands).unwrap_or(Next::End)
    }

    fn work(&mut self, answers: &Answers, hands: &mut Hands) -> io::Result<Next> {
        if !self.send_rest()? {
            return Ok(Next::Full);
        }
        if self.phase == Phase::Closing {
            return Ok(Next::End);
        }
        let mut more = self.phase == Phase::Ending;
        if self.missing == 0 {
            self.answer_rest(answers, hands);
            more = true;
        } else {
            match self.read(answers, hands) {
                Ok(None) => return Ok(Next::End),
                Ok(Some(full)) => more |= full,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Next::Wait),
                Err(e) if e.kind() == ErrorKind::Interrupted => return Ok(Next::Again),
                Err(e) => return Err(e),
            }
        }
        let all_sent = self.send(&hands.out)?;
        hands.out.clear();
        give_back(&mut hands.out);
        give_back(&mut self.rest);
        Ok(match self.phase {
            _ if !all_sent => Next::Full,
            Phase::Closing => Next::End,
            _ if more || self.missing == 0 => Next::Again,
            _ => Next::Wait,
        })
    }

    /// Reads once and answers what is whole; true when there may be more to read, `None` at the end
    /// of the stream.
    fn read(&mut self, answers: &Answers, hands: &mut Hands) -> io::Result<Option<bool>> {
        hands.out.clear();
        if self.rest.is_empty() {
            let Hands { inbox, out, parts, .. } = hands;
            let count = self.socket.read(inbox)?;
            if count == 0 {
                return Ok(None);
            }
            let batch = answers.all(&mut self.speech, &inbox[..count], parts, out);
            self.rest.extend_from_slice(&inbox[batch.used..count]);
            self.note(&batch, hands);
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
            self.answer_rest(answers, hands);
        }
        Ok(Some(count == room))
    }

    /// Answers what was read before.
    fn answer_rest(&mut self, answers: &Answers, hands: &mut Hands) {
        hands.out.clear();
        let batch = answers.all(&mut self.speech, &self.rest, &mut hands.parts, &mut hands.out);
        self.rest.drain(..batch.used);
        self.note(&batch, hands);
    }

    /// Takes note of what became of some requests.
    fn note(&mut self, batch: &Batch, hands: &Hands) {
        self.missing = batch.missing;
        if batch.close {
            self.phase = Phase::Closing;
        }
        hands.count(batch.requests);
    }

    /// Sends answers; false when the socket takes no more for now.
    fn send(&mut self, out: &[u8]) -> io::Result<bool> {
        let taken = if out.is_empty() { 0 } else { written(&mut self.socket, out)? };
        self.unsent.extend_from_slice(&out[taken..]);
        Ok(taken == out.len())
    }

    /// Sends what the socket did not take before; false when some of it still waits.
    fn send_rest(&mut self) -> io::Result<bool> {
        if self.unsent.is_empty() {
            return Ok(true);
        }
        self.sent += written(&mut self.socket, &self.unsent[self.sent..])?;
        if self.sent < self.unsent.len() {
            return Ok(false);
        }
        self.sent = 0;
        self.unsent.clear();
        give_back(&mut self.unsent);
        Ok(true)
    }
}

/// Writes what the socket takes; 0 when it takes nothing for now.
fn written(socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match socket.write(bytes) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Gives the memory of a long request or answer back.
fn give_back(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_BYTES && buffer.len() <= KEPT_BYTES {
        buffer.shrink_to(KEPT_BYTES);
    }
}
