//! One connection to one server: its unsent bytes, and the requests that wait for a reply.

use std::collections::VecDeque;
use std::io;

use super::request::{Pending, UNTIMED};
use super::stream::Stream;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not connected; retried at that time.
    Down { retry_at_ns: u64 },
    /// The socket is connecting, or the greeting is not answered yet.
    Opening { since_ns: u64 },
    /// In use.
    Open,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection<P> {
    pub(crate) client: u32,
    pub(crate) node: u32,
    pub(crate) state: State,
    pub(crate) stream: Option<Stream>,
    pub(crate) parser: P,
    pub(crate) pending: VecDeque<Pending>,
    /// Bytes that the socket has not accepted yet.
    unsent: Vec<u8>,
    /// Received bytes that the parser needs to see again together with the next ones.
    pub(crate) rest: Vec<u8>,
    /// Connection attempts since it was last open.
    pub(crate) attempts: u32,
    /// True once the greeting was sent.
    pub(crate) greeted: bool,
    /// True while epoll watches for the socket to become writable.
    pub(crate) watches_out: bool,
    /// True if an earlier connection was open and broke.
    pub(crate) lost: bool,
}

impl<P: Default> Connection<P> {
    /// A connection that is not connected yet.
    pub(crate) fn new(client: u32, node: u32) -> Self {
        Self {
            client,
            node,
            state: State::Down { retry_at_ns: 0 },
            stream: None,
            parser: P::default(),
            pending: VecDeque::new(),
            unsent: Vec::new(),
            rest: Vec::new(),
            attempts: 0,
            greeted: false,
            watches_out: false,
            lost: false,
        }
    }

    /// True when requests can be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// True while something waits for the socket to become writable.
    pub(crate) fn wants_out(&self) -> bool {
        !self.greeted
            || !self.unsent.is_empty()
            || self.stream.as_ref().is_some_and(Stream::has_unsent)
    }

    /// When the oldest unanswered request was sent.
    pub(crate) fn oldest_sent_ns(&self) -> Option<u64> {
        self.pending.iter().find_map(|pending| match pending {
            Pending::Request { sent_ns, .. } => Some(*sent_ns),
            Pending::Hello(_) => None,
        })
    }

    /// Stamps the latest requests that are [`UNTIMED`] with their send time, and sets the intended
    /// start of those without one to `since_ns`.
    pub(crate) fn stamp(&mut self, now_ns: u64, since_ns: u64) {
        for pending in self.pending.iter_mut().rev() {
            let Pending::Request { intended_ns, sent_ns, .. } = pending else { return };
            if *sent_ns != UNTIMED {
                return;
            }
            *sent_ns = now_ns;
            if *intended_ns == UNTIMED {
                *intended_ns = since_ns;
            }
        }
    }

    /// Resets the broken connection; returns the requests that were in flight on it.
    pub(crate) fn close(&mut self, retry_at_ns: u64) -> VecDeque<Pending> {
        self.stream = None;
        self.parser = P::default();
        self.unsent = Vec::new();
        self.rest = Vec::new();
        self.lost |= self.state == State::Open;
        self.greeted = false;
        self.state = State::Down { retry_at_ns };
        std::mem::take(&mut self.pending)
    }

    /// Closes an intact open connection; false if it is not open.
    pub(crate) fn hang_up(&mut self) -> bool {
        let is_open = self.is_open();
        if is_open {
            let was_lost = self.lost;
            self.close(0);
            self.lost = was_lost;
        }
        is_open
    }

    /// Sends `bytes`, and keeps what the socket does not accept now.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let sent = self.write(bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    /// Sends the remaining bytes once the socket is writable.
    pub(crate) fn send_rest(&mut self) -> io::Result<()> {
        if let Some(stream) = &mut self.stream {
            stream.flush()?;
        }
        if self.unsent.is_empty() {
            return Ok(());
        }
        let unsent = std::mem::take(&mut self.unsent);
        let sent = self.write(&unsent)?;
        if sent < unsent.len() {
            self.unsent = unsent;
            self.unsent.drain(..sent);
        }
        Ok(())
    }

    /// Writes until the socket accepts no more; returns the number of bytes written.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.stream else { return Ok(0) };
        let mut sent = 0;
        while sent < bytes.len() {
            match stream.write(&bytes[sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(sent)
    }
}
