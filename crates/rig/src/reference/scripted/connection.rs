//! One connection of a scripted server: its bytes to parse and its replies to send.

use super::script::Drip;
use crate::reference::listen::Socket;
use crate::reference::scan::Protocol;
use nix::sys::epoll::EpollFlags;
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

/// Sent bytes are removed from the buffer in batches of at least this size.
const SHED_BYTES: usize = 1 << 20;

/// Position of a reply's end in the output of its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyEnd {
    /// Output bytes of the connection up to the reply's end.
    end: u64,
    /// Index of its stamp.
    pub(super) stamp: Option<usize>,
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendResult {
    /// Everything was sent.
    All,
    /// The rest is due later.
    Piece,
    /// The socket is full.
    Full,
}

/// State of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    /// Events its socket is watched for; empty while it is not watched.
    pub(super) watched: EpollFlags,
    pub(super) protocol: Option<Protocol>,
    pub(super) resp3: bool,
    /// Bytes read but not yet parsed as a complete request.
    pub(super) rest: Vec<u8>,
    /// Requests read.
    pub(super) requests: u64,
    /// Due time of its last reply: replies are sent in the order of their requests.
    pub(super) due_ns: u64,
    /// Replies that are not due yet.
    pub(super) waiting: usize,
    pub(super) state: State,
    /// Length of the stall that starts when it first sends something; `None` afterwards.
    pub(super) stall_ns: Option<u64>,
    /// Whether its next piece is scheduled.
    pub(super) drips: bool,
    /// Whether the socket was full at the last write.
    pub(super) full: bool,
    out: Vec<u8>,
    /// Bytes of `out` that were sent.
    out_sent: usize,
    /// Total bytes sent.
    sent: u64,
    reply_ends: VecDeque<ReplyEnd>,
}

/// Phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Stalled: not read for a time.
    Stalled,
    /// Hanging: read but never answered again.
    Hung,
    /// Closed once everything is sent: requested by the client, or it has stopped sending.
    Ending,
    /// Refused: input is discarded until the client closes it.
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
            reply_ends: VecDeque::new(),
        }
    }

    /// Events its socket should be watched for.
    pub(super) fn wants(&self) -> EpollFlags {
        let mut wants = EpollFlags::empty();
        wants.set(EpollFlags::EPOLLIN, !matches!(self.state, State::Stalled | State::Ending));
        wants.set(EpollFlags::EPOLLOUT, self.full);
        wants
    }

    /// Whether the connection can be removed.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Ending && self.waiting == 0 && self.all_sent()
    }

    pub(super) fn all_sent(&self) -> bool {
        self.out_sent == self.out.len()
    }

    /// Reads once into `rest`; returns the number of bytes, 0 at the end of the stream, and their
    /// arrival time if `control` is not empty. An error of kind `WouldBlock` if nothing is
    /// available.
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

    /// Appends bytes that do not belong to a reply.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends a reply, which can be empty.
    pub(super) fn push_reply(&mut self, bytes: &[u8], stamp: Option<usize>) {
        self.push(bytes);
        let end = self.sent + (self.out.len() - self.out_sent) as u64;
        self.reply_ends.push_back(ReplyEnd { end, stamp });
    }

    /// Writes all pending bytes, or the next piece.
    pub(super) fn send(&mut self, drip: Option<Drip>) -> io::Result<SendResult> {
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
            return Ok(SendResult::All);
        }
        if self.out_sent > SHED_BYTES {
            self.out.drain(..self.out_sent);
            self.out_sent = 0;
        }
        Ok(if self.full { SendResult::Full } else { SendResult::Piece })
    }

    /// The next completely sent reply.
    pub(super) fn next_sent(&mut self) -> Option<ReplyEnd> {
        self.reply_ends.front().filter(|mark| mark.end <= self.sent)?;
        self.reply_ends.pop_front()
    }
}
