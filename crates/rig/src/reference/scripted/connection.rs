//! One connection of a scripted server: what it has read, and what it still has to send.

use super::script::Drip;
use crate::reference::listen::Socket;
use crate::reference::scan::Protocol;
use nix::sys::epoll::EpollFlags;
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

/// Sent bytes that are forgotten at once.
const SHED_BYTES: usize = 1 << 20;

/// The end of a reply among the bytes of its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Bytes of the connection up to its end.
    end: u64,
    /// Place of its stamp.
    pub(super) stamp: Option<usize>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// There is nothing left to send.
    All,
    /// There is more, and its time comes later.
    Piece,
    /// The socket takes no more for now.
    Full,
}

/// A connection as the engine sees it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    /// What its socket is watched for; empty while it is not watched.
    pub(super) watched: EpollFlags,
    pub(super) protocol: Option<Protocol>,
    pub(super) resp3: bool,
    /// What was read and is of no whole request yet.
    pub(super) rest: Vec<u8>,
    /// Requests read.
    pub(super) requests: u64,
    /// When its last reply is due: replies leave in the order of their requests.
    pub(super) due_ns: u64,
    /// Replies that are not due yet.
    pub(super) waiting: usize,
    pub(super) state: State,
    /// Time for which it is not read once it sends something; `None` afterwards.
    pub(super) stall_ns: Option<u64>,
    /// Whether the time of its next piece is set.
    pub(super) drips: bool,
    /// The socket took no more at the last write.
    pub(super) full: bool,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    out_sent: usize,
    /// Bytes sent in all.
    sent: u64,
    marks: VecDeque<Mark>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Not read for a time.
    Stalled,
    /// Read, and never answered again.
    Hung,
    /// It ends when everything is sent: it said so, or the other side has stopped sending.
    Ending,
    /// Refused: what comes is thrown away until the other side ends it.
    Refused,
}

impl Connection {
    pub(super) fn new(socket: Socket, stall_ns: Option<u64>) -> Self {
        Self {
            socket,
            watched: EpollFlags::empty(),
            protocol: None,
            resp3: false,
            rest: Vec::new(),
            requests: 0,
            due_ns: 0,
            waiting: 0,
            state: State::Open,
            stall_ns,
            drips: false,
            full: false,
            out: Vec::new(),
            out_sent: 0,
            sent: 0,
            marks: VecDeque::new(),
        }
    }

    /// What its socket should be watched for.
    pub(super) fn wants(&self) -> EpollFlags {
        let mut wants = EpollFlags::empty();
        wants.set(EpollFlags::EPOLLIN, !matches!(self.state, State::Stalled | State::Ending));
        wants.set(EpollFlags::EPOLLOUT, self.full);
        wants
    }

    /// True when nothing is to be sent any more.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Ending && self.waiting == 0 && self.all_sent()
    }

    pub(super) fn all_sent(&self) -> bool {
        self.out_sent == self.out.len()
    }

    /// Reads once and adds it to `rest`: how many bytes, 0 at the end of the stream, and when they
    /// had come, as far as a `control` with room asks for it. An error of kind `WouldBlock` when
    /// there is nothing.
    pub(super) fn read(
        &mut self,
        inbox: &mut [u8],
        control: &mut [u8],
    ) -> io::Result<(usize, Option<TimeSpec>)> {
        let (count, arrived) = if control.is_empty() {
            (self.socket.read(inbox)?, None)
        } else {
            self.socket.read_with_arrival(inbox, control)?
        };
        if self.state != State::Refused {
            self.rest.extend_from_slice(&inbox[..count]);
        }
        Ok((count, arrived))
    }

    /// Adds bytes that belong to no reply.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Adds a reply, which may be empty.
    pub(super) fn push_reply(&mut self, bytes: &[u8], stamp: Option<usize>) {
        self.push(bytes);
        let end = self.sent + (self.out.len() - self.out_sent) as u64;
        self.marks.push_back(Mark { end, stamp });
    }

    /// Writes what there is, or the next piece of it.
    pub(super) fn send(&mut self, drip: Option<Drip>) -> io::Result<Sent> {
        self.full = false;
        while !self.all_sent() {
            let piece = drip.map_or(usize::MAX, |drip| drip.bytes);
            let end = self.out.len().min(self.out_sent.saturating_add(piece));
            match self.socket.write(&self.out[self.out_sent..end]) {
                Ok(count) => {
                    self.out_sent += count;
                    self.sent += count as u64;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.full = true;
                    break;
                }
                Err(e) => return Err(e),
            }
            if drip.is_some() {
                break;
            }
        }
        if self.all_sent() {
            self.out.clear();
            self.out_sent = 0;
            return Ok(Sent::All);
        }
        if self.out_sent > SHED_BYTES {
            self.out.drain(..self.out_sent);
            self.out_sent = 0;
        }
        Ok(if self.full { Sent::Full } else { Sent::Piece })
    }

    /// The next reply that was sent to its end.
    pub(super) fn next_sent(&mut self) -> Option<Mark> {
        self.marks.front().filter(|mark| mark.end <= self.sent)?;
        self.marks.pop_front()
    }
}
